import sys
from collections.abc import Iterator

import pytest

from core.aggregation.spark_engine import JobReport, JobRequest, JobState, SparkEngine
from core.errors import EngineRefused, EngineUnreachable
from core.remote.spark.http_engines import DatabricksEngine, LivyEngine, LivyJobs
from core.remote.spark.job_package import package_version
from tests.fakes.spark_service import PATHS, DatabricksService, LivyService, Service, Serving
from tests.patience import until

KINDS = [*PATHS, "databricks"]
WELL, BADLY, LONG = "0", "3", "long"
CLUSTER = {"existing_cluster_id": "c"}


def command(program: str, arguments: list[str]) -> list[str]:
    """A job that ends with the given code, or never."""
    return ["sleep", "600"] if arguments == [LONG] else [sys.executable, "-c", f"raise SystemExit({arguments[0]})"]


def service_of(kind: str) -> Service:
    return DatabricksService(command) if kind == "databricks" else LivyService(command, dialect=kind)


def engine_of(kind: str, address: str, token: str | None = "token") -> SparkEngine:
    if kind == "databricks":
        return DatabricksEngine(address, lambda: token, "dbfs:/jobs", CLUSTER)
    return LivyEngine(address + PATHS[kind], lambda: token, LivyJobs("abfss://jobs", {"conf": {"a": "b"}}))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def serving(kind: str) -> Iterator[Serving]:
    with Serving(service_of(kind)) as serving:
        yield serving


@pytest.fixture
def engine(kind: str, serving: Serving) -> SparkEngine:
    return engine_of(kind, serving.address)


def request(name: str = "agg-1-1", ending: str = WELL) -> JobRequest:
    return JobRequest(name, "job.py", (ending,))


def ended(engine: SparkEngine, job_id: str) -> JobState:
    until(lambda: engine.state(job_id) is not JobState.RUNNING, 20)
    return engine.state(job_id)


LINES = "\n".join(f"line {number}" for number in range(400, 500))
REPORTS = {  # reason, log, link of a job at a service
    "apache": ("the batch is dead", LINES, "{address}/batches/{id}"),
    "synapse": ("Spark_User_App: exit code 3", LINES, "https://logs/{id}"),
    "fabric": ("Spark_User_App: exit code 3", "the last line", "https://logs/{id}"),
    "databricks": ("Task job failed; SystemExit: 3", "many lines\nTraceback", "https://workspace/#job/1/run/{id}"),
}


def test_a_job_is_submitted_with_its_program(engine: SparkEngine, serving: Serving, kind: str) -> None:
    assert ended(engine, engine.submit(request())) is JobState.SUCCEEDED
    job_id = engine.submit(request("agg-1-2", BADLY))
    assert ended(engine, job_id) is JobState.FAILED
    reason, log, link = REPORTS[kind]
    assert engine.report(job_id) == JobReport(reason, log, link.format(address=serving.address, id=job_id))
    body = serving.service.batches[0].request
    if kind == "databricks":
        assert body["idempotency_token"] == body["run_name"] == "agg-1-1"
        (task,) = body["tasks"]
        assert task["spark_python_task"] == {"python_file": "dbfs:/jobs/job.py", "parameters": [WELL]}
        wheels = [f"dbfs:/jobs/hubledger{kind}-{package_version()}-py3-none-any.whl" for kind in ("_packages", "")]
        assert (task["existing_cluster_id"], task["libraries"]) == ("c", [{"whl": one} for one in wheels])
    else:
        assert (body["name"], body["file"], body["args"]) == ("agg-1-1", "abfss://jobs/job.py", [WELL])
        assert body["pyFiles"] == ["abfss://jobs/hubledger.zip"]
        assert body["archives"] == ["abfss://jobs/packages.zip#packages"]
        assert body["conf"] == {"spark.sql.session.timeZone": "UTC", "a": "b"}


def test_a_job_is_found_by_its_name_among_many(engine: SparkEngine) -> None:
    ids = {name: engine.submit(request(name)) for name in (f"agg-{number}-1" for number in range(7))}
    assert {name: engine.find(name) for name in ids} == ids
    assert engine.find("agg-7-1") is None


def test_a_submit_that_a_busy_service_refuses_started_nothing(engine: SparkEngine, serving: Serving) -> None:
    serving.service.faults = ["503", "drop"]
    with pytest.raises(EngineUnreachable, match="503"):
        engine.submit(request())
    assert serving.service.batches == []
    with pytest.raises(EngineUnreachable):
        engine.submit(request())
    serving.service.hidden = 2
    assert [engine.find("agg-1-1"), engine.find("agg-1-1")] == [None, None]
    assert engine.find("agg-1-1") == serving.service.batches[0].id


def test_a_job_runs_until_it_is_cancelled(engine: SparkEngine) -> None:
    job_id = engine.submit(request(ending=LONG))
    assert engine.state(job_id) is JobState.RUNNING
    engine.cancel(job_id)
    assert ended(engine, job_id) is JobState.FAILED


def test_a_job_that_the_service_does_not_know_is_lost_and_cancelling_it_is_nothing(engine: SparkEngine) -> None:
    assert (engine.state("999"), engine.report("999")) == (JobState.LOST, JobReport())
    engine.cancel("999")


def test_of_two_submits_under_one_name_a_service_starts_one_or_the_one_that_has_not_failed_counts(
    engine: SparkEngine, serving: Serving, kind: str
) -> None:
    serving.service.faults = [] if kind in ("databricks", "apache") else ["kill"]
    first = engine.submit(request(ending=LONG))
    if kind == "apache":
        with pytest.raises(EngineUnreachable, match="submitted earlier"):
            engine.submit(request(ending=LONG))
        second = first
    else:
        second = engine.submit(request(ending=LONG))
    started = 1 if kind in ("databricks", "apache") else 2
    assert (second == first, len(serving.service.batches)) == (started == 1, started)
    assert engine.find("agg-1-1") == second


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "apache"])  # Apache Livy asks for no token
def test_a_token_that_is_refused_names_the_call(serving: Serving, kind: str) -> None:
    with pytest.raises(EngineRefused, match="answered 401"):
        engine_of(kind, serving.address, "other").submit(request())


def test_nobody_at_the_address_is_unreachable(kind: str) -> None:
    with Serving(service_of(kind)) as gone:
        address = gone.address
    engine = engine_of(kind, address)
    with pytest.raises(EngineUnreachable):
        engine.submit(request())
    for call in (engine.find, engine.state, engine.report):
        with pytest.raises(EngineUnreachable):
            call("1")
