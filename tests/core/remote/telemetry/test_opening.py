"""core/remote/telemetry/opening.py: on by the standard variables only, free otherwise, and an end within a limit."""

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


@pytest.mark.parametrize(
    ("environ", "asked"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "a", "OTEL_TRACES_SAMPLER": "always_on"}, False),
        (ENDPOINT, True),
        ({**ENDPOINT, "OTEL_SDK_DISABLED": "TRUE"}, False),
        ({**ENDPOINT, "OTEL_SDK_DISABLED": "1"}, True),  # the specification: any value but `true` is false
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://a"}, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://a"}, True),
        ({"OTEL_METRICS_EXPORTER": "console"}, True),
        ({"OTEL_METRICS_EXPORTER": "none", "OTEL_TRACES_EXPORTER": ""}, False),
        ({"PYTHON_APPLICATIONINSIGHTS_ENABLE_TELEMETRY": "true"}, True),
        ({"PYTHON_APPLICATIONINSIGHTS_ENABLE_TELEMETRY": "false"}, False),
    ],
    ids=str,
)
def test_only_the_standard_variables_switch_telemetry_on(environ: dict[str, str], asked: bool) -> None:
    assert is_asked_for(environ) is asked


def test_the_defaults_are_those_of_the_specification_and_replace_nothing() -> None:
    environ = {**ENDPOINT, "OTEL_METRICS_EXPORTER": "none", "OTEL_RESOURCE_ATTRIBUTES": "service.name=mine"}
    set_defaults(environ)
    assert environ["OTEL_TRACES_EXPORTER"] == "otlp"
    assert environ["OTEL_METRICS_EXPORTER"] == "none"
    assert environ["OTEL_EXPORTER_OTLP_PROTOCOL"] == "http/protobuf"
    assert "OTEL_SERVICE_NAME" not in environ


def test_an_endpoint_of_traces_alone_sends_no_metrics_to_an_address_that_nobody_named() -> None:
    environ = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://a"}
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


def test_nothing_of_the_sdk_is_imported_when_telemetry_is_off() -> None:
    done = run(OPENING)
    assert (done.returncode, done.stdout.split()) == (0, ["None"]), done.stderr


@pytest.mark.parametrize(
    "environ",
    [{"OTEL_TRACES_EXPORTER": "no-such-exporter"}, {**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "carrier-pigeon"}],
    ids=str,
)
def test_a_wrong_variable_leaves_the_work_without_telemetry(environ: dict[str, str]) -> None:
    done = run(OPENING, **environ)
    assert (done.returncode, done.stdout.split()[:1]) == (0, ["None"]), done.stderr
    assert "the work goes on without it" in done.stderr


def test_the_setting_of_the_host_without_its_worker_sends_nothing() -> None:
    done = run(OPENING, PYTHON_APPLICATIONINSIGHTS_ENABLE_TELEMETRY="true")
    assert (done.returncode, done.stdout.split()[:1], done.stderr) == (0, ["None"], "")


BATCH = """
import json, os, time
from tests.fakes.builders import batch, events
from tests.fakes.memory_store import MemoryStore
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
