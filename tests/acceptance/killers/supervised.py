"""Start a process of the app again each time it dies, as a supervisor would, and read how it ended."""

import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from core.model.events import Stream
from core.store.sqlite.database import SqliteDatabase
from tests.acceptance.gaps.apps import LOOK, App
from tests.fakes.engines import SqliteEngine
from tests.fakes.store import Store
from tests.patience import Patience

DEADLINE = 100.0  # seconds of an idle machine from one death to the next
SETTINGS = {
    "TRANSFORM": "tests.fakes.killing_transform",
    "TRANSFORM_DEADLINE_SECONDS": "1",
    "DEAD_LETTER_BASE_SECONDS": "3600",
}
WAYS = (b"exit", b"segfault", b"killed", b"loop", b"overflow", b"join", b"regex", b"memory")
CRASHED = ("crash", "ProcessDied", "exhausted")


@dataclass
class Supervisor:
    """A process that is started again whenever it has ended; `statuses` are those of the processes that died."""

    start: Callable[[], "subprocess.Popen[str]"]
    most_deaths: int = 100
    statuses: list[int] = field(default_factory=list)
    process: "subprocess.Popen[str]" = field(init=False)

    def __post_init__(self) -> None:
        self.process = self.start()

    def until(self, is_done: Callable[[], bool]) -> list[int]:
        """Wait for a condition; return the statuses. The last process still runs."""
        patience = Patience(DEADLINE)
        while not is_done():
            if self.process.poll() is not None:
                with self.process as dead:
                    self.statuses.append(dead.returncode)
                assert len(self.statuses) <= self.most_deaths, self.statuses
                self.process = self.start()
            patience.pause(lambda: list(self.statuses), LOOK)
        return self.statuses

    def end(self) -> None:
        with self.process as last:
            last.kill()


def start_host(app: App, **settings: str) -> "subprocess.Popen[str]":
    """Start a host of the app, which may die before it is ready."""
    with suppress(StopIteration):
        app.start_host(**settings)
    assert app.host is not None
    return app.host


def accounted(engine: SqliteEngine, stream: Stream) -> dict[str, int]:
    """Return the number of events of each partition that the ledger accounts for; it must balance."""
    store = Store(SqliteDatabase(engine.path))
    books = store.read_ledgers(stream)
    store.close()
    assert all(one.balanced for one in books)
    return {str(one.partition.partition_id): one.accounted for one in books}


def letters(engine: SqliteEngine) -> dict[str, tuple[str, str, str]]:
    """Return the class, the type and the status of each letter by its body."""
    return {
        kept.body.decode(): (kept.error_class, kept.error_type.rpartition(".")[2], kept.status)
        for kept in engine.letters()
    }
