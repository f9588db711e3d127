import json
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import opentelemetry.semconv
import yaml
from opentelemetry.semconv.schemas import Schemas

from core.measured import GAUGES
from core.remote.telemetry import signals
from core.remote.telemetry.opening import CONVENTIONS
from core.remote.telemetry.signals import metric_of
from tests.infra.test_policies import ALERTS, FILES
from tests.offenders import holds_for
from tests.repo.product import ROOT, text_of

PAGE = (ROOT / "docs" / "telemetry.md").read_text(encoding="utf-8")
GRAFANA = json.loads((ROOT / "infra" / "dashboards" / "grafana.json").read_text(encoding="utf-8"))
WORKBOOK = json.loads((ROOT / "infra" / "dashboards" / "workbook.json").read_text(encoding="utf-8"))
PANELS = [target["expr"] for panel in GRAFANA["panels"] for target in panel["targets"]]
TILES = [item["content"]["query"] for item in WORKBOOK["items"] if item["type"] == 3]
RULES = yaml.safe_load((ROOT / "infra" / "dashboards" / "prometheus-alerts.yaml").read_text(encoding="utf-8"))
QUERIES = [path.read_text(encoding="utf-8") for path in (ROOT / "infra" / "alerts").glob("*.kql")]
OF_PROMETHEUS = {f"hubledger_{fact}" for fact in GAUGES}
TEXTS = [value for value in vars(signals).values() if isinstance(value, str)]
ATTRIBUTES = {value for value in TEXTS if re.match(r"messaging\.|error\.", value)}
LABELS = {"messaging_destination_name", "messaging_consumer_group_name"}


def rows(heading: str) -> Iterator[list[str]]:
    part = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    for line in part.splitlines():
        if line.startswith("| `"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def test_the_page_has_each_metric_with_its_fact_which_an_alert_reads_and_there_are_at_most_twelve() -> None:
    named = {fact: metric_of(fact) for fact in GAUGES}
    assert list(rows("Metrics")) == [
        [f"`{name}`", f"`{unit}`" if unit else "", f"`{fact}`"] for fact, (name, unit) in named.items()
    ]
    read = {fact for query in QUERIES for fact in re.findall(r"Properties\.(\w+)", query)}
    assert set(GAUGES) == read - {"action", "event_hub", "standing", "stale"}
    assert len(GAUGES) <= 12


def test_the_page_has_each_measured_use_case_and_the_attributes_of_a_batch() -> None:
    code = "".join(text_of(path) for path in (ROOT / "core").rglob("*.py"))
    measured = set(re.findall(r'^@measured\("(.*)"\)$', code, re.M)) - {"ingest"}
    batch, *others = rows("Spans")
    assert {f"`{name}`" for name in measured} == {row[0] for row in others}
    assert ATTRIBUTES - {signals.ERROR} <= set(re.findall(r"`([\w.]+)`", batch[3]))


def test_a_name_that_is_not_ours_is_one_of_the_conventions_that_the_page_cites() -> None:
    (folder,) = opentelemetry.semconv.__path__
    texts = [path.read_text(encoding="utf-8") for path in Path(folder).rglob("*.py")]
    assert len(ATTRIBUTES) == 8
    assert ATTRIBUTES - {name for text in texts for name in re.findall(r'Final = "([^"]+)"', text)} == set()
    assert f"version {CONVENTIONS}." in PAGE
    assert Schemas["V" + CONVENTIONS.replace(".", "_")].value.endswith(CONVENTIONS)
    assert version("opentelemetry-semantic-conventions").startswith("0.66")  # a newer one may have renamed some


@holds_for([*PANELS, *TILES])
def test_a_panel_of_a_dashboard_reads_metrics_and_attributes_of_the_page(query: str) -> None:
    assert all(query.count(one) == query.count(other) for one, other in ("()", "{}"))
    if query in PANELS:
        words = set(re.findall(r"\b(?:hubledger|messaging|error)_\w+", query))
        assert words and words - LABELS <= OF_PROMETHEUS
        return
    first, second, *_ = query.splitlines()
    named = set(re.findall(r'"([\w.]+)"', second.partition(" and ")[0]))
    assert (first, bool(named)) == ("AppMetrics", True)
    assert named <= {metric_of(fact)[0] for fact in GAUGES}
    assert set(re.findall(r'Properties\["([^"]+)"\]', query)) <= {signals.DESTINATION, signals.GROUP}


def test_each_metric_is_on_both_dashboards() -> None:
    grafana, workbook = " ".join(PANELS), " ".join(TILES)
    missing = [fact for fact in GAUGES if f"hubledger_{fact}{{" not in grafana]
    assert [*missing, *(fact for fact in GAUGES if f'"{metric_of(fact)[0]}"' not in workbook)] == []


def test_the_rules_of_prometheus_read_metrics_of_the_page_with_the_limits_of_the_alerts_of_azure() -> None:
    (group,) = RULES["groups"]
    read = {name for rule in group["rules"] for name in re.findall(r"hubledger_\w+", rule["expr"])}
    assert read == OF_PROMETHEUS
    limits = {rule["alert"]: float(rule["expr"].split()[-1]) for rule in group["rules"] if " " in rule["expr"]}
    main = {one.name: one.value for one in FILES["main.bicep"].of_kind("parameter")}
    seconds = main["retentionHours"] * 36 * main["alertRetentionPercent"]
    assert {name: limit for name, limit in limits.items() if limit > 1} == {
        "LetterOld": seconds,
        "EventsExpiring": main["alertLossHours"],
        "Lag": main["alertLagSeconds"],
        "LettersOpen": main["alertOpenLetters"],
        "AggregationLag": main["alertAggregationLagSeconds"],
    }
    names_of_rules = {re.sub(r"(?<!^)(?=[A-Z])", "-", rule["alert"]).lower() for rule in group["rules"]}
    assert names_of_rules == ALERTS - {"log-cap"}
