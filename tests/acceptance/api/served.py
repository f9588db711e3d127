"""The app as its clients meet it: a host process, a client of it, and the store that both use.

As a program it serves the app of a folder on the local host, with an empty hub in memory: its arguments are the folder
and a file for its log. It prints its address on its first line, and ends when its input ends.
"""

import asyncio
import http.client
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit
from uuid import uuid4

from core.model.events import SequenceNumber
from local.functions_host import HostOptions
from local.functions_host.logs import configure_logs
from local.programs import APP
from tests.acceptance.functions_host.sample import Hubs, running
from tests.acceptance.started import NO_HUB, start
from tests.fakes.builders import EPOCH, commit, event, letter, partition, reading, settled
from tests.fakes.engines import SqliteEngine
from tests.fakes.rooms import EXAMPLES, Rooms
from tests.patience import Patience, allowed

Contents = dict[str, list[Any]]
DEADLINE_S = 60.0  # of an idle machine
HUB = "localhost/telemetry"
SETTINGS = {
    "EVENTHUB": NO_HUB,
    "EVENTHUB_NAME": "telemetry",
    "EVENTHUB_CONSUMER_GROUP": "hubledger",
    "STORE_PATIENCE_SECONDS": "1",
}
PARTITIONS, LETTERS = ("0", "1", "10"), 12


@dataclass(frozen=True)
class Reply:
    """An answer over HTTP, read whole."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def fields(self) -> list[str]:
        return [one["field"] for one in self.json.get("errors", [])]


class Served:
    """A host with the app of a folder over an embedded store. `store` writes to the same file."""

    def __init__(self, folder: Path, of: tuple[Path, Rooms] = (APP, EXAMPLES), **settings: str) -> None:
        root, rooms = of
        self.path, self.log = folder / "store.db", folder / "host.log"
        self.sqlite = SqliteEngine(self.path, rooms)
        self.store = self.sqlite.open()
        given, words = {**SETTINGS, **self.sqlite.environment(), **settings}, ("tests.acceptance.api.served", str(root))
        with (folder / "errors.log").open("w") as errors:
            self.process = start(*words, str(self.log), settings=given, cwd=root, stdin=subprocess.PIPE, stderr=errors)
        assert self.process.stdout is not None
        self.base_url = self.process.stdout.readline().strip()
        assert self.base_url, (folder / "errors.log").read_text()

    def get(self, path: str, *, headers: Mapping[str, str] | None = None, **query: Any) -> Reply:
        """GET below /api. Values are escaped."""
        asked = f"?{urlencode(query)}" if query else ""
        return self.request("GET", f"/api/{path}{asked}", headers=headers or {})

    def post(self, path: str, body: object, *, headers: Mapping[str, str] | None = None, method: str = "POST") -> Reply:
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
    return quote(text, safe="")


def fill(served: Served) -> None:
    """Three partitions, each with four letters, two of them of one cause."""
    later = datetime.now(UTC) + timedelta(minutes=50)
    for id in PARTITIONS:
        of = partition(id, hub=HUB)
        served.store.anchor_partition(served.store.read_partition(of), SequenceNumber(0), EPOCH)
        for at in range(LETTERS // len(PARTITIONS)):
            first = at * 10
            given = letter(event(first + 1, f'{{"n":{at}}}', key=f"home-{at}"), error=f"no such kind {at}")
            poison = replace(given, fingerprint="aaaa", status="exhausted", error_class="poison")
            unknown = replace(given, fingerprint="bbbb", status="waiting", due_at=later)
            outcome = settled({first: [reading()]}, letters=[poison if at % 2 else unknown], filtered=8)
            served.store.commit_batch(commit(served.store.read_partition(of), first, first + 9, outcome))


async def main(directory: Path, log: Path) -> None:
    """Serve until the input ends."""
    configure_logs(log, verbose=False)
    async with running(directory, HostOptions(open_source=Hubs().open)) as host:
        print(host.base_url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
