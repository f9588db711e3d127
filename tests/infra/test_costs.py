"""The costs: the page quotes the program, and the program counts what the templates deploy."""

import re
from collections import Counter
from math import ceil
from typing import Any

import pytest

from tests.infra.bicep import at
from tests.infra.plan import SETS, Evaluator, plan
from tests.infra.test_policies import ALERTS, FILES
from tests.repo.product import ROOT
from tools.capacity import costs as parts
from tools.capacity.__main__ import PARTITIONS, main
from tools.capacity.costs import DEV_PROFILE, STANDARD_PROFILE, at_rest, bill, costs_report, extras
from tools.capacity.prices import EUROPE
from tools.capacity.sizing import Load, size

PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
SIZING = size(Load(1_000))


def costs(rate: float, memory: int = 2048) -> tuple[dict[str, float], dict[str, float]]:
    """Return the dollars of each part in an idle month, and at a load."""
    sizing = size(Load(rate), memory=memory)
    idle, loaded = (bill(STANDARD_PROFILE, each, PARTITIONS) for each in (at_rest(sizing), sizing))
    return {one.part: one.dollars for one in idle}, {one.part: one.dollars for one in loaded}


DEV = bill(DEV_PROFILE, at_rest(SIZING), PARTITIONS)


def default(name: str) -> object:
    """Return the default of a parameter of main.bicep in the profile `standard`."""
    return Evaluator(FILES["main.bicep"], {}).name(name)


def test_the_page_quotes_the_program_and_leaves_the_arithmetic_to_it() -> None:
    of_parts, _, of_choices = costs_report(SIZING, PARTITIONS).partition("\n\n")
    for table in (of_parts, of_choices):
        rows = [row[: row.rindex("|", 0, -1) + 1].rstrip() for row in table.splitlines()]
        assert len(rows) > 2
        assert "\n".join(rows) in PAGE


def test_the_program_counts_the_defaults_of_the_templates() -> None:
    assert default("partitionCount") == PARTITIONS
    assert default("instanceMemoryMB") == SIZING.memory
    assert (default("throughputUnits"), default("captureEnabled"), default("sqlVCores")) == (1, True, 2)
    assert len(ALERTS) == parts.RULES


def test_the_program_counts_each_kind_of_always_ready_instance() -> None:
    ready = [one.name for one in FILES["main.bicep"].of_kind("parameter") if one.name.endswith("AlwaysReady")]
    counted = {"ingestAlwaysReady": STANDARD_PROFILE.ingest, "durableAlwaysReady": STANDARD_PROFILE.durable}
    assert {name: default(name) for name in ready} == {**counted, "httpAlwaysReady": 0}


def test_the_program_counts_the_endpoints_and_the_nodes_of_the_templates() -> None:
    made = Counter(kind.partition(":")[0] for _, kind, _ in plan(FILES, {"vnetEnabled": True}))
    assert made["avm/res/network/private-endpoint"] == parts.ENDPOINTS
    assert made["avm/res/network/private-dns-zone"] == parts.ZONES
    pool = next(one for one in FILES["app/spark.bicep"].of_kind("resource") if "bigDataPools" in one.of)
    assert at(pool.value, "properties.autoPause.delayInMinutes") == parts.POOL_PAUSE
    assert 4 * at(pool.value, "properties.autoScale.minNodeCount") == parts.SPARK_CORES
    assert default("sparkNodeSize") == "Small"


def test_an_idle_month_of_a_dev_environment_costs_less_than_100_dollars() -> None:
    *each, whole = DEV
    assert whole.dollars == sum(one.dollars for one in each)
    assert EUROPE * whole.dollars < 100
    assert f"**`PROFILE=dev`** costs about {ceil(EUROPE * whole.dollars)} $" in PAGE


def test_the_dev_environment_is_the_one_that_the_program_counts() -> None:
    made = plan(FILES, SETS["dev"])
    of = {kind: one.value for (_, kind, _), one in made.items()}
    database, namespace = of["Microsoft.Sql/servers/databases"], of["Microsoft.EventHub/namespaces"]
    assert (database["sku"]["name"], database["sku"]["tier"]) == ("S0", "Standard")
    assert (namespace["sku"]["name"], namespace["sku"]["capacity"]) == ("Standard", 1)
    assert of["Microsoft.EventHub/namespaces/eventhubs"]["properties"]["captureDescription"]["enabled"] is False
    scale = of["Microsoft.Web/sites"]["properties"]["functionAppConfig"]["scaleAndConcurrency"]
    assert (scale["alwaysReady"], scale["instanceMemoryMB"]) == ([], SIZING.memory)
    costly = ("scheduled-query-rule", "private-endpoint", "Synapse", "databricks", "container-app")
    assert [key for key in made if any(word in key[1] for word in costly)] == []


@pytest.mark.parametrize(
    "changed",
    [{"captureEnabled": True}, {"ingestAlwaysReady": 1}, {"sqlTier": "GeneralPurpose"}, {"alertsEnabled": True}],
)
def test_a_size_that_is_given_wins_over_the_profile(changed: dict[str, Any]) -> None:
    flat = [
        {(*key, str(one.value)) for key, one in plan(FILES, {**SETS["dev"], **given}).items()}
        for given in ({}, changed)
    ]
    assert flat[0] != flat[1]


def test_a_serverless_database_pauses_after_the_minutes_that_are_given_and_no_other_one_does() -> None:
    def delay(**given: object) -> Any:
        made = plan(FILES, {"sqlTier": "GeneralPurpose", **given})
        (database,) = [one.value for (_, kind, _), one in made.items() if kind == "Microsoft.Sql/servers/databases"]
        return database["properties"]["autoPauseDelay"]

    assert delay(sqlCompute="serverless", sqlAutoPauseMinutes=75) == 75
    assert (delay(sqlCompute="serverless"), delay(sqlCompute="provisioned")) == (-1, None)


def test_an_idle_database_pays_for_the_minimum_of_the_template() -> None:
    (minimum,) = re.findall(
        r"minCapacity: .*<= 4 \? json\('0\.5'\) : \(sizes.vCores \+ 7\) / 8", FILES["app/sql.bicep"].text
    )
    idle = [costs(rate)[0]["Azure SQL, serverless"] for rate in (1_000, 33_000)]
    assert minimum and idle == pytest.approx([2.05 / 3 * 730 * 0.5218, 2 * 730 * 0.5218])


def test_a_load_that_keeps_all_cores_busy_is_cheaper_on_a_provisioned_database() -> None:
    """The bill of serverless follows the cores in use, up to all of them."""
    idle, loaded = (month["Azure SQL, serverless"] for month in costs(1_000))
    (provisioned,) = [one.dollars for one in extras(SIZING) if "provisioned" in one.part]
    rows = loaded - 2 * 730 * 0.5218
    assert idle < provisioned < loaded - rows
    assert rows == pytest.approx(394.2 * 0.115)


def test_units_that_were_added_cost_capture_too() -> None:
    (idle, one), (_, two) = costs(600), costs(1_000)
    assert size(Load(600)).hub_units == 1
    assert two["Capture"] == 2 * one["Capture"] == 2 * idle["Capture"]


def test_a_shorter_schedule_of_spark_never_costs_less_and_the_shortest_keeps_the_pool_warm() -> None:
    five, twenty, sixty = [one.dollars for one in extras(SIZING) if one.part.startswith("Synapse")]
    assert five > twenty > sixty
    assert five == pytest.approx(12 * 730 * 0.143)


def test_the_schedule_that_the_page_names_keeps_the_alert_silent() -> None:
    minutes = int(re.findall(r"\*\*every (\d+) minutes\*\*", PAGE)[0])
    longest = default("alertAggregationLagSeconds")
    assert isinstance(longest, int)
    assert 2 * minutes * 60 < longest < 2 * 2 * minutes * 60


def test_a_load_beyond_the_known_prices_says_so() -> None:
    assert costs_report(size(Load(100_000)), 16).startswith("costs: this program has prices of Standard hubs")


def test_the_command_prints_sizes_telemetry_and_costs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["1_000"]) == 0
    printed = capsys.readouterr().out
    assert "breaks first: throughput" in printed
    assert "lines of batches: 80,640 x" in printed
    assert "| Capture | 88 $ | 176 $ |" in printed
    assert main(["1_000", "--partitions", "4"]) == 0
    assert "telemetry a day, 4 partitions" in capsys.readouterr().out
