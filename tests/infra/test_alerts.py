"""The alerts: each query reads facts of the watch, the page explains each alert, and log values become properties."""

import re
from datetime import datetime, timedelta

from croniter import croniter

from core.ledger.totals import Books, LetterBooks
from core.ledger.watch import ABSENT_WITHIN, STOPPED_AFTER, Observation
from tests.fakes.builders import EPOCH, STREAM
from tests.handlers.test_function_app import binding
from tests.infra.test_policies import ALERTS, FILES
from tests.offenders import holds_for
from tests.repo.product import ROOT

OF_THE_WORKSPACE = {"log-cap"}  # its query reads the workspace's own table
QUERIES = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "infra" / "alerts").glob("*.kql")}
PAGE = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
FACTS = dict(re.findall(r"^\| `(\w+)` \| (truth|number|text) \|", PAGE, flags=re.MULTILINE))
KINDS = {bool: "truth", int: "number", float: "number", str: "text"}
CONVERTED = {"truth": "tobool", "number": "to(?:long|double)", "text": "tostring"}


def test_every_alert_has_a_query_and_every_query_an_alert() -> None:
    assert set(QUERIES) == ALERTS


@holds_for(QUERIES)
def test_a_query_says_its_purpose_and_asks_the_watch(name: str) -> None:
    first, *rest = QUERIES[name].splitlines()
    assert re.fullmatch(r"// [A-Z].*\.", first)
    asked = "Usage" if name in OF_THE_WORKSPACE else 'AppTraces\n| where Properties.action == "watch"'
    assert "\n".join(rest).startswith(f"{asked}\n")


@holds_for(QUERIES)
def test_a_query_reads_facts_of_the_page_as_what_they_are(name: str) -> None:
    read = dict(re.findall(r"(to\w+)\(Properties\.(\w+)\)", QUERIES[name]))
    asked = set(re.findall(r"Properties\.(\w+)", QUERIES[name])) - {"action"}
    assert set(read.values()) == asked <= set(FACTS)
    assert all(re.fullmatch(CONVERTED[FACTS[fact]], conversion) for conversion, fact in read.items())


@holds_for(QUERIES)
def test_a_query_has_no_limit_left_to_fill_in(name: str) -> None:
    limits = set(re.findall(r"\{(\w+)\}", QUERIES[name]))
    text = FILES["app/alerts.bicep"].text
    alert = text[text.index(f"name: '{name}'") :]
    filled = set(re.findall(r"'\{(\w+)\}'", alert[: alert.index("\n  }")]))
    assert limits == filled


def test_the_alert_on_a_loss_is_silent_where_the_app_does_not_know_the_retention() -> None:
    sight = Observation(STREAM, EPOCH, Books((), LetterBooks({}, 0)), (), EPOCH, 0)
    assert sight.facts()["loss_hours"] == -1.0
    assert "| where todouble(Properties.loss_hours) >= 0 and " in QUERIES["events-expiring"]


def test_the_page_explains_each_alert() -> None:
    assert [name for name in QUERIES if f"| [`{name}`](runbook.md#{name}) |" not in PAGE] == []


def test_the_line_of_the_watch_has_the_facts_of_the_page_as_what_they_are() -> None:
    sight = Observation(STREAM, EPOCH, Books((), LetterBooks({}, 0)), (), EPOCH, 0)
    facts = sight.facts()
    assert facts.pop("action") == "watch"
    assert {name: KINDS[type(value)] for name, value in facts.items()} == FACTS


def test_the_watch_is_logged_as_often_as_the_page_says_and_faults_are_no_watch() -> None:
    assert "Every minute the app logs one line" in PAGE
    schedule = croniter(binding("watch", "timerTrigger")["schedule"], EPOCH, second_at_beginning=True)
    first, second = schedule.get_next(datetime), schedule.get_next(datetime)
    assert second - first == timedelta(minutes=1)
    handler = (ROOT / "handlers" / "timers.py").read_text(encoding="utf-8").partition("def watch(")[2]
    assert re.findall(r'"action": "(\w+)"', handler) == ["watch_failed", "minute_failed"]


def test_absent_events_are_told_as_long_as_the_alert_on_silence_waits() -> None:
    minutes = ABSENT_WITHIN // timedelta(minutes=1)
    (name,) = OF_THE_WORKSPACE
    windows = re.findall(r"windowSize: (.*)", FILES["app/alerts.bicep"].text)
    assert windows == [f"alert.name == '{name}' ? 'P1D' : 'PT{minutes}M'"]
    assert f"| events that batches of the last {minutes} minutes found absent |" in PAGE


def test_a_partition_has_stopped_after_as_long_as_the_page_says() -> None:
    minutes = STOPPED_AFTER // timedelta(minutes=1)
    assert f"gone or older than {minutes} minutes, and that have committed no batch for {minutes} minutes" in PAGE
