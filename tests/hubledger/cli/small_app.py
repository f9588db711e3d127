"""A small HTTP server in the place of the app: it answers as a test says, or as the API's description says, with every
field of every shape, and remembers the requests."""

import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from handlers.api import OPERATIONS
from handlers.web.openapi import describe

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
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


def problem(name: str, status: int, detail: str, **more: Any) -> Reply:
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


AT = "2026-11-23T03:00:00Z"
# Words that a command acts on; every other text is the test's.
ACTED_ON = {"status": "done", "outcome": "dry_run", "kind": "repair", "result": "helped"}


@cache
def description() -> dict[str, Any]:
    described: dict[str, Any] = json.loads(json.dumps(describe(OPERATIONS), default=str))
    return described


class Described:
    """Answers every request with a full answer of its route's shape, or with an empty one: null and no entry wherever
    the shape allows it. Tasks are of one kind: the one that was requested last, or `kind`."""

    def __init__(
        self, text: Callable[[str], str] | None = None, *, is_empty: bool = False, kind: str = "replay"
    ) -> None:
        self._kind = kind
        self._is_empty = is_empty
        self._text = text or (lambda name: AT if name == "at" or name.endswith("_at") else name.upper())

    def __call__(self, request: Request) -> Reply:
        path = urlsplit(request.path).path.removeprefix("/api")
        self._kind = request.body["kind"] if request.method == "PUT" else self._kind
        for template, methods in description()["paths"].items():
            if (
                re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template)), path)
                and request.method.lower() in methods
            ):
                return self._reply(methods[request.method.lower()]["responses"])
        return problem("no-such-route", 404, "there is nothing at this address")

    def _reply(self, responses: dict[str, Any]) -> Reply:
        status = min(code for code in responses if code.isdigit())
        schema = responses[status]["content"]["application/json"]["schema"]
        return Reply(self.value("", schema), int(status))

    def value(self, name: str, schema: dict[str, Any]) -> Any:
        """Return a value of a schema that has every field and one entry in every list."""
        if "$ref" in schema:
            return self.value(name, description()["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
        if "discriminator" in schema:
            return self.value(name, {"$ref": schema["discriminator"]["mapping"][self._kind]})
        if "anyOf" in schema:
            wanted = [one for one in schema["anyOf"] if (one.get("type") == "null") is self._is_empty]
            return self.value(name, (wanted or schema["anyOf"])[0])
        if "enum" in schema:
            return ACTED_ON.get(name) if ACTED_ON.get(name) in schema["enum"] else schema["enum"][0]
        kind = schema.get("type", "object")
        if kind == "object":
            return self._object(name, schema)
        if kind == "array":
            return [] if self._is_empty else [self.value(name, schema["items"])]
        if kind == "string":
            return None if name == "next" else ACTED_ON.get(name) or self._text(name)
        return {"integer": 1_234_567, "number": 1_234.5, "boolean": True, "null": None}[kind]

    def _object(self, name: str, schema: dict[str, Any]) -> Any:
        if "properties" in schema:
            return {key: self.value(key, one) for key, one in schema["properties"].items()}
        more = schema.get("additionalProperties")
        if isinstance(more, dict) and more.get("type") == "array" and name == "columns":
            return {self._text("column"): [self._text("old"), self._text("new")]}
        return {
            self._text("key"): self.value("value", more) if isinstance(more, dict) and more else self._text("value")
        }


def unsafe(text: str) -> set[str]:
    return {letter for letter in text if not letter.isprintable() and letter != "\n"}
