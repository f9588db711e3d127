"""`make demo AGGREGATE=1` and `make serve` as a person starts them: real spark-submit, and a page that answers."""

import http.client
import json
import re
import signal
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from local.demo.aggregation import SUBMIT
from local.programs import APP
from tests.acceptance.demo.started import KEYS, Ended, Start, free_port, wait_until
from tests.patience import allowed
from tests.spark.here import environment, lacking

SPARK_DEADLINE = 900.0  # seconds of an idle machine: Spark starts four times or more
WHY = lacking() or (None if SUBMIT.exists() else f"{SUBMIT} is missing")
pytestmark = [pytest.mark.soak, pytest.mark.skipif(WHY is not None, reason=f"the demo cannot aggregate: {WHY}")]


@pytest.fixture(autouse=True)
def quick_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the jobs plan and compile as those of the other tests do: half of the processor's time of a job."""
    for name, value in environment().items():
        monkeypatch.setenv(name, value)


def get(address: str) -> tuple[int, str]:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=allowed(60))
    try:
        connection.request("GET", parts.path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def assert_worked(ended: Ended, aggregation: dict[str, int]) -> None:
    """Check that three runs were committed, with a replay and after a kill, and that a line names each."""
    assert list(aggregation) == ["runs", "replays", "killed", "windows"]
    assert aggregation["runs"] >= 3 and aggregation["replays"] == 1 and aggregation["killed"] >= 1
    assert any(f"aggregating: run {aggregation['runs']}, attempt " in line for line in ended.out)
    assert any(line.startswith("killing Spark, process ") for line in ended.out)
    (replayed,) = [line for line in ended.out if line.startswith("replayed ")]
    assert re.fullmatch(r"replayed [\d,]+ events: [1-9][\d,]* rows were replaced", replayed)


def test_a_demo_that_aggregates_proves_it_and_its_files_are_served(start: Start, tmp_path: Path) -> None:
    demo = start("local.demo", "--events", "3000", "--kill", "1", "--aggregate", "--folder", str(tmp_path))
    ended = demo.wait(SPARK_DEADLINE)
    assert ended.code == 0, ended.err
    assert demo.left() == []
    figures = json.loads(ended.out[-1])
    assert [name for name in figures if name not in ("kills", "gaps")] == [
        *(name for name in KEYS if name != "gaps"),
        "aggregate",
        "aggregation",
        "home_page",
    ]
    assert (figures["kills"], figures["published"], figures["accounted"]) == (1, 3_000, 3_000)
    aggregate, aggregation = figures["aggregate"], figures["aggregation"]
    assert (aggregate["name"], aggregate["equals_recount"]) == ("home_activity", True)
    assert 2_000 < aggregate["rows"] < 3_000 and 0 < aggregation["windows"] <= aggregate["rows"]
    assert_worked(ended, aggregation)
    (line,) = [line for line in ended.out if line.startswith("a home's page: ")]
    assert figures["home_page"] in line
    (folder,) = re.findall(r"make serve FOLDER=(\S+?)`", line)
    assert Path(folder).parent == tmp_path
    port = free_port()
    serve = start("local.serve", "--folder", folder, "--port", str(port))
    serve.wait_for_line(lambda line: line.startswith(f"ready: http://localhost:{port}/api/ops"))
    page = figures["home_page"].replace(":7071", f":{port}")
    status, body = get(page)
    assert (status, "<title>" in body) == (200, True), body
    status, body = get(f"{page}/activity")
    kinds = json.loads(body)["day"]["kinds"]
    assert status == 200 and sum(one["readings"] for one in kinds) > 0
    status, body = get(f"http://localhost:{port}/api/status")
    books = json.loads(body)
    assert (status, books["accounted"], books["ledger_balanced"]) == (200, 3_000, True)
    status, body = get(f"http://localhost:{port}/api/aggregations")
    assert (json.loads(body)["cut"], len(json.loads(body)["runs"])) == (
        json.loads(body)["reached"],
        aggregation["runs"],
    )
    serve.stop(signal.SIGINT)
    assert serve.wait().code == 0
    assert serve.left() == []


def test_a_demo_that_is_stopped_while_spark_works_leaves_no_process_behind(start: Start, tmp_path: Path) -> None:
    demo = start("local.demo", "--events", "1000000", "--rate", "500", "--aggregate", "--folder", str(tmp_path))
    demo.wait_for_line(lambda line: line.startswith("publishing"))
    wait_until(lambda: any(tmp_path.glob("run-*/spark/*/group")))
    demo.stop(signal.SIGTERM)
    ended = demo.wait()
    assert ended.code == 128 + signal.SIGTERM
    wait_until(lambda: demo.left() == [])


def test_make_says_how_to_get_java_and_starts_nothing() -> None:
    done = subprocess.run(
        ["make", "--no-print-directory", "demo", "AGGREGATE=1", "JAVA="],
        cwd=APP,
        capture_output=True,
        text=True,
        timeout=allowed(60),
        check=False,
    )
    assert done.returncode != 0
    assert "Java is missing" in done.stderr and "apt-get install openjdk-17-jre-headless" in done.stderr
    assert "publishing" not in done.stdout
