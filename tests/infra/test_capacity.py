import gzip
import json
import re
import subprocess
import sys
import threading
from collections import Counter
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from croniter import croniter

from core.measured import GAUGES
from core.remote.telemetry.signals import metric_of
from core.settings import OWN_LINES
from local.functions_host.json_sections import parse_time_span
from tests.fakes.builders import EPOCH
from tests.handlers.test_function_app import index
from tests.infra.bicep import at
from tests.infra.plan import Evaluator, plan
from tests.infra.test_made import RULES, made, of, the
from tests.infra.test_policies import ALERTS, FILES
from tests.patience import allowed
from tests.repo.product import ROOT
from tools.capacity import aggregation, limits, telemetry
from tools.capacity import costs as parts
from tools.capacity.__main__ import PARTITIONS, main, report
from tools.capacity.aggregation import WINDOW_BYTES, Aggregating, Pace
from tools.capacity.costs import DEV_PROFILE, STANDARD_PROFILE, at_rest, bill, costs_report, extras
from tools.capacity.limits import DATABASES, DAY, MB
from tools.capacity.prices import EUROPE
from tools.capacity.sizing import Costs, Load, size, stored_bytes_per_day
from tools.capacity.telemetry import ALERT_SHARE, LINE_BYTES, METRIC_BYTES, OWN_METRIC_BYTES, Kind, total, volume

PAGE, DEPLOY, AGGREGATION = (
    (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("capacity", "deploy", "aggregation-costs")
)
STEPS = (1_000, 10_000, 100_000, 1_000_000)
SIZING = size(Load(1_000))


def test_each_part_grows_at_the_limit_of_its_tier() -> None:
    for events, size_of, units in ((1_000, 1_000, 1), (1_001, 1_000, 2), (1_000, 5_000, 5)):
        assert size(Load(events, event_bytes=size_of, headroom=1)).hub_units == units
    tiers = ((40_000, limits.STANDARD), (40_001, limits.PREMIUM), (1_000_000, limits.DEDICATED))
    for events, tier in tiers:
        assert size(Load(events, headroom=1, log_bytes_per_event=1)).hub_tier is tier
    assert size(Load(20_000, headroom=1)).partitions == 20, "a partition of Standard takes no more than one unit"
    for events, cores in ((9_000, 2), (9_001, 4)):
        assert str(size(Load(events, headroom=1)).database) == f"GeneralPurpose {cores} vCores"
    assert [size(Load(events, headroom=1)).shards for events in (100_000, 100_001)] == [1, 2]
    heavy = Costs(cpu_seconds_per_event=1e-3)
    assert [size(Load(8_000, headroom=1), heavy, memory=memory).instances for memory in (2048, 4096)] == [8, 4]
    assert stored_bytes_per_day(Load(10, row_bytes_per_event=100)) == 86_400_000


def test_azure_starts_as_many_instances_as_are_bought() -> None:
    """Azure divides the waiting events by the threshold of host.json, and a batch waits for a second."""
    hubs = json.loads((ROOT / "host.json").read_text(encoding="utf-8"))["extensions"]["eventHubs"]
    threshold, wait = hubs["targetUnprocessedEventThreshold"], parse_time_span(hubs["maxWaitTime"]).total_seconds()
    assert threshold * Costs().cpu_seconds_per_event <= wait, "one instance would not keep up with what waits for it"
    for events in (1_000, 3_000, 10_000, 16_000):
        assert ceil(events * wait / threshold) <= size(Load(events)).instances


def test_the_page_quotes_the_calculator() -> None:
    def row_of(events: int) -> str:
        text = report(size(Load(events)))
        found = dict(re.findall(r"^  (\w+): +(.+)$", text, re.MULTILINE))
        (first,) = re.findall(r"^breaks first: (.+?);", text, re.MULTILINE)
        names = ("database", "throughput", "partitions", "instances")
        return f"| {events:,} | {' | '.join(found[name] for name in names)} | {first} |"

    load = Load(0)
    rows = [
        f"| {one} | {one.log_bytes_per_second / MB:,.0f} MB/s | {carried:,.0f} | {carried / load.headroom:,.0f} |"
        for one in DATABASES
        for carried in [one.log_bytes_per_second / load.log_bytes_per_event]
    ]
    assert report(size(Load(STEPS[1]))) in PAGE
    assert len(rows) >= 6 and [row for row in (*map(row_of, STEPS), *rows) if row not in PAGE] == []
    assert f"{Costs().cpu_seconds_per_event * 1e6:.0f} µs" in PAGE
    assert not re.search(r"\bTBD\b|\?\?\?", PAGE)


BEYOND = "argument readings: must be above 0 and below 1,000,000,000,000, not"


@pytest.mark.parametrize(
    ("command", "wrong", "says"),
    [
        *((main, wrong, "") for wrong in (["0"], ["-1"], ["nan"], ["1e13"], [], ["10", "--bytes", "0"])),
        (main, ["10", "--memory", "1"], ""),
        (main, ["many"], "a number, not 'many'"),
        (main, ["1", "--partitions", "1e3"], "a whole number, not '1e3'"),
        *((aggregation.main, [wrong], f"{BEYOND} '{wrong}'") for wrong in ("0", "-1.5", "nan")),
        (aggregation.main, ["1_000", "--interval", "0"], "argument --interval: must be at least 1, not '0'"),
    ],
)
def test_wrong_figures_are_refused_in_a_clear_line(
    command: Any, wrong: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command(wrong)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err.splitlines()[-1]


def default(name: str) -> Any:
    """Return the default of a parameter of main.bicep in the profile `standard`."""
    return Evaluator(FILES["main.bicep"], {}).name(name)


def months(rate: float) -> tuple[dict[str, float], dict[str, float]]:
    sizing = size(Load(rate), memory=2048)
    idle, loaded = (bill(STANDARD_PROFILE, each, PARTITIONS) for each in (at_rest(sizing), sizing))
    return {one.part: one.dollars for one in idle}, {one.part: one.dollars for one in loaded}


def test_the_page_quotes_the_costs_and_leaves_the_arithmetic_to_the_program() -> None:
    of_parts, _, of_choices = costs_report(SIZING, PARTITIONS).partition("\n\n")
    for table in (of_parts, of_choices):
        rows = [row[: row.rindex("|", 0, -1) + 1].rstrip() for row in table.splitlines()]
        assert len(rows) > 2 and "\n".join(rows) in DEPLOY
    assert costs_report(size(Load(100_000)), 16).startswith("costs: this program has prices of Standard hubs")
    *each, whole = bill(DEV_PROFILE, at_rest(SIZING), PARTITIONS)
    assert whole.dollars == sum(one.dollars for one in each)
    assert EUROPE * whole.dollars < 100
    assert f"**`PROFILE=dev`** costs about {ceil(EUROPE * whole.dollars)} $" in DEPLOY


def test_the_costs_count_the_defaults_endpoints_and_nodes_of_the_templates() -> None:
    assert (default("partitionCount"), default("instanceMemoryMB")) == (PARTITIONS, SIZING.memory)
    assert (default("throughputUnits"), default("captureEnabled"), default("sqlVCores")) == (1, True, 2)
    assert len(ALERTS) == parts.RULES
    ready = [one.name for one in FILES["main.bicep"].of_kind("parameter") if one.name.endswith("AlwaysReady")]
    counted = {"ingestAlwaysReady": STANDARD_PROFILE.ingest, "durableAlwaysReady": STANDARD_PROFILE.durable}
    assert {name: default(name) for name in ready} == {**counted, "httpAlwaysReady": 0}
    made = Counter(kind.partition(":")[0] for _, kind, _ in plan(FILES, {"vnetEnabled": True}))
    assert made["avm/res/network/private-endpoint"] == parts.ENDPOINTS
    assert made["avm/res/network/private-dns-zone"] == parts.ZONES
    pool = next(one for one in FILES["app/spark.bicep"].of_kind("resource") if "bigDataPools" in one.of)
    assert at(pool.value, "properties.autoPause.delayInMinutes") == parts.POOL_PAUSE
    assert 4 * at(pool.value, "properties.autoScale.minNodeCount") == parts.SPARK_CORES
    assert default("sparkNodeSize") == "Small"


def test_an_idle_database_pays_for_the_minimum_of_the_template_and_a_busy_one_is_cheaper_provisioned() -> None:
    """The bill of serverless follows the cores in use, up to all of them."""
    (minimum,) = re.findall(
        r"minCapacity: .*<= 4 \? json\('0\.5'\) : \(sizes.vCores \+ 7\) / 8", FILES["app/sql.bicep"].text
    )
    idle = [months(rate)[0]["Azure SQL, serverless"] for rate in (1_000, 33_000)]
    assert minimum and idle == pytest.approx([2.05 / 3 * 730 * 0.5218, 2 * 730 * 0.5218])
    loaded = months(1_000)[1]["Azure SQL, serverless"]
    (provisioned,) = [one.dollars for one in extras(SIZING) if "provisioned" in one.part]
    rows = loaded - 2 * 730 * 0.5218
    assert idle[0] < provisioned < loaded - rows
    assert rows == pytest.approx(394.2 * 0.115)


QUOTED = (*(Aggregating(number) for number in (1e6, 1e8, 1e9)), Aggregating(1e6, Pace(interval=3_600)))


def row_of(one: Aggregating) -> str:
    found = dict(re.findall(r"^  ([\w ]+): +(.+)$", aggregation.report(one), re.MULTILINE))
    results = {name: text.rpartition(" = ")[2] for name, text in found.items()}
    run, log, lake = results["run"], results["log"].partition(",")[0], results["lake"].partition(", without")[0]
    database = found["database"].partition(" for both")[0]
    cells = (run, results["job"], results["commit"], results["cores"], log, database, results["readings"], lake)
    return f"| {one.readings:,.0f} | {one.pace.interval:,} s | {' | '.join(cells)} |"


def test_the_page_on_aggregation_quotes_the_calculator_and_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert [row for row in map(row_of, QUOTED) if row not in AGGREGATION] == []
    assert aggregation.main(["1_000_000", "--interval", "3600"]) == 0
    assert capsys.readouterr().out.strip() == aggregation.report(QUOTED[3])
    pace, load = Pace(), Load(0)
    assert pace.added_per_second == pace.read_per_second
    assert pace.log_bytes_per_window == load.log_bytes_per_event
    named = (
        f"{pace.added_per_second:,.0f}/s of readings read and added up",
        f"{pace.staged_per_second:,.0f}/s of windows staged",
        f"{pace.session_seconds:g} s for the start of a session",
        f"{pace.committed_per_second:,.0f}/s of windows committed",
        f"{pace.log_bytes_per_window:,} B of log for a reading or a window",
        f"{load.row_bytes_per_event} B for the row of a reading",
        f"the row of a window has {WINDOW_BYTES} B",
        f"{pace.rows_limit:,} x 288 runs = {Aggregating(1e9).ends_at:,.0f} readings a day",
        f"288 runs take {288 * 120 / 3_600 * pace.cluster_cores:.0f} core hours",
        f"24 runs take {24 * 120 / 3_600 * pace.cluster_cores:.0f}.",
        f"({180 * pace.committed_per_second:,.0f} windows)",
    )
    page = " ".join(AGGREGATION.split())
    assert [one for one in named if one not in page] == []


LARGEST, USUAL = Load(10_000), Load(1_000)  # the loads that the default cap must bear


def test_the_cap_that_is_chosen_is_above_what_is_computed_and_the_alert_comes_before_it() -> None:
    cap = Evaluator(FILES["main.bicep"], {}).name("logDailyGigabytes")
    assert total(volume(LARGEST, 32, size(LARGEST).instances)) < ALERT_SHARE * cap
    unsampled = Kind(
        "a request for each batch",
        DAY * telemetry.batches_per_second(USUAL, 16) * telemetry.REQUEST_ITEMS,
        telemetry.REQUEST_BYTES,
    )
    assert total((*volume(USUAL, 16, 1), unsampled)) < cap, "of a host that samples no requests"
    for chosen in (5, 7):
        resources, limit = made(logDailyGigabytes=chosen), f"{1000 * ALERT_SHARE * chosen:.0f}"
        workspace = the(resources, "Microsoft.OperationalInsights/workspaces")
        assert workspace["properties"]["workspaceCapping"] == {"dailyQuotaGb": chosen}
        query = of(resources, RULES)["ar-token-log-cap"]["criterias"]["allOf"][0]["query"]
        assert f"| where {limit} > 0 and megabytes > {limit}\n" in query, "without a cap, -1, it is silent"


def test_metrics_lines_and_requests_are_sent_as_seldom_as_the_arithmetic_has_them() -> None:
    settings = of(made(), "Microsoft.Web/sites/config")["func-token/appsettings"]["properties"]
    assert settings["OTEL_METRIC_EXPORT_INTERVAL"] == str(1000 * telemetry.METRIC_SECONDS)
    assert settings["OTEL_TRACES_SAMPLER"] == "microsoft.rate_limited"
    assert settings["OTEL_TRACES_SAMPLER_ARG"] == str(telemetry.REQUESTS_PER_SECOND)
    logging = json.loads((ROOT / "host.json").read_text(encoding="utf-8"))["logging"]
    assert logging == {"logLevel": {"default": "Warning"}}, "the host sends its own lines from warning on only"


def sent(program: str, folder: Path, environment: dict[str, str], *arguments: str) -> list[dict[str, Any]]:
    """Run a program that sends telemetry to an endpoint like that of Application Insights, and return the items."""
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
SENDER = """
import json, logging, os, sys
from azure.monitor.opentelemetry import configure_azure_monitor
from opentelemetry import context, metrics
from opentelemetry._logs import get_logger_provider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from core.ledger.totals import Books, LetterBooks
from core.ledger.watch import Observation
from core.measured import measured
from core.remote.telemetry.opening import open_telemetry
from tests.fakes.builders import EPOCH, partition
key = "InstrumentationKey=00000000-0000-0000-0000-000000000000"
configure_azure_monitor(
    connection_string=f"{key};IngestionEndpoint={sys.argv[1]}", logger_name="hubledger", disable_offline_storage=True
)
unsampled = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"}
context.attach(TraceContextTextMapPropagator().extract(unsampled))
log = logging.getLogger("hubledger.ingest")
log.setLevel(logging.INFO)
for text, facts in json.loads(sys.argv[2]):
    log.info(text, extra=facts)
get_logger_provider().force_flush()
os.environ["PYTHON_APPLICATIONINSIGHTS_ENABLE_TELEMETRY"] = "true"
hub = partition("12", hub="evhns-abcdefghijklm.servicebus.windows.net/telemetry")
open_telemetry(os.environ)
measured("watch")(lambda: Observation(hub.stream, EPOCH, Books((), LetterBooks({}, 0)), (), EPOCH, 0))()
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
def test_lines_and_metrics_reach_azure_whatever_is_sampled_and_are_as_large_as_the_arithmetic_has_them() -> None:
    settings = FILES["app/function.bicep"].var("hostSettings")
    environment = {name: value for name, value in settings.items() if name.startswith("OTEL_")}
    own = {"action": "watch", "ledger_balanced": False, "lag_seconds": 3.5, "letters_open": 12}
    given = [("batch ingested", a_line(1)), ("batches ingested", a_line(60)), ("books watched", own)]
    got = sent(SENDER, ROOT, environment, json.dumps(given))
    size_of = {id(each): len(json.dumps(each, separators=(",", ":"))) for each in got}
    lines = [each for each in got if each["data"]["baseType"] == "MessageData"]
    said = [each["data"]["baseData"] for each in lines]
    assert [line["message"] for line in said] == [text for text, _ in given]
    found = said[-1]["properties"]
    assert (found["action"], found["ledger_balanced"].lower()) == ("watch", "false")
    assert (float(found["lag_seconds"]), int(found["letters_open"])) == (3.5, 12), "alerts read them as properties"
    assert 0.9 * LINE_BYTES < max(size_of[id(each)] for each in lines) <= LINE_BYTES
    metrics = {one["name"]: size_of[id(each)] for each in got for one in each["data"]["baseData"].get("metrics", ())}
    of_app = {name: size for name, size in metrics.items() if name.startswith("hubledger.")}
    of_worker = [size for name, size in metrics.items() if name.startswith("\\")]
    assert set(of_app) == {metric_of(fact)[0] for fact in GAUGES}
    assert 0.8 * OWN_METRIC_BYTES < max(of_app.values()) <= OWN_METRIC_BYTES
    assert len(of_worker) == telemetry.WORKER_METRICS
    assert 0.9 * METRIC_BYTES < max(of_worker) <= METRIC_BYTES


def seconds_between(schedule: str) -> int:
    turns = croniter(schedule, EPOCH, second_at_beginning=True)
    first, second = turns.get_next(datetime), turns.get_next(datetime)
    return (second - first) // timedelta(seconds=1)


def test_timers_batches_and_lines_are_as_many_as_the_arithmetic_has_them_whatever_the_load() -> None:
    bindings = [(name, one) for name, each in index().items() for one in each["bindings"]]
    timers = {name: seconds_between(one["schedule"]) for name, one in bindings if one["type"] == "timerTrigger"}
    assert timers == telemetry.TIMERS

    def lines(load: float) -> float:
        return next(one for one in volume(Load(load), 16, 1) if one.name == "lines of batches").items / (DAY / 60)

    assert [lines(load) for load in (1, 1_000, 16_000)] == [40 + 16, 2 * OWN_LINES + 16, 2 * OWN_LINES + 16]
    assert lines(0.1) == pytest.approx(6)
    assert [telemetry.batches_per_second(Load(load), 16) for load in (1_000, 10_000, 1, 0)] == [16, 100, 1, 0]
    assert Kind("x", 1_000_000, 2_000).gigabytes == 2


def test_the_page_has_the_sums_of_the_telemetry_and_the_query_sums_what_counts_towards_the_cap() -> None:
    page = " ".join((ROOT / "docs" / "capacity.md").read_text(encoding="utf-8").split())
    report = telemetry.telemetry_report(size(Load(1_000)), 16)
    ((sent, cap),) = (re.findall(r"[\d.]+(?= GB)", line) for line in re.findall(r"^  all: .*", report, re.M))
    assert f"At 1,000 events/s on 16 partitions the app sends {sent} GB a day" in page
    assert f"the daily cap must be above {cap} GB" in page
    query = (ROOT / "infra" / "alerts" / "log-cap.kql").read_text(encoding="utf-8")
    assert query.splitlines()[1:4] == ["Usage", "| where IsBillable == true", "| summarize megabytes = sum(Quantity)"]
