import json
import socket
import subprocess
import sys
import threading
import time

import pytest

from core.remote.telemetry.opening import close, is_asked_for, set_defaults
from tests.checkout import ROOT
from tests.fakes.otlp_receiver import attributes_of, receiving
from tests.patience import allowed

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}


ASKED = [
    ENDPOINT,
    {**ENDPOINT, "OTEL_SDK_DISABLED": "1"},  # the specification: any value but `true` is false
    {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://a"},
    {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://a"},
    {"OTEL_METRICS_EXPORTER": "console"},
    {"PYTHON_APPLICATIONINSIGHTS_ENABLE_TELEMETRY": "true"},
]
NOT_ASKED: list[dict[str, str]] = [
    {},
    {"OTEL_SERVICE_NAME": "a", "OTEL_TRACES_SAMPLER": "always_on"},
    {**ENDPOINT, "OTEL_SDK_DISABLED": "TRUE"},
    {"OTEL_METRICS_EXPORTER": "none", "OTEL_TRACES_EXPORTER": ""},
    {"PYTHON_APPLICATIONINSIGHTS_ENABLE_TELEMETRY": "false"},
]


def test_only_the_standard_variables_switch_telemetry_on() -> None:
    assert [environ for environ in ASKED if not is_asked_for(environ)] == []
    assert [environ for environ in NOT_ASKED if is_asked_for(environ)] == []


def test_the_defaults_are_those_of_the_specification_and_replace_nothing() -> None:
    environ = {**ENDPOINT, "OTEL_METRICS_EXPORTER": "none", "OTEL_RESOURCE_ATTRIBUTES": "service.name=mine"}
    set_defaults(environ)
    assert (environ["OTEL_TRACES_EXPORTER"], environ["OTEL_METRICS_EXPORTER"]) == ("otlp", "none")
    assert environ["OTEL_EXPORTER_OTLP_PROTOCOL"] == "http/protobuf"
    assert "OTEL_SERVICE_NAME" not in environ
    environ = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://a"}  # no metrics to an address that nobody named
    set_defaults(environ)
    assert (environ["OTEL_TRACES_EXPORTER"], "OTEL_METRICS_EXPORTER" in environ) == ("otlp", False)


def test_an_end_that_hangs_is_left_after_its_limit() -> None:
    class Hangs:
        def shutdown(self) -> None:
            threading.Event().wait()

    began = time.monotonic()
    close([Hangs()], within=0.05)
    assert time.monotonic() - began < 5


def run(script: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", script]
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=allowed(60))


OPENING = """
import os, sys
import handlers.app
from core import measured
from core.remote.telemetry.opening import open_telemetry
open_telemetry(os.environ)
print(measured._recorder, *(name for name in sys.modules if name.startswith("opentelemetry")), flush=True)
os._exit(0)
"""


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({}, ""),
        ({"PYTHON_APPLICATIONINSIGHTS_ENABLE_TELEMETRY": "true"}, ""),
        ({"OTEL_TRACES_EXPORTER": "no-such-exporter"}, "the work goes on without it"),
        ({**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "carrier-pigeon"}, "the work goes on without it"),
    ],
    ids=["off", "the host's without its worker", "a wrong exporter", "a wrong protocol"],
)
def test_the_work_goes_on_without_telemetry_and_its_sdk_when_it_is_off(environ: dict[str, str], said: str) -> None:
    done = run(OPENING, **environ)
    assert (done.returncode, done.stdout.split()[:1]) == (0, ["None"]), done.stderr
    assert said in done.stderr if said else done.stderr == ""
    assert environ or done.stdout.split() == ["None"]


BATCH = """
import json, os, time
from tests.fakes.builders import batch, events
from tests.fakes.store import MemoryStore
from tests.fakes.plain_transform import PLAIN
from core.ingest.ingest import Ingestion, ingest_batch
from core.worker.work import CLOCK
from core.remote.telemetry.opening import open_telemetry
open_telemetry(os.environ)
store = MemoryStore()
ingest_batch(batch(events(0, 4, "quiet")), Ingestion(store, PLAIN, CLOCK))
began = time.monotonic()
for number in range(1, 400):
    ingest_batch(batch(events(5 * number, 5 * number + 4, "quiet")), Ingestion(store, PLAIN, CLOCK))
print(json.dumps({"seconds": time.monotonic() - began, "ends": time.time()}), flush=True)
"""


@pytest.mark.slow
def test_a_process_that_ends_sends_what_is_left() -> None:
    with receiving() as received:
        done = run(BATCH, OTEL_EXPORTER_OTLP_ENDPOINT=received.address, OTEL_SERVICE_NAME="mine")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(received.batches()) == 400
    assert sum(attributes_of(one)["hubledger.events"] for one in received.batches()) == 2000
    assert {one["service.name"] for one in received.resources} == {"mine"}


@pytest.mark.slow
@pytest.mark.parametrize("answers", ["never", "nowhere", "no address"])
def test_a_collector_that_does_not_answer_slows_nothing_and_the_end_is_bounded(answers: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        if answers == "nowhere":
            silent.close()
        endpoint = "htp:/no address" if answers == "no address" else f"http://127.0.0.1:{port}"
        done = run(BATCH, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, OTEL_METRIC_EXPORT_INTERVAL="50")
        ended = time.time()
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["seconds"] < 10  # 400 batches; each would wait for 10 s
    assert ended - said["ends"] < 8
