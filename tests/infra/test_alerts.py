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


@holds_for(QUERIES)
def test_a_query_says_its_purpose_and_reads_facts_of_the_watch_as_what_they_are(name: str) -> None:
    first, *rest = QUERIES[name].splitlines()
    assert re.fullmatch(r"// [A-Z].*\.", first)
    asks = "Usage" if name in OF_THE_WORKSPACE else 'AppTraces\n| where Properties.action == "watch"'
    assert "\n".join(rest).startswith(f"{asks}\n")
    read = dict(re.findall(r"(to\w+)\(Properties\.(\w+)\)", QUERIES[name]))
    asked = set(re.findall(r"Properties\.(\w+)", QUERIES[name])) - {"action"}
    assert set(read.values()) == asked <= set(FACTS)
    assert all(re.fullmatch(CONVERTED[FACTS[fact]], conversion) for conversion, fact in read.items())


@holds_for(QUERIES)
def test_a_query_has_an_alert_that_fills_its_limits_and_that_the_page_explains(name: str) -> None:
    assert name in ALERTS and f"| [`{name}`](runbook.md#{name}) |" in PAGE
    text = FILES["app/alerts.bicep"].text
    alert = text[text.index(f"name: '{name}'") :]
    filled = set(re.findall(r"'\{(\w+)\}'", alert[: alert.index("\n  }")]))
    assert set(re.findall(r"\{(\w+)\}", QUERIES[name])) == filled


def test_the_line_of_the_watch_has_the_facts_of_the_page_as_what_they_are() -> None:
    facts = Observation(STREAM, EPOCH, Books((), LetterBooks({}, 0)), (), EPOCH, 0).facts()
    assert facts.pop("action") == "watch"
    assert {name: KINDS[type(value)] for name, value in facts.items()} == FACTS
    assert facts["loss_hours"] == -1.0, "the app does not know the retention"
    assert "| where todouble(Properties.loss_hours) >= 0 and " in QUERIES["events-expiring"]


def test_the_watch_is_logged_as_often_as_the_page_says_and_faults_are_no_watch() -> None:
    assert "Every minute the app logs one line" in PAGE
    schedule = croniter(binding("watch", "timerTrigger")["schedule"], EPOCH, second_at_beginning=True)
    first, second = schedule.get_next(datetime), schedule.get_next(datetime)
    assert second - first == timedelta(minutes=1)
    handler = (ROOT / "handlers" / "timers.py").read_text(encoding="utf-8").partition("def watch(")[2]
    assert re.findall(r'"action": "(\w+)"', handler) == ["watch_failed", "minute_failed"]


def test_alerts_wait_as_long_as_the_watch_looks_back_and_the_page_says() -> None:
    absent, stopped = (one // timedelta(minutes=1) for one in (ABSENT_WITHIN, STOPPED_AFTER))
    (name,) = OF_THE_WORKSPACE
    windows = re.findall(r"windowSize: (.*)", FILES["app/alerts.bicep"].text)
    assert windows == [f"alert.name == '{name}' ? 'P1D' : 'PT{absent}M'"]
    assert f"| events that batches of the last {absent} minutes found absent |" in PAGE
    assert f"gone or older than {stopped} minutes, and that have committed no batch for {stopped} minutes" in PAGE
