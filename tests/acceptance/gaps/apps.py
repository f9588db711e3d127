"""Hubledger itself in the local host, over a hub that tests fill and cut, with everything in place to lose batches."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from azure.eventhub import EventData, EventHubProducerClient

from core.store.sqlite.database import SqliteDatabase
from core.transforms.home_security import SensorReading
from local.event_hubs import Emulator, HubSettings
from tests.fakes.engines import SqliteEngine
from tests.fakes.store import Store

ROOT = Path(__file__).parents[3]
DEADLINE = 60.0  # seconds
HUB, GROUP, READERS, PARTITIONS = "telemetry", "hubledger", "hubledger-reader", 2
BATCH = 100  # events: host.json has the trigger wait for as many, so they are neither split nor joined
READY = "functions host ready on "


def new_hub() -> Emulator:
    return Emulator([HubSettings(HUB, PARTITIONS, (GROUP, READERS))])


@dataclass
class App:
    """The app in a folder of its own; what its host logs is in `lines`."""

    emulator: Emulator
    folder: Path
    engine: SqliteEngine
    published: dict[str, int] = field(default_factory=lambda: {str(id): 0 for id in range(PARTITIONS)})
    host: "subprocess.Popen[str] | None" = None
    address: str = ""

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

    def start_host(self, **changed: str) -> None:
        options = ("--app", ".", "--port", "0", "--state", f"{self.folder}/host.db", "--log", f"{self.folder}/host.log")
        environment = {**{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}}
        self.host = subprocess.Popen(
            [sys.executable, "-m", "local.functions_host", *options],
            cwd=ROOT,
            env={**environment, **self.settings(**changed)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.host.stdout is not None
        ready = next(line for line in self.host.stdout if line.startswith(READY))
        self.address = ready.removeprefix(READY).strip()

    def skip(self, batches: int) -> None:
        """The host checkpoints the next batches of every partition without delivering them."""
        body = json.dumps({"skip": batches}).encode()
        urllib.request.urlopen(urllib.request.Request(f"{self.address}/admin/faults", body), timeout=DEADLINE).close()

    def publish(self, count: int, *partition_ids: str) -> None:
        """So many more events to each of the partitions, all by default."""
        with EventHubProducerClient.from_connection_string(
            self.emulator.connection_string, eventhub_name=HUB
        ) as producer:
            for id in partition_ids or self.published:
                batch = producer.create_batch(partition_id=id)
                for _ in range(count):
                    batch.add(EventData(b"reading home-1"))
                producer.send_batch(batch)
                self.published[id] += count

    def publish_skipped(self) -> None:
        """Publish a batch to every partition that the host loses; return when it has checkpointed it."""
        self.skip(1)
        self.publish(BATCH)
        self.until(lambda: self.host_checkpoints() == self.published)

    def host_checkpoints(self) -> dict[str, int]:
        """How many events of each partition the host takes for done."""
        with closing(sqlite3.connect(f"file:{self.folder}/host.db?mode=ro", uri=True)) as state:
            rows = state.execute("SELECT partition_id, sequence_number FROM host_checkpoint").fetchall()
        return {id: number + 1 for id, number in rows}

    def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE
        while not holds():
            assert time.monotonic() < deadline, (self.accounted(), self.published, self.lines("gap"))
            assert self.host is None or self.host.poll() is None, "the host ended"
            time.sleep(0.02)

    def until_all_accounted(self) -> None:
        self.until(lambda: self.accounted() == self.published)

    def accounted(self) -> dict[str, int]:
        store = Store(SqliteDatabase(self.engine.path))
        books = {str(one.partition.partition_id): int(one.checkpoint) + 1 for one in store.read_ledgers()}
        store.close()
        return {**dict.fromkeys(self.published, 0), **books}

    def lines(self, action: str) -> list[dict]:
        """What the app logged with an action; a host that was killed may leave half a line."""
        log = self.folder / "host.log"
        entries = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [entry for entry in entries if entry.get("action") == action]

    def end(self) -> None:
        if self.host is not None:
            self.host.send_signal(signal.SIGTERM)
            self.host.communicate(timeout=DEADLINE)
            self.host = None

    def assert_each_number_once(self, absent: dict[str, set[int]] | None = None) -> None:
        """Every number is written or, where it is named here, absent; the ledger says so and balances."""
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
        assert all(books.balanced for books in store.read_ledgers())
        store.close()
