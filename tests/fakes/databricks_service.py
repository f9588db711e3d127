"""Databricks' Jobs API 2.2: one-time runs with an idempotency token."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.fakes.spark_service import Answer, Batch, Service

ROOT = "/api/2.2/jobs/runs"


@dataclass
class DatabricksService(Service):
    """Runs have numbers; a token is honoured after any end of its run."""

    wants_token: bool = True
    page: int = 2

    def new_id(self) -> str:
        return str(1_000 + len(self.batches))

    def is_submit(self, verb: str, path: str) -> bool:
        return path == f"{ROOT}/submit"

    def answer(self, verb: str, path: str, query: Mapping[str, str], body: Any) -> Answer:
        if path == f"{ROOT}/submit" and verb == "POST":
            return 200, {"run_id": int(self._submitted(body).id)}
        if path == f"{ROOT}/list":
            return self._list(int(query.get("page_token", 0)))
        run_id = str((body or {}).get("run_id", query.get("run_id")))
        batch = self.find(run_id)
        if batch is None:
            return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": f"Run {run_id} does not exist."}
        if path == f"{ROOT}/cancel" and verb == "POST":
            batch.kill()
            return 200, {}
        if path == f"{ROOT}/get-output":
            return 200, {"error": "SystemExit: 3", "logs": "many lines", "error_trace": "Traceback"}
        return 200, _view(batch)

    def _submitted(self, body: Any) -> Batch:
        (task,) = body["tasks"]
        same = [batch for batch in self.batches if batch.request["idempotency_token"] == body["idempotency_token"]]
        program = task["spark_python_task"]
        return same[0] if same else self.start(body["run_name"], program["python_file"], program["parameters"], body)

    def _list(self, first: int) -> Answer:
        shown = self.shown()[::-1]
        page: dict[str, Any] = {"runs": [_view(batch) for batch in shown[first : first + self.page]]}
        if first + self.page < len(shown):
            page["next_page_token"] = str(first + self.page)
        return 200, page


def _view(batch: Batch) -> dict[str, Any]:
    state = {"life_cycle_state": "RUNNING"}
    if batch.code is not None:
        result = "CANCELED" if batch.killed else "SUCCESS" if batch.code == 0 else "FAILED"
        state = {"life_cycle_state": "TERMINATED", "result_state": result}
        state["state_message"] = "Task job failed"
    page = {"run_page_url": f"https://workspace/#job/1/run/{batch.id}", "tasks": [{"run_id": int(batch.id)}]}
    return {"run_id": int(batch.id), "run_name": batch.name, "state": state, **page}
