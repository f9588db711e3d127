"""Workers in separate processes, over the emulator and the embedded store."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from azure.eventhub import EventData, EventHubProducerClient

from examples.home_security.transform import SensorReading
from local.event_hubs import Emulator
from local.programs import APP
from tests.fakes.builders import partition
from tests.fakes.engines import SqliteEngine
from tests.fakes.store import Store
from tests.patience import allowed, until

DEADLINE = 60.0  # seconds of an idle machine
HUB, GROUP, READERS, PARTITIONS = "telemetry", "hubledger", "hubledger-reader", 8
STREAM = partition(hub=f"localhost/{HUB}", group=GROUP)
TIMES = ("--interval", "0.2", "--expiry", "1")  # for a worker that has no peers: what died is soon replaced


def settings_of(connection: str, database: Path) -> dict[str, str]:
    return {
        "EVENTHUB": connection,
        "EVENTHUB_NAME": HUB,
        "EVENTHUB_CONSUMER_GROUP": GROUP,
        "STORE_CONNECTION": f"sqlite:{database}",
        "TRANSFORM": "tests.fakes.plain_transform",
    }


def start(
    settings: Mapping[str, str], *arguments: str, output: int = subprocess.PIPE, apart: bool = False
) -> "subprocess.Popen[str]":
    """Start a worker; one that is `apart` has a session of its own, so no signal to its group reaches this process."""
    command = [sys.executable, "-m", "core.worker", *arguments]
    environment = {**{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}, **settings}
    return subprocess.Popen(
        command, cwd=APP, env=environment, stdout=output, stderr=subprocess.PIPE, text=True, start_new_session=apart
    )


def send_to_the_end(process: "subprocess.Popen[str]") -> None:
    """Send SIGTERM every 2 ms, also while the interpreter ends."""
    while process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.002)


@dataclass
class Workplace:
    """A hub, a store and the workers between them."""

    emulator: Emulator
    engine: SqliteEngine
    store: Store
    producer: EventHubProducerClient
    workers: list["subprocess.Popen[str]"] = field(default_factory=list)
    published: int = 0

    def start_worker(self, *more: str, apart: bool = False, **changed: str) -> "subprocess.Popen[str]":
        """Start a worker; its output is read where it answers by `--health`: the address is in its first line."""
        settings = {**settings_of(self.emulator.connection_string, self.engine.path), **changed}
        output = subprocess.PIPE if {"--health", "--grace"} & set(more) else subprocess.DEVNULL
        self.workers.append(start(settings, *TIMES, *more, output=output, apart=apart))
        return self.workers[-1]

    def send(self, id: str, *bodies: bytes) -> None:
        """Publish events to one partition."""
        batch = self.producer.create_batch(partition_id=id)
        for body in bodies:
            batch.add(EventData(body))
        self.producer.send_batch(batch)

    def publish(self, count: int) -> None:
        """Publish so many more events to each partition: batches without a key take partitions in turn."""
        for _ in range(PARTITIONS):
            batch = self.producer.create_batch()
            for _ in range(count):
                batch.add(EventData(b"reading home-1"))
            self.producer.send_batch(batch)
        self.published += count

    def freeze(self, worker: "subprocess.Popen[str]") -> None:
        """Stop a worker, but not inside a transaction: SQLite has one lock, which it would keep."""
        with closing(sqlite3.connect(self.engine.path, isolation_level=None, timeout=allowed(DEADLINE))) as connection:
            connection.execute("BEGIN IMMEDIATE")
            worker.send_signal(signal.SIGSTOP)
            os.waitpid(worker.pid, os.WUNTRACED)
            connection.execute("ROLLBACK")

    def shares(self) -> list[int]:
        """Return the number of partitions of each owner, the smallest first; a released partition has no owner."""
        owned = Counter(one.owner_id for one in self.store.read_ownerships(STREAM.stream) if one.owner_id)
        return sorted(owned.values())

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for a condition, while shares and books change."""
        until(holds, DEADLINE, lambda: (self.shares(), self.accounted()))

    def until_shared(self, *shares: int) -> None:
        self.until(lambda: self.shares() == list(shares))

    def until_all_accounted(self) -> None:
        self.until(lambda: sum(self.accounted()) >= PARTITIONS * self.published)

    def accounted(self) -> list[int]:
        return [books.accounted for books in self.store.read_ledgers(STREAM.stream)]

    def assert_each_event_once(self) -> None:
        numbers = list(range(self.published))
        for id in map(str, range(PARTITIONS)):
            ranges = [kept for kept in self.engine.ledger() if kept.partition_id == id]
            assert [number for kept in ranges for number in range(kept.first, kept.last + 1)] == numbers
            rows = [kept.sequence_number for kept in self.engine.rows(SensorReading) if kept.partition_id == id]
            assert rows == numbers
        assert all(books.balanced for books in self.store.read_ledgers(STREAM.stream))

    def end(self) -> None:
        for worker in self.workers:
            with worker:
                worker.send_signal(signal.SIGCONT)
                worker.kill()
        self.producer.close()
        self.store.close()
