"""The cost of telemetry: measured sizes, settings of the templates that limit it, and a cap above it."""

import gzip
import json
import re
import subprocess
import sys
import threading
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from croniter import croniter

from core.measured import GAUGES
from core.remote.telemetry.signals import metric_of
from core.settings import OWN_LINES
from tests.fakes.builders import EPOCH
from tests.handlers.test_function_app import index
from tests.infra.plan import Evaluator
from tests.infra.test_made import RULES, made, of, the
from tests.infra.test_policies import FILES
from tests.patience import allowed
from tests.repo.product import ROOT
from tools.capacity.limits import DAY
from tools.capacity.sizing import Load, size
from tools.capacity.telemetry import (
    ALERT_SHARE,
    LINE_BYTES,
    METRIC_BYTES,
    METRIC_SECONDS,
    OWN_METRIC_BYTES,
    REQUEST_BYTES,
    REQUEST_ITEMS,
    REQUESTS_PER_SECOND,
    TIMERS,
    WORKER_METRICS,
    Kind,
    batches_per_second,
    telemetry_report,
    total,
    volume,
)

LARGEST, USUAL = Load(10_000), Load(1_000)  # the loads that the default cap must bear


def test_the_cap_is_above_what_is_computed_and_the_alert_comes_before_it() -> None:
    cap = Evaluator(FILES["main.bicep"], {}).name("logDailyGigabytes")
    assert total(volume(LARGEST, 32, size(LARGEST).instances)) < ALERT_SHARE * cap
    unsampled = Kind("a request for each batch", DAY * batches_per_second(USUAL, 16) * REQUEST_ITEMS, REQUEST_BYTES)
    assert total((*volume(USUAL, 16, 1), unsampled)) < cap, "of a host that samples no requests"


@pytest.mark.parametrize("cap", [5, 7])
def test_workspace_and_alert_have_the_cap_that_is_chosen(cap: int) -> None:
    resources = made(logDailyGigabytes=cap)
    workspace = the(resources, "Microsoft.OperationalInsights/workspaces")
    assert workspace["properties"]["workspaceCapping"] == {"dailyQuotaGb": cap}
    query = of(resources, RULES)["ar-token-log-cap"]["criterias"]["allOf"][0]["query"]
    limit = f"{1000 * ALERT_SHARE * cap:.0f}"
    assert f"| where {limit} > 0 and megabytes > {limit}\n" in query, "without a cap, -1, it is silent"


def test_metrics_lines_and_requests_are_sent_as_seldom_as_the_arithmetic_has_them() -> None:
    settings = of(made(), "Microsoft.Web/sites/config")["func-token/appsettings"]["properties"]
    assert settings["OTEL_METRIC_EXPORT_INTERVAL"] == str(1000 * METRIC_SECONDS)
    assert settings["OTEL_TRACES_SAMPLER"] == "microsoft.rate_limited"
    assert settings["OTEL_TRACES_SAMPLER_ARG"] == str(REQUESTS_PER_SECOND)
    logging = json.loads((ROOT / "host.json").read_text(encoding="utf-8"))["logging"]
    assert logging == {"logLevel": {"default": "Warning"}}, "the host sends its own lines from warning on only"


def sent(program: str, folder: Path, environment: dict[str, str], *arguments: str) -> list[dict[str, Any]]:
    """Run a program that sends telemetry to an endpoint as that of Application Insights, and return what arrived."""
    got: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.extend(json.loads(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body))
            answer = b'{"itemsReceived": 1, "itemsAccepted": 1, "errors": []}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    environment = {"APPLICATIONINSIGHTS_STATSBEAT_DISABLED_ALL": "true", **environment}
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        command = [sys.executable, "-c", program, f"http://127.0.0.1:{server.server_port}/", *arguments]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=allowed(60), check=False
        )
        server.shutdown()
    assert done.returncode == 0, done.stderr
    return got


NEEDS_AZURE = pytest.mark.skipif(
    find_spec("azure.monitor") is None,
    reason="azure-monitor-opentelemetry is not installed: pip install -r requirements.txt",
)
OPENS = """
import json, logging, os, sys
from azure.monitor.opentelemetry import configure_azure_monitor
from opentelemetry import context, metrics
from opentelemetry._logs import get_logger_provider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
key = "InstrumentationKey=00000000-0000-0000-0000-000000000000"
configure_azure_monitor(
    connection_string=f"{key};IngestionEndpoint={sys.argv[1]}", logger_name="hubledger", disable_offline_storage=True
)
"""
SENDER = f"""{OPENS}
unsampled = {{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"}}
context.attach(TraceContextTextMapPropagator().extract(unsampled))
log = logging.getLogger("hubledger.ingest")
log.setLevel(logging.INFO)
for text, facts in json.loads(sys.argv[2]):
    log.info(text, extra=facts)
get_logger_provider().force_flush()
metrics.get_meter_provider().force_flush()
"""
OWN_SENDER = f"""{OPENS}
from core.ledger.totals import Books, LetterBooks
from core.ledger.watch import Observation
from core.measured import measured
from core.remote.telemetry.opening import open_telemetry
from tests.fakes.builders import EPOCH, partition
os.environ["PYTHON_APPLICATIONINSIGHTS_ENABLE_TELEMETRY"] = "true"
hub = partition("12", hub="evhns-abcdefghijklm.servicebus.windows.net/telemetry")
open_telemetry(os.environ)
measured("watch")(lambda: Observation(hub.stream, EPOCH, Books((), LetterBooks({{}}, 0)), (), EPOCH, 0))()
metrics.get_meter_provider().force_flush()
"""
PARTITION = "evhns-abcdefghijklm.servicebus.windows.net/telemetry/hubledger/12"


def a_line(batches: int) -> dict[str, Any]:
    """Return the fields of a line with numbers as long as those of a busy hub."""
    ends = {"first": 1_234_567_890, "last": 1_234_567_952}
    names = ("dead_lettered", "held", "redelivered", "healed", "absent", "filtered")
    counts = {**dict.fromkeys(names, 0), "commits": batches, "batches": batches, "seconds": 0.013}
    rest = {"slowest_seconds": 0.1, "minute": "2026-01-01T00:00:00+00:00"}
    own: dict[str, Any] = {"gaps": [], "invocation_id": "0af76519-16cd-43dd-8448-eb211c80319c"}
    sizes = dict.fromkeys(("events", "rows", "written"), 62 * batches)
    return {"action": "ingest", "partition": PARTITION, **ends, **counts, **sizes, **(own if batches == 1 else rest)}


@NEEDS_AZURE
def test_metrics_of_the_app_reach_azure_and_are_as_large_as_the_arithmetic_has_them() -> None:
    environment = {
        "OTEL_SERVICE_NAME": "func-abcdefghijklm",  # as Azure's, so that no name of this machine counts
        "OTEL_RESOURCE_ATTRIBUTES": f"service.instance.id={'0' * 64}",
    }
    got = sent(OWN_SENDER, ROOT, environment)
    own = {
        one["name"]: len(json.dumps(each, separators=(",", ":")))
        for each in got
        for one in each["data"]["baseData"].get("metrics", ())
        if one["name"].startswith("hubledger.")
    }
    assert set(own) == {metric_of(fact)[0] for fact in GAUGES}
    assert 0.8 * OWN_METRIC_BYTES < max(own.values()) <= OWN_METRIC_BYTES


@NEEDS_AZURE
def test_lines_are_sent_whatever_is_sampled_and_are_as_large_as_the_arithmetic_has_them(tmp_path: Path) -> None:
    settings = FILES["app/function.bicep"].var("hostSettings")
    environment = {name: value for name, value in settings.items() if name.startswith("OTEL_")}
    own = {"action": "watch", "ledger_balanced": False, "lag_seconds": 3.5, "letters_open": 12}
    given = [("batch ingested", a_line(1)), ("batches ingested", a_line(60)), ("books watched", own)]
    got = sent(SENDER, tmp_path, environment, json.dumps(given))
    sizes: dict[str, list[int]] = {"MessageData": [], "MetricData": []}
    for each in got:
        sizes[each["data"]["baseType"]].append(len(json.dumps(each, separators=(",", ":"))))
    counters = {name for each in got for one in each["data"]["baseData"].get("metrics", ()) for name in [one["name"]]}
    lines = [each["data"]["baseData"] for each in got if each["data"]["baseType"] == "MessageData"]
    assert [line["message"] for line in lines] == [text for text, _ in given]
    found = lines[-1]["properties"]
    assert (found["action"], found["ledger_balanced"].lower()) == ("watch", "false")
    assert (float(found["lag_seconds"]), int(found["letters_open"])) == (3.5, 12), "alerts read them as properties"
    assert 0.9 * LINE_BYTES < max(sizes["MessageData"]) <= LINE_BYTES
    assert len([name for name in counters if name.startswith("\\")]) == WORKER_METRICS
    assert any(0.9 * METRIC_BYTES < each <= METRIC_BYTES for each in sizes["MetricData"])


def seconds_between(schedule: str) -> int:
    turns = croniter(schedule, EPOCH, second_at_beginning=True)
    first, second = turns.get_next(datetime), turns.get_next(datetime)
    return (second - first) // timedelta(seconds=1)


def test_timers_batches_and_lines_are_as_many_as_the_arithmetic_has_them_whatever_the_load() -> None:
    bindings = [(name, one) for name, each in index().items() for one in each["bindings"]]
    timers = {name: seconds_between(one["schedule"]) for name, one in bindings if one["type"] == "timerTrigger"}
    assert timers == TIMERS

    def lines(load: float) -> float:
        return next(one for one in volume(Load(load), 16, 1) if one.name == "lines of batches").items / (DAY / 60)

    assert [lines(load) for load in (1, 1_000, 16_000)] == [40 + 16, 2 * OWN_LINES + 16, 2 * OWN_LINES + 16]
    assert lines(0.1) == pytest.approx(6)
    assert [batches_per_second(Load(load), 16) for load in (1_000, 10_000, 1, 0)] == [16, 100, 1, 0]
    assert Kind("x", 1_000_000, 2_000).gigabytes == 2


def test_the_page_has_the_sums_of_the_telemetry_and_the_query_sums_what_counts_towards_the_cap() -> None:
    page = " ".join((ROOT / "docs" / "capacity.md").read_text(encoding="utf-8").split())
    report = telemetry_report(size(Load(1_000)), 16)
    ((sent, cap),) = (re.findall(r"[\d.]+(?= GB)", line) for line in re.findall(r"^  all: .*", report, re.M))
    assert f"At 1,000 events/s on 16 partitions the app sends {sent} GB a day" in page
    assert f"the daily cap must be above {cap} GB" in page
    query = (ROOT / "infra" / "alerts" / "log-cap.kql").read_text(encoding="utf-8")
    assert query.splitlines()[1:4] == ["Usage", "| where IsBillable == true", "| summarize megabytes = sum(Quantity)"]
