"""Spark over HTTP: batches of a Livy API (Synapse, Fabric, Apache Livy), and one-time runs of Databricks.

Sources: Livy's REST API, "Spark Batch" of Azure Synapse (2019-11-01-preview), the Livy API of Microsoft Fabric.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from core.aggregation.spark_engine import JobReport, JobRequest, JobState
from core.errors import EngineRefused, EngineUnreachable
from core.remote.spark.http import JsonHttp, NotFound, Token
from core.remote.spark.job_package import ARCHIVE, PACKAGES, UNPACKED, package_version, packages_wheel, wheel

RUNS_A_PAGE, MOST_PAGES_OF_RUNS = 25, 40
TASK = "job"
_ENDED_RUN = ("TERMINATED", "SKIPPED", "INTERNAL_ERROR")


class DatabricksEngine:
    """A SparkEngine. `jobs` is the place of the programs. `cluster` is `new_cluster` or `existing_cluster_id`."""

    name = "databricks"

    def __init__(self, address: str, token: Token, jobs: str, cluster: Mapping[str, Any]) -> None:
        self._http = JsonHttp(f"{address}/api/2.2/jobs/runs", token)
        self._jobs = jobs
        self._cluster = cluster

    def submit(self, request: JobRequest) -> str:
        """Start a job. A submit under the same name returns the same run."""
        answer = self._http.post("/submit", self.batch(request))
        if answer.get("run_id") is None:
            raise EngineUnreachable(f"the answer has no run_id; it has {sorted(answer)}")
        return str(answer["run_id"])

    def batch(self, request: JobRequest) -> dict[str, Any]:
        """Return the body of the request that starts a job."""
        program = {"python_file": f"{self._jobs}/{request.program}", "parameters": list(request.arguments)}
        version = package_version()
        libraries = [{"whl": f"{self._jobs}/{name}"} for name in (packages_wheel(version), wheel(version))]
        task = {"task_key": TASK, "spark_python_task": program, "libraries": libraries, **self._cluster}
        return {"run_name": request.name, "idempotency_token": request.name, "tasks": [task]}

    def find(self, name: str) -> str | None:
        query: dict[str, object] = {"run_type": "SUBMIT_RUN", "limit": RUNS_A_PAGE}
        for _ in range(MOST_PAGES_OF_RUNS):
            page = self._http.get("/list", **query)
            for run in page.get("runs") or []:
                if run.get("run_name") == name:
                    return str(run["run_id"])
            if not page.get("next_page_token"):
                return None
            query["page_token"] = page["next_page_token"]
        return None

    def state(self, job_id: str) -> JobState:
        try:
            state = self._http.get("/get", run_id=job_id).get("state") or {}
        except NotFound:
            return JobState.LOST
        if state.get("life_cycle_state") not in _ENDED_RUN:
            return JobState.RUNNING
        return JobState.SUCCEEDED if state.get("result_state") == "SUCCESS" else JobState.FAILED

    def cancel(self, job_id: str) -> None:
        with suppress(NotFound):
            self._http.post("/cancel", {"run_id": int(job_id)})

    def report(self, job_id: str) -> JobReport:
        """Return the message of a run, the error and the end of the output of its task, and its page."""
        try:
            run = self._http.get("/get", run_id=job_id)
        except NotFound:
            return JobReport()
        ended = (run.get("status") or {}).get("termination_details") or {}
        message = (run.get("state") or {}).get("state_message") or ended.get("message")
        tasks, output = run.get("tasks") or [], dict[str, Any]()
        with suppress(EngineRefused, EngineUnreachable):
            output |= self._http.get("/get-output", run_id=tasks[-1]["run_id"]) if tasks else {}
        told = [text for text in (message, output.get("error")) if text]
        log = "\n".join(text for text in (output.get("logs"), output.get("error_trace")) if text)
        return JobReport("; ".join(told) or None, log or None, run.get("run_page_url"))


PAGE, MOST_PAGES, LOG_LINES = 100, 50, 100
DUPLICATE = "Duplicate session name"  # the error of Apache Livy when a running batch has this name already
SMALL = {"driverMemory": "28g", "driverCores": 4, "executorMemory": "28g", "executorCores": 4, "numExecutors": 2}
CONF = {"spark.sql.session.timeZone": "UTC"}
_ENDED = {
    "success": JobState.SUCCEEDED,
    "dead": JobState.FAILED,
    "error": JobState.FAILED,
    "killed": JobState.FAILED,
}


@dataclass(frozen=True, slots=True)
class LivyJobs:
    """The folder of the programs, and the options of every batch: sizes, and `conf` in addition to ours."""

    folder: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def batch(self, request: JobRequest) -> dict[str, Any]:
        """Return the body of the request that starts a job."""
        return {
            "name": request.name,
            "file": f"{self.folder}/{request.program}",
            "pyFiles": [f"{self.folder}/{ARCHIVE}"],
            "archives": [f"{self.folder}/{PACKAGES}#{UNPACKED}"],
            "args": list(request.arguments),
            **self.options,
            "conf": {**CONF, **self.options.get("conf", {})},
        }


class LivyEngine:
    """A SparkEngine. Livy has no idempotency token, so the name of the batch identifies a repeated submit."""

    name = "livy"

    def __init__(self, address: str, token: Token, jobs: LivyJobs) -> None:
        self._http = JsonHttp(address, token)
        self._jobs = jobs

    def submit(self, request: JobRequest) -> str:
        try:
            return _id_of(self._http.post("/batches", self._jobs.batch(request)))
        except EngineRefused as error:
            if DUPLICATE in str(error):
                raise EngineUnreachable(f"{request.name} was submitted earlier: {error}") from error
            raise

    def find(self, name: str) -> str | None:
        """Return the id of a batch with this name: of several, the id of the first that has not failed."""
        found = [batch for batch in self._batches() if batch.get("name") == name]
        found.sort(key=lambda batch: _state_of(batch) is JobState.FAILED)
        return _id_of(found[0]) if found else None

    def state(self, job_id: str) -> JobState:
        try:
            return _state_of(self._http.get(f"/batches/{job_id}"))
        except NotFound:
            return JobState.LOST

    def cancel(self, job_id: str) -> None:
        with suppress(NotFound):
            self._http.delete(f"/batches/{job_id}")

    def report(self, job_id: str) -> JobReport:
        """Return the errors of a batch, the end of its log, and the address of its log or page, as far as there are."""
        try:
            batch = self._http.get(f"/batches/{job_id}", detailed="true")
        except NotFound:
            return JobReport()
        told = [f"{one.get('errorCode') or 'error'}: {one.get('message')}" for one in batch.get("errorInfo") or []]
        pages = batch.get("appInfo") or {}
        link = pages.get("driverLogUrl") or pages.get("sparkUiUrl") or self._http.address_of(f"/batches/{job_id}")
        reason = "; ".join(told) or f"the batch is {batch.get('state')}"
        lines = batch.get("log")  # a few, when there is no answer about all of them
        with suppress(EngineRefused, EngineUnreachable):
            lines = self._http.get(f"/batches/{job_id}/log", size=LOG_LINES).get("log") or lines
        return JobReport(reason, "\n".join(map(str, lines or [])), link)

    def _batches(self) -> Iterator[Mapping[str, Any]]:
        first = 0
        for _ in range(MOST_PAGES):
            page = self._http.get("/batches", **{"from": first, "size": PAGE})
            batches = page.get("sessions") or page.get("items") or []
            yield from batches
            first += len(batches)
            if not batches or first >= page.get("total", 0):
                return


def _state_of(batch: Mapping[str, Any]) -> JobState:
    return _ENDED.get(str(batch.get("state", "")).lower(), JobState.RUNNING)


def _id_of(batch: Mapping[str, Any]) -> str:
    if batch.get("id") is None:
        raise EngineUnreachable(f"the answer has no batch id; it has {sorted(batch)}")
    return str(batch["id"])
