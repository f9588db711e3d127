"""Spark on Databricks: one-time runs of the Jobs API 2.2, whose idempotency token makes a submit repeatable."""

from collections.abc import Mapping
from typing import Any

from core.aggregation.spark import JobReport, JobRequest, JobState
from core.errors import EngineRefused, EngineUnreachable
from core.remote.spark.http import JsonHttp, NotFound, Token
from core.remote.spark.package import package_version, packages_wheel, wheel

PAGE, MOST_PAGES = 25, 40
TASK = "job"
_ENDED = ("TERMINATED", "SKIPPED", "INTERNAL_ERROR")


class DatabricksEngine:
    """A SparkEngine. `jobs` is the place of the programs; `cluster` is `new_cluster` or `existing_cluster_id`."""

    name = "databricks"

    def __init__(self, address: str, token: Token, jobs: str, cluster: Mapping[str, Any]) -> None:
        self._http = JsonHttp(f"{address}/api/2.2/jobs/runs", token)
        self._jobs = jobs
        self._cluster = cluster

    def submit(self, request: JobRequest) -> str:
        """Start a job; a submit under the same name returns the same run."""
        answer = self._http.post("/submit", self._body(request))
        if answer.get("run_id") is None:
            raise EngineUnreachable(f"the answer has no run_id; it has {sorted(answer)}")
        return str(answer["run_id"])

    def find(self, name: str) -> str | None:
        query: dict[str, object] = {"run_type": "SUBMIT_RUN", "limit": PAGE}
        for _ in range(MOST_PAGES):
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
        if state.get("life_cycle_state") not in _ENDED:
            return JobState.RUNNING
        return JobState.SUCCEEDED if state.get("result_state") == "SUCCESS" else JobState.FAILED

    def cancel(self, job_id: str) -> None:
        try:
            self._http.post("/cancel", {"run_id": int(job_id)})
        except NotFound:
            return

    def report(self, job_id: str) -> JobReport:
        """Return the message of a run, the error and the end of the output of its task, and its page."""
        try:
            run = self._http.get("/get", run_id=job_id)
        except NotFound:
            return JobReport()
        ended = (run.get("status") or {}).get("termination_details") or {}
        message = (run.get("state") or {}).get("state_message") or ended.get("message")
        output = self._output_of(run)
        told = [text for text in (message, output.get("error")) if text]
        log = "\n".join(text for text in (output.get("logs"), output.get("error_trace")) if text)
        return JobReport("; ".join(told) or None, log or None, run.get("run_page_url"))

    def _output_of(self, run: Mapping[str, Any]) -> Mapping[str, Any]:
        tasks = run.get("tasks") or []
        try:
            return self._http.get("/get-output", run_id=tasks[-1]["run_id"]) if tasks else {}
        except (EngineRefused, EngineUnreachable):
            return {}

    def _body(self, request: JobRequest) -> dict[str, Any]:
        program = {"python_file": f"{self._jobs}/{request.program}", "parameters": list(request.arguments)}
        version = package_version()
        libraries = [{"whl": f"{self._jobs}/{name}"} for name in (packages_wheel(version), wheel(version))]
        task = {"task_key": TASK, "spark_python_task": program, "libraries": libraries, **self._cluster}
        return {"run_name": request.name, "idempotency_token": request.name, "tasks": [task]}
