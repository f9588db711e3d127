"""Doubles for the tests of the hooks: a service on loopback, and credentials with tokens."""

import base64
import http.server
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from azure.core.credentials import AccessToken

from infra.hooks.rest import NO_MORE, Body, Rest, Service

PERSON = {
    "upn": "ada@contoso.com",
    "oid": "00000000-0000-0000-0000-00000000000a",
    "tid": "t",
    "scp": "x",
    "appid": "azd",
}
PIPELINE = {
    "oid": "00000000-0000-0000-0000-00000000000b",
    "appid": "00000000-0000-0000-0000-00000000000c",
    "tid": "t",
    "idtyp": "app",
}


def token_of(claims: dict[str, Any]) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{body}.signature"


def plant(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


class Credential:
    """A credential of azure-identity with one token, or an error in its place."""

    def __init__(self, answer: str | Exception) -> None:
        self.scopes: list[str] = []
        self._answer = answer

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        self.scopes += scopes
        if isinstance(self._answer, Exception):
            raise self._answer
        return AccessToken(self._answer, 0)


class Services(Rest):
    """Services that answer by a function of the method, the path and the body. `calls` are all that came."""

    def __init__(self, answer: Callable[[str, str, Any], Any] = lambda method, path, body: None) -> None:
        self.calls: list[tuple[str, str, Any]] = []
        self._answer = answer

    def call(
        self, method: str, service: Service, path: str, body: Body = None, headers: Mapping[str, str] = NO_MORE
    ) -> Any:
        self.calls.append((method, service.address + path, body))
        return self._answer(method, path, body)


@contextmanager
def answering(*answers: tuple[int, str], requests: list[tuple[str, str, bytes]] | None = None) -> Iterator[str]:
    """Serve the answers, a status and a body each, one after the other, the last one for ever. Yield the address.

    `requests` gets the media type, the authorization and the body of each PUT.
    """
    left, put = list(answers), [] if requests is None else requests

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, text = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            put.append((self.headers["Content-Type"], self.headers["Authorization"], body))
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None:
            """Write no log."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
