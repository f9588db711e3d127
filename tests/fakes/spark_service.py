"""Stand-ins for Spark services: they speak the protocols, start real processes, and fail on demand.

They do not show the behaviour of the services themselves; they show that clients and jobs survive all of this.
"""

import json
import os
import signal
import subprocess
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Command = Callable[[str, list[str]], list[str]]  # a program and its arguments, as a process to start
Answer = tuple[int, Any]


@dataclass
class Batch:
    """One job and its process."""

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
class Service:
    """The state that all stand-ins share. `faults`: the faults of the next submits ("503", "drop", "kill").

    "drop" accepts and cuts the line; "kill" starts the job and kills it at once. `hidden` lists show nothing new.
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
        environment = {**os.environ, **self.environment}
        process = subprocess.Popen(
            self.command(program, arguments),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        batch = Batch(self.new_id(), name, request, process)
        self.batches.append(batch)
        return batch

    def new_id(self) -> str:
        return str(uuid.uuid4())

    def shown(self) -> list[Batch]:
        """The jobs in a list, which comes late, as with real engines."""
        if self.hidden > 0:
            self.hidden -= 1
            return []
        return self.batches

    def find(self, batch_id: str) -> Batch | None:
        return next((batch for batch in self.batches if batch.id == batch_id), None)

    def answer(self, verb: str, path: str, query: Mapping[str, str], body: Any) -> Answer:
        raise LookupError("a stand-in speaks its own protocol")

    def is_submit(self, verb: str, path: str) -> bool:
        raise LookupError("a stand-in speaks its own protocol")


class Serving:
    """A `with` block in which a stand-in listens; its processes are gone afterwards."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(service))
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
            batch.process.wait()


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
                fault = service.faults.pop(0) if service.faults and service.is_submit(self.command, parts.path) else ""
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

        def handle(self) -> None:
            try:
                super().handle()
            except (OSError, ValueError):  # the connection that was cut on demand
                self.close_connection = True

        def finish(self) -> None:
            try:
                super().finish()
            except (OSError, ValueError):
                return

    return Handler
