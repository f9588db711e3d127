"""Stand-ins for Spark services: they speak the protocols, start real processes, and fail on demand.

They do not show the behaviour of the services themselves. They show that clients and jobs survive all of this.
"""

import json
import os
import re
import signal
import subprocess
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Command = Callable[[str, list[str]], list[str]]  # a program and its arguments, as a process to start
Answer = tuple[int, Any]


@dataclass
class Batch:
    id: str
    name: str
    request: Mapping[str, Any]
    process: subprocess.Popen[bytes]
    killed: bool = False

    @property
    def code(self) -> int | None:
        return self.process.poll()

    def kill(self) -> None:
        self.killed = True
        if self.code is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass
class Service(ABC):
    """The state that all stand-ins share. `faults`: the faults of the next submits ("503", "drop", "kill").

    "drop" accepts and cuts the line. "kill" starts the job and kills it at once. `hidden` lists show nothing new.
    """

    command: Command
    environment: Mapping[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    hidden: int = 0
    batches: list[Batch] = field(default_factory=list)
    seen: list[tuple[str, str]] = field(default_factory=list)
    wants_token: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, name: str, program: str, arguments: list[str], request: Mapping[str, Any]) -> Batch:
        environment, none = {**os.environ, **self.environment}, subprocess.DEVNULL
        given = self.command(program, arguments)
        process = subprocess.Popen(given, env=environment, stdin=none, stdout=none, stderr=none, start_new_session=True)
        self.batches.append(Batch(self.new_id(), name, request, process))
        return self.batches[-1]

    def shown(self) -> list[Batch]:
        self.hidden -= 1
        return [] if self.hidden >= 0 else self.batches

    def find(self, batch_id: str) -> Batch | None:
        return next((batch for batch in self.batches if batch.id == batch_id), None)

    @abstractmethod
    def new_id(self) -> str: ...

    @abstractmethod
    def answer(self, verb: str, path: str, query: Mapping[str, str], body: Any) -> Answer: ...


class Serving:
    """A `with` block in which a stand-in listens. Its processes are gone afterwards."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._server = _Server(("127.0.0.1", 0), _handler(service))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "Serving":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        for batch in self.service.batches:
            batch.kill()


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Say nothing of a connection that was cut on demand."""


def _handler(service: Service) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            with service.lock:
                service.seen.append((self.command, parts.path))
                is_submit = self.command == "POST" and not parts.path.endswith("/cancel")
                fault = service.faults.pop(0) if service.faults and is_submit else ""
                if fault == "503":
                    return self._send(503, {"msg": "throttled"})
                if service.wants_token and self.headers.get("Authorization") != "Bearer token":
                    return self._send(401, {"msg": "no token"})
                status, found = service.answer(self.command, parts.path, query, body)
                if fault == "kill":
                    service.batches[-1].kill()
            if fault == "drop":
                self.close_connection = True
                return self.connection.close()
            return self._send(status, found)

        def _send(self, status: int, body: Any) -> None:
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_DELETE = _serve  # noqa: N815 - the names that http.server looks for

    return Handler


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
        return str(uuid.uuid4() if self.dialect == "fabric" else len(self.batches))

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
        number = batch.id if self.dialect == "fabric" else int(batch.id)
        view: dict[str, Any] = {"id": number, "name": batch.name, "state": state}
        if self.dialect != "apache":
            failed = [{"message": "exit code 3", "errorCode": "Spark_User_App", "source": "User"}]
            errors = failed if state == "dead" else []
            view |= {"result": "Uncertain", "livyInfo": {"currentState": state}, "errorInfo": errors}
            view |= {"appInfo": {"driverLogUrl": f"https://logs/{batch.id}", "sparkUiUrl": None}}
        return {**view, "appId": None, "log": ["the last line"]}


RUNS = "/api/2.2/jobs/runs"


@dataclass
class DatabricksService(Service):
    """Runs have numbers. A token is honoured after any end of its run."""

    wants_token: bool = True
    page: int = 2

    def new_id(self) -> str:
        return str(1_000 + len(self.batches))

    def answer(self, verb: str, path: str, query: Mapping[str, str], body: Any) -> Answer:
        if path == f"{RUNS}/submit" and verb == "POST":
            return 200, {"run_id": int(self._submitted(body).id)}
        if path == f"{RUNS}/list":
            return self._list(int(query.get("page_token", 0)))
        run_id = str((body or {}).get("run_id", query.get("run_id")))
        batch = self.find(run_id)
        if batch is None:
            return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": f"Run {run_id} does not exist."}
        if path == f"{RUNS}/cancel" and verb == "POST":
            batch.kill()
            return 200, {}
        if path == f"{RUNS}/get-output":
            return 200, {"error": "SystemExit: 3", "logs": "many lines", "error_trace": "Traceback"}
        return 200, _run_view(batch)

    def _submitted(self, body: Any) -> Batch:
        (task,) = body["tasks"]
        same = [batch for batch in self.batches if batch.request["idempotency_token"] == body["idempotency_token"]]
        program = task["spark_python_task"]
        return same[0] if same else self.start(body["run_name"], program["python_file"], program["parameters"], body)

    def _list(self, first: int) -> Answer:
        shown = self.shown()[::-1]
        page: dict[str, Any] = {"runs": [_run_view(batch) for batch in shown[first : first + self.page]]}
        if first + self.page < len(shown):
            page["next_page_token"] = str(first + self.page)
        return 200, page


def _run_view(batch: Batch) -> dict[str, Any]:
    state = {"life_cycle_state": "RUNNING"}
    if batch.code is not None:
        result = "CANCELED" if batch.killed else "SUCCESS" if batch.code == 0 else "FAILED"
        state = {"life_cycle_state": "TERMINATED", "result_state": result}
        state["state_message"] = "Task job failed"
    page = {"run_page_url": f"https://workspace/#job/1/run/{batch.id}", "tasks": [{"run_id": int(batch.id)}]}
    return {"run_id": int(batch.id), "run_name": batch.name, "state": state, **page}
