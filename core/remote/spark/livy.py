"""Run Spark jobs as batches of a Livy API: Synapse, Fabric or Apache Livy, which differ in details.

Sources: Livy's REST API, "Spark Batch" of Azure Synapse (2019-11-01-preview), the Livy API of Microsoft Fabric.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from core.aggregation.spark import JobReport, JobRequest, JobState
from core.errors import EngineRefused, EngineUnreachable
from core.remote.spark.http import JsonHttp, NotFound, Token
from core.remote.spark.package import ARCHIVE, PACKAGES, UNPACKED

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
        """Return the id of a batch with this name; of several, the first that has not failed."""
        found = [batch for batch in self._batches() if batch.get("name") == name]
        found.sort(key=lambda batch: _state_of(batch) is JobState.FAILED)
        return _id_of(found[0]) if found else None

    def state(self, job_id: str) -> JobState:
        try:
            return _state_of(self._http.get(f"/batches/{job_id}"))
        except NotFound:
            return JobState.LOST

    def cancel(self, job_id: str) -> None:
        try:
            self._http.delete(f"/batches/{job_id}")
        except NotFound:
            return

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
        return JobReport(reason, "\n".join(self._log_of(job_id, batch)), link)

    def _log_of(self, job_id: str, batch: Mapping[str, Any]) -> list[str]:
        """Return the last lines of a batch; without an answer, the few that the batch itself holds."""
        try:
            lines = self._http.get(f"/batches/{job_id}/log", size=LOG_LINES).get("log")
        except (EngineRefused, EngineUnreachable):
            lines = None
        return [str(line) for line in lines or batch.get("log") or []]

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
