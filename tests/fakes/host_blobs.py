"""A storage account of one container over HTTP: blobs with metadata and versions, and refusals on demand."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class HostBlobs:
    """The blobs by name: each has its metadata and its version. `refuse` answers every call with a status; `pause` is
    the time of an answer in seconds."""

    def __init__(self, port: int) -> None:
        self.connection = (
            f"DefaultEndpointsProtocol=http;AccountName=acc;AccountKey={KEY};BlobEndpoint=http://127.0.0.1:{port}/acc;"
        )
        self.blobs: dict[str, tuple[dict[str, str], int]] = {}
        self.writes: list[str] = []
        self.refuse: int | None = None
        self.pause = 0.0

    def put(self, name: str, **metadata: str) -> None:
        """Write a blob, as the host does."""
        self.blobs[name] = (metadata, self.blobs.get(name, ({}, 0))[1] + 1)

    def number(self, name: str) -> int:
        """Return the sequence number that a blob holds."""
        return int(self.blobs[name][0]["sequencenumber"])


@contextmanager
def host_blobs() -> Iterator[HostBlobs]:
    """Serve an empty account on the loopback until the end."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            found = account.blobs.get(self._name())
            self._answer(404) if found is None else self._answer(200, found)

        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            name, wanted = self._name(), self.headers.get("If-Match")
            found = account.blobs.get(name)
            if self.headers.get("If-None-Match") == "*" and found is not None:
                return self._answer(409)
            if wanted is not None and (found is None or wanted != f'"{found[1]}"'):
                return self._answer(412)
            account.writes.append(name)
            given = self.headers.items()
            account.put(name, **{key[10:].lower(): text for key, text in given if key.lower().startswith("x-ms-meta-")})
            return self._answer(200 if "comp=metadata" in self.path else 201, account.blobs[name])

        def _name(self) -> str:
            return unquote(self.path.partition("?")[0]).removeprefix("/acc/azure-webjobs-eventhub/")

        def _answer(self, status: int, blob: tuple[dict[str, str], int] = ({}, 0)) -> None:
            time.sleep(account.pause)
            self.send_response(account.refuse or status)
            for name, text in blob[0].items():
                self.send_header(f"x-ms-meta-{name}", text)
            self.send_header("ETag", f'"{blob[1]}"')
            self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    account = HostBlobs(server.server_port)
    serving = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    serving.start()
    try:
        yield account
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
