"""The app in the local host, over a hub that tests fill and cut, with a host that loses batches on request."""

import json
import os
import sqlite3
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from azure.eventhub import EventData, EventHubProducerClient

from core.model.events import Stream
from core.store.sqlite.database import SqliteDatabase
from examples.home_security.transform import SensorReading
from local.event_hubs import Emulator, HubSettings
from local.programs import APP
from tests.fakes.engines import SqliteEngine
from tests.fakes.store import Store
from tests.patience import Patience, allowed

DEADLINE = 60.0  # seconds of an idle machine
LOOK = 0.05  # seconds between two looks, each of which opens the store or reads the log
HUB, GROUP, READERS, PARTITIONS = "telemetry", "hubledger", "hubledger-reader", 2
STREAM = Stream(f"localhost/{HUB}", GROUP)
BATCH = 100  # events: host.json has the trigger wait for as many, so they are neither split nor joined
READY = "functions host ready on "
SELDOM = {"WATCH_SCHEDULE": "0 0 0 1 1 *"}  # the timer does not come within the test
OFTEN = {"WATCH_SCHEDULE": "* * * * * *", "GAP_GRACE_SECONDS": "1"}


def new_hub(partitions: int = PARTITIONS) -> Emulator:
    return Emulator([HubSettings(HUB, partitions, (GROUP, READERS))])


@dataclass
class App:
    """The app in a separate folder; `lines` has the log of its hosts."""

    emulator: Emulator
    folder: Path
    engine: SqliteEngine
    published: dict[str, int] = field(default_factory=lambda: {str(id): 0 for id in range(PARTITIONS)})
    host: "subprocess.Popen[str] | None" = None
    address: str = ""
    producer: EventHubProducerClient | None = None

    def settings(self, **changed: str) -> dict[str, str]:
        return {
            "EVENTHUB": self.emulator.connection_string,
            "EVENTHUB_NAME": HUB,
            "EVENTHUB_CONSUMER_GROUP": GROUP,
            "HUB_READER_CONSUMER_GROUP": READERS,
            "STORE_CONNECTION": f"sqlite:{self.engine.path}",
            "TRANSFORM": "tests.fakes.plain_transform",
            **changed,
        }

    def start(self, **changed: str) -> None:
        """Start the host, and wait until it reads every partition."""
        self.start_host(**changed)
        self.until(lambda: self.emulator.reader_count(HUB) >= PARTITIONS)

    def start_host(self, *more: str, **changed: str) -> None:
        self.end_host()
        options = ("--app", ".", "--port", "0", "--state", f"{self.folder}/host.db", "--log", f"{self.folder}/host.log")
        environment = {**{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}}
        self.host = subprocess.Popen(
            [sys.executable, "-m", "local.functions_host", *options, *more],
            cwd=APP,
            env={**environment, **self.settings(**changed)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.host.stdout is not None
        ready = next(line for line in self.host.stdout if line.startswith(READY))
        self.address = ready.removeprefix(READY).strip()

    def open_task(self, kind: str, **body: object) -> str:
        """Open a task, and return its id."""
        return str(self.request(f"api/tasks/{uuid.uuid4()}", {"kind": kind, **body}, "PUT")["task_id"])

    def request(self, path: str, body: object = None, method: str | None = None) -> Any:
        """Send a request to the host, and return the JSON of its answer, if any."""
        octets, headers = None if body is None else json.dumps(body).encode(), {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.address}/{path}", octets, headers, method=method)
        with urllib.request.urlopen(request, timeout=allowed(DEADLINE)) as answer:
            return json.loads(answer.read() or b"null")

    def skip(self, batches: int) -> None:
        """Have the host checkpoint the next batches of every partition without delivery."""
        self.request("admin/faults", {"skip": batches})

    def publish(self, count: int, body: bytes = b"reading home-1") -> None:
        """Publish so many more events to each partition."""
        for id in self.published:
            self.send(id, [body] * count)

    def recreate_hub(self) -> None:
        """Delete the hub and create it again; the producer opens a new link."""
        self.emulator.recreate(HUB)
        self.published = dict.fromkeys(self.published, 0)
        if self.producer is not None:
            self.producer.close()
            self.producer = None

    def send(self, id: str, bodies: list[bytes]) -> None:
        """Publish to one partition, with a producer that stays open: each connection takes half a second."""
        if self.producer is None:
            connection = self.emulator.connection_string
            self.producer = EventHubProducerClient.from_connection_string(connection, eventhub_name=HUB)
        batch = self.producer.create_batch(partition_id=id)
        for body in bodies:
            batch.add(EventData(body))
        self.producer.send_batch(batch)
        self.published[id] += len(bodies)

    def publish_skipped(self) -> None:
        """Publish a batch to every partition that the host loses; return when it has checkpointed it."""
        self.skip(1)
        self.publish(BATCH)
        self.until(lambda: self.host_checkpoints() == self.published)

    def host_checkpoints(self) -> dict[str, int]:
        """Return the number of events of each partition that the host has checkpointed."""
        with closing(sqlite3.connect(f"file:{self.folder}/host.db?mode=ro", uri=True)) as state:
            rows = state.execute("SELECT partition_id, sequence_number FROM host_checkpoint").fetchall()
        return {id: number + 1 for id, number in rows}

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for a condition, while events are accounted for."""
        patience = Patience(DEADLINE)
        while not holds():
            assert self.host is None or self.host.poll() is None, "the host ended"
            patience.pause(lambda: (self.accounted(), self.published), LOOK)

    def until_all_accounted(self) -> None:
        self.until(lambda: self.accounted() == self.published)

    def accounted(self) -> dict[str, int]:
        store = Store(SqliteDatabase(self.engine.path))
        books = {str(one.partition.partition_id): int(one.checkpoint) + 1 for one in store.read_ledgers(STREAM)}
        store.close()
        return {**dict.fromkeys(self.published, 0), **books}

    def lines(self, action: str) -> list[dict]:
        """Return the log lines of an action; a killed host may leave half a line."""
        log = self.folder / "host.log"
        whole = [line for line in log.read_text().splitlines() if line.endswith("}")] if log.exists() else []
        named = [line for line in whole if f'"{action}"' in line]  # few: to read each line as JSON costs more
        return [entry for entry in map(json.loads, named) if entry.get("action") == action]

    def end_host(self) -> None:
        """Kill the host, if one was started: this is faster than an orderly stop and no less safe."""
        if self.host is not None:
            with self.host as host:  # closes its pipe, also when somebody has closed it before
                host.kill()
            self.host = None

    def end(self) -> None:
        """Kill the host and close the producer."""
        self.end_host()
        if self.producer is not None:
            self.producer.close()
            self.producer = None

    def assert_each_number_once(self, absent: dict[str, set[int]] | None = None) -> None:
        """Check that every number is written or, where it is named here, absent, and that the ledger balances."""
        gone = absent or {}
        for id, count in self.published.items():
            ranges = [kept for kept in self.engine.ledger() if kept.partition_id == id]
            assert [number for kept in ranges for number in range(kept.first, kept.last + 1)] == list(range(count))
            rows = [kept.sequence_number for kept in self.engine.rows(SensorReading) if kept.partition_id == id]
            assert rows == [number for number in range(count) if number not in gone.get(id, set())]
            assert sum(kept.absent for kept in ranges) == len(gone.get(id, set()))
            named = [gap for gap in self.engine.gaps() if gap.partition_id == id and gap.status == "absent"]
            assert {number for gap in named for number in range(gap.first, gap.last + 1)} == gone.get(id, set())
        store = Store(SqliteDatabase(self.engine.path))
        assert all(books.balanced for books in store.read_ledgers(STREAM))
        store.close()


@contextmanager
def working(folder: Path, partitions: int = PARTITIONS) -> Iterator[App]:
    """Run a hub with an empty store beside it, and an app that has not started."""
    emulator = new_hub(partitions)
    with emulator.running():
        published = {str(id): 0 for id in range(partitions)}
        app = App(emulator, folder, SqliteEngine(folder / "store.db"), published)
        try:
            yield app
        finally:
            app.end()
