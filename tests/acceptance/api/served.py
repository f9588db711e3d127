"""The app as its clients meet it: a host process, a client of it, and the store that both use."""

import http.client
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit
from uuid import uuid4

from tests.fakes.engines import SqliteEngine
from tests.fakes.rooms import EXAMPLES, Rooms
from tests.patience import Patience, allowed

ROOT = Path(__file__).parents[3]
Contents = dict[str, list[Any]]
DEADLINE_S = 60.0  # of an idle machine
HUB = "localhost/telemetry"
SETTINGS = {
    "EVENTHUB": "Endpoint=sb://localhost:9;SharedAccessKeyName=k;SharedAccessKey=s;UseDevelopmentEmulator=true",
    "EVENTHUB_NAME": "telemetry",
    "EVENTHUB_CONSUMER_GROUP": "hubledger",
    "STORE_PATIENCE_SECONDS": "1",
}


@dataclass(frozen=True)
class Reply:
    """An answer over HTTP, read whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Its body as JSON."""
        return json.loads(self.body)

    @property
    def fields(self) -> list[str]:
        """The fields that a problem names."""
        return [one["field"] for one in self.json.get("errors", [])]


class Served:
    """A host with the app of a folder over an embedded store; `store` writes to the same file."""

    def __init__(self, folder: Path, of: tuple[Path, Rooms] = (ROOT, EXAMPLES), **settings: str) -> None:
        root, rooms = of
        self.path = folder / "store.db"
        self.sqlite = SqliteEngine(self.path, rooms)
        self.store = self.sqlite.open()
        self.log = folder / "host.log"
        given = {**os.environ, **SETTINGS, **self.sqlite.environment(), **settings}
        command = [sys.executable, "-m", "tests.acceptance.api.serving", str(root), str(self.log)]
        with (folder / "errors.log").open("w") as errors:
            self.process = subprocess.Popen(
                command, cwd=root, env=given, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        assert self.process.stdout is not None
        self.base_url = self.process.stdout.readline().strip()
        assert self.base_url, (folder / "errors.log").read_text()

    def get(self, path: str, *, headers: Mapping[str, str] | None = None, **query: Any) -> Reply:
        """GET below /api; values are escaped."""
        asked = f"?{urlencode(query)}" if query else ""
        return self.request("GET", f"/api/{path}{asked}", headers=headers or {})

    def post(self, path: str, body: object, *, headers: Mapping[str, str] | None = None, method: str = "POST") -> Reply:
        """POST JSON below /api."""
        given = {"Content-Type": "application/json", **(headers or {})}
        octets = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request(method, f"/api/{path}", octets, given)

    def order(
        self, kind: str, body: Mapping[str, object], task_id: str = "", headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Open a task, by default with a new id."""
        return self.post(f"tasks/{task_id or uuid4()}", {"kind": kind, **body}, headers=headers, method="PUT")

    def request(
        self, method: str, target: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Any request."""
        connection = http.client.HTTPConnection(urlsplit(self.base_url).netloc, timeout=allowed(DEADLINE_S))
        try:
            connection.request(method, target, body, dict(headers or {}))
            answer = connection.getresponse()
            return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def until(self, holds: Callable[[], object]) -> None:
        """Wait for a condition while the host runs."""
        patience = Patience(DEADLINE_S)
        while not holds():
            assert self.process.poll() is None, self.log.read_text()
            patience.pause()

    def contents(self) -> Contents:
        """All rows of the store, by table."""
        named = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        tables = [name for (name,) in self.sqlite.sql(named)]
        return {name: self.sqlite.sql(f"SELECT * FROM {name}") for name in tables}

    def restore(self, contents: Contents) -> None:
        """Let the store hold these rows again."""
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            for table, rows in contents.items():
                connection.execute(f"DELETE FROM {table}")
                for row in rows:
                    connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
            connection.execute("COMMIT")

    def close(self) -> None:
        """Let the host end in order."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(allowed(DEADLINE_S))
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.store.close()


def segment(text: str) -> str:
    """A text as one segment of a path."""
    return quote(text, safe="")
