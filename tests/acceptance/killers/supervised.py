"""Start a process of the app again each time it dies, as a supervisor would, until every event is accounted for."""

import time
from collections.abc import Callable
from typing import Any

from core.model.events import Stream
from core.store.sqlite.database import SqliteDatabase
from tests.fakes.engines import SqliteEngine
from tests.fakes.store import Store

DEADLINE = 400.0  # seconds for all deaths of a test
SETTINGS = {
    "TRANSFORM": "tests.fakes.killing_transform",
    "TRANSFORM_DEADLINE_SECONDS": "1",
    "DEAD_LETTER_BASE_SECONDS": "3600",
}


def supervise(start: Callable[[], Any], is_done: Callable[[], bool]) -> list[int]:
    """Return the exit statuses of the processes that died; the last process still runs."""
    deadline = time.monotonic() + DEADLINE
    statuses: list[int] = []
    process = start()
    while not is_done():
        assert time.monotonic() < deadline, f"not in time: {statuses}"
        if process.poll() is not None:
            statuses.append(process.returncode)
            process.wait()
            process = start()
        time.sleep(0.02)
    return statuses


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


CRASHED = ("crash", "ProcessDied", "exhausted")
