"""docs/telemetry.md, dashboards and conventions agree with core/remote/telemetry/names.py, in both directions."""

import json
import re
from collections.abc import Collection, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import opentelemetry.semconv
import pytest
import yaml
from opentelemetry.semconv.schemas import Schemas

from core.remote.telemetry import names
from tests.infra.policies import ALERTS
from tests.infra.test_policies import FILES
from tests.repo.product import ROOT, text_of

PAGE = (ROOT / "docs" / "telemetry.md").read_text(encoding="utf-8")
GRAFANA = json.loads((ROOT / "infra" / "dashboards" / "grafana.json").read_text(encoding="utf-8"))
WORKBOOK = json.loads((ROOT / "infra" / "dashboards" / "workbook.json").read_text(encoding="utf-8"))
RULES = yaml.safe_load((ROOT / "infra" / "dashboards" / "prometheus-alerts.yaml").read_text(encoding="utf-8"))
UNITS = {"s": "_seconds", "h": "_hours", "1": "_ratio"}
OWN = "hubledger."
HUB = {"messaging.destination.name", "messaging.consumer.group.name"}


def rows(heading: str) -> Iterator[list[str]]:
    """Yield the rows of the table below a heading."""
    part = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    for line in part.splitlines():
        if line.startswith("| `"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def ticked(attributes: tuple[str, ...], without: Collection[str]) -> str:
    return ", ".join(f"`{one}`" for one in attributes if one not in without)


def test_the_page_has_each_metric_with_its_kind_unit_meaning_and_attributes() -> None:
    found = [tuple(row) for row in rows("Metrics")]
    assert found == [
        (f"`{one.name}`", f"{one.kind}, `{one.unit}`", one.meaning, ticked(one.attributes, HUB))
        for one in names.METRICS
    ]


def test_the_metrics_that_have_no_hub_are_those_of_which_the_page_says_so() -> None:
    said = "except those of the store (`db.`, `hubledger.store.`) and the durations of the aggregation."
    assert said in " ".join(PAGE.split())
    assert {one.name for one in names.METRICS if not HUB.issubset(one.attributes)} == {
        one.name
        for one in names.METRICS
        if re.match(r"db\.|hubledger\.(store\.|aggregation\.\w+\.duration$)", one.name)
    }


def test_the_page_has_each_span_with_the_attributes_that_no_metric_has() -> None:
    of_metrics = {each for one in names.METRICS for each in one.attributes}
    found = [tuple(row) for row in rows("Spans")]
    assert found == [
        (f"`{one.name}`", one.kind, one.meaning, ticked(one.attributes, of_metrics)) for one in names.SPANS
    ]


def attributes() -> set[str]:
    return {each for one in (*names.METRICS, *names.SPANS) for each in one.attributes}


def test_the_page_explains_each_attribute_of_metrics() -> None:
    assert {row[0].strip("`") for row in rows("Attributes")} == {
        each for one in names.METRICS for each in one.attributes
    }


def test_every_metric_of_the_module_is_in_the_catalogue_and_the_code_records_each() -> None:
    declared = {name: one for name, one in vars(names).items() if isinstance(one, names.Metric)}
    assert set(declared.values()) == set(names.METRICS)
    room = ROOT / "core" / "remote" / "telemetry"
    code = "".join(text_of(path) for path in room.glob("*.py") if path.name != "names.py")
    assert [name for name in declared if not re.search(rf"\b{name}\b", code)] == []


def conventions() -> set[str]:
    """Return every name that the installed package of the conventions defines."""
    (folder,) = opentelemetry.semconv.__path__
    texts = [path.read_text(encoding="utf-8") for path in Path(folder).rglob("*.py")]
    return {name for text in texts for name in re.findall(r'Final = "([^"]+)"', text)}


def test_a_name_that_is_not_ours_is_one_of_the_conventions_that_the_page_cites() -> None:
    foreign = {one for one in {*attributes(), *(one.name for one in names.METRICS)} if not one.startswith(OWN)}
    assert len(foreign) > 10
    assert foreign - conventions() == set()
    assert f"version {names.CONVENTIONS} " in PAGE
    assert Schemas["V" + names.CONVENTIONS.replace(".", "_")].value.endswith(names.CONVENTIONS)
    assert version("opentelemetry-semantic-conventions").startswith("0.66")  # a newer one may have renamed some


def prometheus(metric: names.Metric) -> set[str]:
    """Return the names that Prometheus gives the series of a metric."""
    name = metric.name.replace(".", "_") + UNITS.get(metric.unit, "")
    if metric.kind == "histogram":
        return {f"{name}_{part}" for part in ("bucket", "count", "sum")}
    return {f"{name}_total" if metric.kind == "counter" else name}


def queries_of_grafana() -> list[str]:
    return [target["expr"] for panel in GRAFANA["panels"] for target in panel["targets"]]


def queries_of_the_workbook() -> list[str]:
    return [item["content"]["query"] for item in WORKBOOK["items"] if item["type"] == 3]


@pytest.mark.parametrize("query", queries_of_grafana())
def test_a_panel_of_grafana_reads_metrics_and_attributes_of_the_page(query: str) -> None:
    known = {each for one in names.METRICS for each in prometheus(one)}
    labels = {one.replace(".", "_") for one in attributes()}
    words = set(re.findall(r"\b(?:hubledger|messaging|db|error)_\w+", query))
    assert words and words - labels <= known
    assert query.count("(") == query.count(")") and query.count("{") == query.count("}")


@pytest.mark.parametrize("query", queries_of_the_workbook())
def test_a_tile_of_the_workbook_reads_metrics_and_attributes_of_the_page(query: str) -> None:
    first, second, *_ = query.splitlines()
    named = set(re.findall(r'"([\w.]+)"', second.partition(" and ")[0]))
    assert (first, bool(named)) == ("AppMetrics", True)
    assert named <= {one.name for one in names.METRICS}
    assert set(re.findall(r'Properties\["([^"]+)"\]', query)) <= attributes()
    assert query.count("(") == query.count(")")


def test_the_rules_of_prometheus_read_metrics_of_the_page_with_the_limits_of_the_alerts_of_azure() -> None:
    (group,) = RULES["groups"]
    known = {each for one in names.METRICS for each in prometheus(one)} | {
        one.replace(".", "_") for one in attributes()
    }
    asked = [rule["expr"] for rule in group["rules"]]
    assert [one for one in asked if not set(re.findall(r"hubledger_\w+", one)) <= known] == []
    limits = {rule["alert"]: float(rule["expr"].split()[-1]) for rule in group["rules"] if " " in rule["expr"]}
    main = {one.name: one.value for one in FILES["main.bicep"].of_kind("parameter")}
    seconds = main["retentionHours"] * 36 * main["alertRetentionPercent"]
    assert {name: limit for name, limit in limits.items() if limit} == {
        "LetterOld": seconds,
        "EventsExpiring": main["alertLossHours"],
        "Lag": main["alertLagSeconds"],
        "LettersOpen": main["alertOpenLetters"],
        "AggregationLag": main["alertAggregationLagSeconds"],
    }
    names_of_rules = {re.sub(r"(?<!^)(?=[A-Z])", "-", rule["alert"]).lower() for rule in group["rules"]}
    assert names_of_rules == ALERTS - {"log-cap"}


def test_each_metric_that_an_operator_watches_is_on_both_dashboards() -> None:
    both: list[Any] = [" ".join(queries_of_grafana()), " ".join(queries_of_the_workbook())]
    gauges = [one for one in names.METRICS if one.kind == "gauge"]
    seen = (
        "hubledger.letters.oldest_age",
        "hubledger.aggregation.failures",
        "hubledger.aggregation.faults",
        "hubledger.retention.loss",
    )
    missing = [one.name for one in gauges if one.name not in seen and f'"{one.name}"' not in both[1]]
    missing += [one.name for one in gauges if one.name not in seen and not any(n in both[0] for n in prometheus(one))]
    assert missing == []


def test_the_panels_have_places_of_their_own() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in GRAFANA["panels"]]
    assert len(set(places)) == len(places) == len({panel["id"] for panel in GRAFANA["panels"]})
    assert len({item["name"] for item in WORKBOOK["items"]}) == len(WORKBOOK["items"])
