"""Livy in its dialects: ids that are numbers or GUIDs, names that are unique while live or not, a token or none."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.fakes.spark_service import Answer, Batch, Service

PATHS = {
    "apache": "",
    "synapse": "/livyApi/versions/2019-11-01-preview/sparkPools/pool",
    "fabric": "/v1/workspaces/w/lakehouses/l/livyApi/versions/2023-12-01",
}


@dataclass
class LivyService(Service):
    """`/batches` below the dialect's path."""

    dialect: str = "apache"

    def __post_init__(self) -> None:
        self.wants_token = self.dialect != "apache"

    def new_id(self) -> str:
        return super().new_id() if self.dialect == "fabric" else str(len(self.batches))

    def is_submit(self, verb: str, path: str) -> bool:
        return verb == "POST"

    def answer(self, verb: str, path: str, query: Mapping[str, str], body: Any) -> Answer:
        found = re.fullmatch(rf"{PATHS[self.dialect]}/batches(?:/([^/]+)(/log)?)?", path)
        if found is None:
            return 404, {"msg": "no such path"}
        if verb == "POST":
            return self._create(body)
        if found[1] is None:
            return self._list(int(query.get("from", 0)), int(query.get("size", 20)))
        batch = self.find(found[1])
        if batch is None:
            return 404, {"msg": f"Session '{found[1]}' not found."}
        if found[2]:
            return self._log(int(query["size"]))
        if verb == "DELETE":
            batch.kill()
        return 200, self._view(batch)

    def _create(self, body: Any) -> Answer:
        if not body.get("file") or not body.get("name"):
            return 400, {"msg": "requirement failed: File is required."}
        if self.dialect == "apache" and any(one.name == body["name"] and one.code is None for one in self.batches):
            return 400, {"msg": f"Rejected, Reason: Duplicate session name: Some({body['name']}) for session 1"}
        batch = self.start(body["name"], body["file"], body["args"], body)
        return (201 if self.dialect == "apache" else 200), self._view(batch)

    def _log(self, size: int) -> Answer:
        if self.dialect == "fabric":
            return 403, {"msg": "no right to read logs"}
        return 200, {"from": 0, "total": 500, "log": [f"line {number}" for number in range(500 - size, 500)]}

    def _list(self, first: int, size: int) -> Answer:
        shown = self.shown()
        page = [self._view(batch) for batch in shown[first : first + size]]
        return 200, {"from": first, "total": len(shown), "sessions": page}

    def _view(self, batch: Batch) -> dict[str, Any]:
        ended = "killed" if batch.killed else "success" if batch.code == 0 else "dead"
        state = "running" if batch.code is None else ended
        view: dict[str, Any] = {
            "id": batch.id if self.dialect == "fabric" else int(batch.id),
            "name": batch.name,
            "state": state,
        }
        if self.dialect != "apache":
            failed = [{"message": "exit code 3", "errorCode": "Spark_User_App", "source": "User"}]
            errors = failed if state == "dead" else []
            view |= {"result": "Uncertain", "livyInfo": {"currentState": state}, "errorInfo": errors}
            view |= {"appInfo": {"driverLogUrl": f"https://logs/{batch.id}", "sparkUiUrl": None}}
        return {**view, "appId": None, "log": ["the last line"]}
