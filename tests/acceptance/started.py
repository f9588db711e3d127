"""The one way to start a program in a process of its own, and the app on a host or workers, with its hub and store."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import urllib.request
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from azure.eventhub import EventData, EventHubProducerClient

from core.model.events import Stream
from examples.home_security.transform import SensorReading
from local.event_hubs import Emulator, HubSettings
from local.event_hubs.server import unix_milliseconds
from local.programs import APP
from tests.fakes.engines import SqliteEngine
from tests.fakes.store import Store
from tests.patience import Patience, allowed

Process = subprocess.Popen[str]

DEADLINE = 60.0  # seconds of an idle machine
LOOK = 0.05  # seconds between two looks, each of which reads the store or the log
HUB, GROUP, READERS = "telemetry", "hubledger", "hubledger-reader"
STREAM = Stream(f"localhost/{HUB}", GROUP)
BATCH = 100  # events: host.json has the trigger wait for as many, so they are neither split nor joined
READY = "functions host ready on "
NO_HUB = "Endpoint=sb://localhost:9;SharedAccessKeyName=k;SharedAccessKey=s;UseDevelopmentEmulator=true"
SELDOM = {"WATCH_SCHEDULE": "0 0 0 1 1 *"}  # the timer does not come within the test
OFTEN = {"WATCH_SCHEDULE": "* * * * * *", "GAP_GRACE_SECONDS": "1"}
AT_ONCE = {"AzureFunctionsJobHost__extensions__eventHubs__minEventBatchSize": "1"}
TIMES = ("--interval", "0.2", "--expiry", "1")  # of a worker without peers: what died is soon replaced


def start(*words: str, settings: Mapping[str, str] | None = None, alone: bool = False, **options: Any) -> Process:
    """Start `python -m` with these words. A program that is `alone` has only PATH, HOME and its settings around it."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ} if alone else os.environ
    given = {"cwd": APP, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen([sys.executable, "-m", *words], env={**kept, **(settings or {})}, text=True, **given)


def line_of(process: Process, begin: str, holds: Callable[[str], bool] = bool, deadline: float = DEADLINE) -> str:
    """Return the first line of the output that begins so and holds. A process without one is killed after a while."""
    assert process.stdout is not None
    alarm = threading.Timer(allowed(deadline), process.kill)
    alarm.start()
    try:
        found = next((line for line in process.stdout if line.startswith(begin) and holds(line)), None)
    finally:
        alarm.cancel()
    assert found is not None, f"it ended without {begin!r}: {process.stderr.read() if process.stderr else ''}"
    return found.rstrip("\n")


def send_to_the_end(process: Process) -> None:
    while process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.002)


def settings_of(connection: str, database: Path) -> dict[str, str]:
    return {
        "EVENTHUB": connection,
        "EVENTHUB_NAME": HUB,
        "EVENTHUB_CONSUMER_GROUP": GROUP,
        "HUB_READER_CONSUMER_GROUP": READERS,
        "STORE_CONNECTION": f"sqlite:{database}",
        "TRANSFORM": "tests.fakes.plain_transform",
    }


def publish_raw(producer: EventHubProducerClient, messages: Sequence[bytes], partition_id: str = "0") -> None:
    """Publish messages that are encoded already, because the SDK cannot encode every one. They come together."""
    batch: Any = producer.create_batch(partition_id=partition_id)
    batch._message[5].extend(messages)
    batch._count = len(messages)
    producer.send_batch(batch)


@dataclass
class App:
    """A hub, a store, and the app between them, which has not started. `published` are the events of each partition."""

    emulator: Emulator
    folder: Path
    engine: SqliteEngine
    published: dict[str, int]
    host: Process | None = None
    address: str = ""
    workers: list[Process] = field(default_factory=list)

    @cached_property
    def producer(self) -> EventHubProducerClient:
        return EventHubProducerClient.from_connection_string(self.emulator.connection_string, eventhub_name=HUB)

    @cached_property
    def store(self) -> Store:
        return self.engine.open()

    def settings(self, **changed: str) -> dict[str, str]:
        """Return settings with a connection string that names the hub, as the endpoint of an IoT Hub gives it."""
        return {**settings_of(f"{self.emulator.connection_string};EntityPath={HUB}", self.engine.path), **changed}

    def start(self, **changed: str) -> None:
        self.start_host(**changed)
        self.until(lambda: self.emulator.reader_count(HUB) >= len(self.published))

    def start_host(self, *more: str, **changed: str) -> Process:
        """Kill the host, if there is one, and start one. It may die before it is ready."""
        self.end_host()
        options = ("--app", ".", "--port", "0", "--state", f"{self.folder}/host.db", "--log", f"{self.folder}/host.log")
        words = ("local.functions_host", *options, *more)
        self.host = start(*words, settings=self.settings(**changed), alone=True, stderr=None)
        assert self.host.stdout is not None
        self.address = next((line for line in self.host.stdout if line.startswith(READY)), "")[len(READY) :].strip()
        return self.host

    def start_worker(self, *more: str, **changed: str) -> Process:
        """Start a worker apart from this process's group. The output of one with `--health` or `--grace` is read."""
        output = subprocess.PIPE if {"--health", "--grace"} & set(more) else subprocess.DEVNULL
        words, settings = ("core.worker", *TIMES, *more), self.settings(**changed)
        self.workers.append(start(*words, settings=settings, alone=True, stdout=output, start_new_session=True))
        return self.workers[-1]

    def freeze(self, worker: Process) -> None:
        """Stop a worker, but not inside a transaction: SQLite has one lock, which it would keep."""
        with closing(sqlite3.connect(self.engine.path, isolation_level=None, timeout=allowed(DEADLINE))) as connection:
            connection.execute("BEGIN IMMEDIATE")
            worker.send_signal(signal.SIGSTOP)
            os.waitpid(worker.pid, os.WUNTRACED)
            connection.execute("ROLLBACK")

    def request(self, path: str, body: object = None, method: str | None = None) -> Any:
        octets, headers = None if body is None else json.dumps(body).encode(), {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.address}/{path}", octets, headers, method=method)
        with urllib.request.urlopen(request, timeout=allowed(DEADLINE)) as answer:
            return json.loads(answer.read() or b"null")

    def open_task(self, kind: str, **body: object) -> str:
        return str(self.request(f"api/tasks/{uuid.uuid4()}", {"kind": kind, **body}, "PUT")["task_id"])

    def ended(self, task: str) -> Any:
        """Return a task when it has ended. A host that is down meanwhile does not answer."""
        found: Any = {}

        def has_ended() -> bool:
            nonlocal found
            with suppress(OSError):
                found = self.request(f"api/tasks/{task}")
            return found.get("status") not in (None, "planned", "running")

        self.until(has_ended)
        return found

    def skip(self, batches: int) -> None:
        """Have the host checkpoint the next batches of every partition without delivery."""
        self.request("admin/faults", {"skip": batches})

    def send(self, id: str, bodies: list[bytes]) -> None:
        self._send(bodies, partition_id=id)
        self.published[id] += len(bodies)

    def publish(self, count: int, body: bytes = b"reading home-1") -> None:
        """Publish so many more events to each partition: batches without a key take partitions in turn."""
        for id in self.published:
            self._send([body] * count)
            self.published[id] += count

    def _send(self, bodies: list[bytes], **place: Any) -> None:
        batch = self.producer.create_batch(**place)
        for body in bodies:
            batch.add(EventData(body))
        self.producer.send_batch(batch)

    def recreate_hub(self) -> None:
        """Delete the hub and create it again. The producer opens a new link."""
        self.emulator.recreate(HUB)
        self.published = dict.fromkeys(self.published, 0)
        self._close("producer")

    def publish_skipped(self) -> None:
        """Publish a batch to every partition that the host loses. Return when it has checkpointed it."""
        self.skip(1)
        self.publish(BATCH)
        self.until(lambda: self.host_checkpoints() == self.published)

    def host_checkpoints(self) -> dict[str, int]:
        with closing(sqlite3.connect(f"file:{self.folder}/host.db?mode=ro", uri=True)) as state:
            rows = state.execute("SELECT partition_id, sequence_number FROM host_checkpoint").fetchall()
        return {id: number + 1 for id, number in rows}

    def until(self, holds: Callable[[], object]) -> None:
        """Wait for a condition, while partitions get owners and events are accounted for."""
        patience = Patience(DEADLINE)
        while not holds():
            assert self.host is None or self.host.poll() is None, "the host ended"
            patience.pause(lambda: (self.accounted(), self.shares(), self.published), LOOK)

    def until_all_accounted(self) -> None:
        self.until(lambda: self.accounted() == self.published)
        assert all(books.balanced for books in self.store.read_ledgers(STREAM))

    def until_shared(self, *shares: int) -> None:
        self.until(lambda: self.shares() == list(shares))

    def accounted(self) -> dict[str, int]:
        books = {str(one.partition.partition_id): int(one.checkpoint) + 1 for one in self.store.read_ledgers(STREAM)}
        return {**dict.fromkeys(self.published, 0), **books}

    def shares(self) -> list[int]:
        """Return the number of partitions of each worker, the smallest first. A released partition has no owner."""
        return sorted(Counter(one.owner_id for one in self.store.read_ownerships(STREAM) if one.owner_id).values())

    def lines(self, action: str) -> list[dict]:
        """Return the log lines of an action. A killed host may leave half a line."""
        log = self.folder / "host.log"
        whole = [line for line in log.read_text().splitlines() if line.endswith("}")] if log.exists() else []
        named = [line for line in whole if f'"{action}"' in line]  # few: to read each line as JSON costs more
        return [entry for entry in map(json.loads, named) if entry.get("action") == action]

    def letters(self) -> dict[str, tuple[str, str, str]]:
        return {
            kept.body.decode(): (kept.error_class, kept.error_type.rpartition(".")[2], kept.status)
            for kept in self.engine.letters()
        }

    def end_host(self) -> None:
        """Kill the host, if one was started: this is faster than an orderly stop and no less safe."""
        if self.host is not None:
            with self.host as host:  # closes its pipe, also when somebody has closed it before
                host.kill()
            self.host = None

    def end(self) -> None:
        self.end_host()
        for worker in self.workers:
            with worker:
                worker.send_signal(signal.SIGCONT)
                worker.kill()
        self._close("producer")
        self._close("store")

    def _close(self, name: str) -> None:
        if opened := self.__dict__.pop(name, None):
            opened.close()

    def assert_each_number_once(self, absent: Mapping[str, set[int]] | None = None, lost: str = "absent") -> None:
        """Check that the present stream has every number once, written or, where it is named here, without a row.

        Numbers without a row are `absent`, or `lost` in some other way that no gap tells.
        """
        assert all(books.balanced for books in self.store.read_ledgers(STREAM))
        stream = max((kept.stream_id for kept in self.engine.ledger()), default=0)
        for id, count in self.published.items():
            gone, here = (absent or {}).get(id, set()), (stream, id)
            ranges = [kept for kept in self.engine.ledger() if (kept.stream_id, kept.partition_id) == here]
            assert [number for kept in ranges for number in range(kept.first, kept.last + 1)] == list(range(count))
            rows = [one for one in self.engine.rows(SensorReading) if (one.stream_id, one.partition_id) == here]
            assert sorted(one.sequence_number for one in rows) == sorted(set(range(count)) - gone)
            if lost == "absent":
                named = [gap for gap in self.engine.gaps() if (gap.partition_id, gap.status) == (id, "absent")]
                assert {number for gap in named for number in range(gap.first, gap.last + 1)} == gone
                assert sum(kept.absent for kept in ranges) == len(gone)


@dataclass
class MovableClock:
    """The real time of a hub, plus the time that a test adds."""

    ahead: timedelta = timedelta(0)

    def __call__(self) -> int:
        return unix_milliseconds() + self.ahead // timedelta(milliseconds=1)


@contextmanager
def working(folder: Path, partitions: int = 2, clock: Callable[[], int] = unix_milliseconds) -> Iterator[App]:
    emulator = Emulator([HubSettings(HUB, partitions, (GROUP, READERS))], clock=clock)
    with emulator.running():
        app = App(emulator, folder, SqliteEngine(folder / "store.db"), {str(id): 0 for id in range(partitions)})
        try:
            yield app
        finally:
            app.end()


KILLING = {
    "TRANSFORM": "tests.fakes.killing_transform",
    "TRANSFORM_DEADLINE_SECONDS": "1",
    "DEAD_LETTER_BASE_SECONDS": "3600",
}
WAYS = (b"exit", b"segfault", b"killed", b"loop", b"overflow", b"join", b"regex", b"memory")
CRASHED = ("crash", "ProcessDied", "exhausted")


@dataclass
class Supervisor:
    """A process that is started again whenever it has ended. `statuses` are those of the processes that died."""

    start: Callable[[], Process]
    most_deaths: int = 100
    statuses: list[int] = field(default_factory=list)
    process: Process = field(init=False)

    def __post_init__(self) -> None:
        self.process = self.start()

    def until(self, is_done: Callable[[], bool]) -> list[int]:
        """Wait for a condition. Return the statuses. The last process still runs."""
        patience = Patience(100)
        while not is_done():
            if self.process.poll() is not None:
                with self.process as dead:
                    self.statuses.append(dead.returncode)
                assert len(self.statuses) <= self.most_deaths, self.statuses
                self.process = self.start()
            patience.pause(lambda: list(self.statuses), LOOK)
        return self.statuses
