import http.server
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port


class Host:
    """A host that answers from a list, and notes what it is asked."""

    def __init__(self) -> None:
        self.posts: list[tuple[str, dict[str, Any]]] = []
        self.posted = threading.Event()
        self.status: list[dict[str, Any] | tuple[int, bytes]] = []
        self.answers: list[tuple[int, dict[str, Any]]] = []
        own = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer = own.status.pop(0) if len(own.status) > 1 else own.status[0]
                self.reply(*(answer if isinstance(answer, tuple) else (200, answer)))

            def do_PUT(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                own.posts.append((self.path, body))
                own.posted.set()
                self.reply(*(own.answers.pop(0) if own.answers else (200, {})))

            do_POST = do_PUT  # noqa: N815

            def reply(self, code: int, answer: dict[str, Any] | bytes) -> None:
                content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def host() -> Iterator[Host]:
    made = Host()
    yield made
    made.close()
