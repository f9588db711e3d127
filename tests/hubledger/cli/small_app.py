"""A small HTTP server in the place of the app: it answers as a test says, and remembers the requests."""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

PROBLEM = "application/problem+json"


@dataclass(frozen=True)
class Reply:
    """An answer: text is sent as it is, anything else as JSON."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media: str = "application/json"


@dataclass(frozen=True)
class Request:
    """A request that came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


def problem(name: str, status: int, detail: str, **more: Any) -> Reply:
    """A problem of the app."""
    body = {"type": f"urn:hubledger:problem:{name}", "title": name, "status": status, "detail": detail, **more}
    return Reply(body, status, media=PROBLEM)


class SmallApp:
    """Serves in a `with` block. `answer` is called with each request, on the server's thread."""

    def __init__(self, answer: Callable[[Request], Reply]) -> None:
        self.requests: list[Request] = []
        self._answer = answer
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        app = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def _respond(self) -> None:
                octets = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                body = json.loads(octets) if octets else None
                request = Request(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                app.requests.append(request)
                reply = app._answer(request)
                text = reply.body if isinstance(reply.body, str) else json.dumps(reply.body, ensure_ascii=False)
                sent = text.encode("utf-8", "surrogatepass")
                self.send_response(reply.status)
                for name, value in {"Content-Type": reply.media, **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            do_GET = do_POST = do_PUT = _respond  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler

    def __enter__(self) -> "SmallApp":
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
