"""Health: the process lives. The store can be read and written. The books balance, and no partition stands.

A result is remembered for five seconds, that of the write for thirty.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from core.api.operation import Answer, Answered, Call, Nothing, operation
from core.errors import HubledgerError, StoreUnavailable
from core.ledger.books import Books
from core.model.commits import PartitionStop
from core.model.events import PartitionId
from handlers.app import CLOCK, app
from handlers.operations.stops import StandingAnswer, StopAnswer, standing_answers, stop_answers
from handlers.remembered import Lifetime, Remembered

PATIENCE = 2.0  # seconds for a write
_writer = ThreadPoolExecutor(1, thread_name_prefix="health")  # one thread: a write that hangs is not doubled
THIRTY_SECONDS = Lifetime(fresh=30.0, limit=30.0)
FIVE_SECONDS = Lifetime(fresh=5.0, limit=5.0)  # health is requested often, and by many


class HealthAnswer(Answered):
    """The health, and the name of the fault where there is one."""

    healthy: bool
    fault: str | None = None


class LedgerHealthAnswer(Answered):
    """The health of the books, with the numbers that prove it, and the partitions that are stopped or stand."""

    healthy: bool
    numbers: int
    accounted: int
    dead_lettered: int
    replayed: int
    letters_open: int
    stops: list[StopAnswer]
    standing: list[StandingAnswer]


@operation("The process lives", "health")
def health_live(call: Call[Nothing, Nothing, Nothing]) -> HealthAnswer:
    """Answer: the process lives."""
    return HealthAnswer(healthy=True)


@operation("The store can be used", "health", {200: HealthAnswer, 503: HealthAnswer})
def health_ready(call: Call[Nothing, Nothing, Nothing]) -> Answer:
    """Check that settings, database and schema can be used, and that the database takes a write within two seconds. The
    write leaves no row, and is tried every thirty seconds. A fault is reported by its name only."""
    fault = READINESS.get()
    return Answer(HealthAnswer(healthy=fault is None, fault=fault), 200 if fault is None else 503)


def _find_fault() -> str | None:
    try:
        app().find_stream()
    except HubledgerError as fault:
        return type(fault).__name__
    return WRITABLE.get()


def _find_fault_of_writing() -> str | None:
    try:
        _writer.submit(app().ledger.try_write, CLOCK.new_id()).result(PATIENCE)
    except (HubledgerError, TimeoutError) as fault:
        return StoreUnavailable.__name__ if isinstance(fault, TimeoutError) else type(fault).__name__
    return None


@operation("The books balance and no partition stands", "health", {200: LedgerHealthAnswer, 503: LedgerHealthAnswer})
def health_ledger(call: Call[Nothing, Nothing, Nothing]) -> Answer:
    """Check that the books balance, and that no partition is stopped or stands."""
    books, stops = BOOKS.get()
    standing = standing_answers()
    body = LedgerHealthAnswer(
        healthy=books.balanced and not stops and not standing,
        numbers=books.numbers,
        accounted=books.accounted,
        dead_lettered=books.letters.dead_lettered,
        replayed=books.letters.replayed,
        letters_open=books.letters.open,
        stops=[answer for id, each in stops.items() for answer in stop_answers(id, each)],
        standing=standing,
    )
    return Answer(body, 200 if body.healthy else 503)


def _read_books() -> tuple[Books, Mapping[PartitionId, tuple[PartitionStop, ...]]]:
    own = app()
    return Books(own.ledger.read_books(), own.letter_counts.get().letters), own.ledger.read_stops()


READINESS, BOOKS = Remembered(_find_fault, FIVE_SECONDS), Remembered(_read_books, FIVE_SECONDS)
WRITABLE = Remembered(_find_fault_of_writing, THIRTY_SECONDS)
