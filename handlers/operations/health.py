"""Health: the process lives; the store can be used; the books balance. What was found holds for five seconds."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from core.errors import HubledgerError
from core.ledger.books import Books
from handlers.desk import desk
from handlers.operation import Answer, Answered, Call, Nothing, Operation

KEEP = 5.0  # seconds
Found = TypeVar("Found")


class HealthAnswer(Answered):
    """Whether it is well, and the name of the fault when it is not."""

    healthy: bool
    fault: str | None = None


class LedgerHealthAnswer(Answered):
    """Whether the books balance, with the numbers that prove it."""

    healthy: bool
    numbers: int
    accounted: int
    dead_lettered: int
    replayed: int
    letters: int


class Remembered(Generic[Found]):
    """What a look found, for a short time: health is asked often, and by many."""

    def __init__(self, look: Callable[[], Found], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._look = look
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._found: tuple[float, Found] | None = None

    def get(self) -> Found:
        """What was found at most five seconds ago."""
        with self._lock:
            if self._found is None or self._monotonic() - self._found[0] >= KEEP:
                self._found = (self._monotonic(), self._look())
            return self._found[1]


def live(call: Call[Nothing, Nothing, Nothing]) -> HealthAnswer:
    """The process answers."""
    return HealthAnswer(healthy=True)


def ready(call: Call[Nothing, Nothing, Nothing]) -> Answer:
    """The settings are read, the database is reached, and its schema is ours. Only the fault's name is told."""
    fault = _readiness.get()
    return Answer(HealthAnswer(healthy=fault is None, fault=fault), 200 if fault is None else 503)


def _find_fault() -> str | None:
    try:
        desk().store.stream.find()
    except HubledgerError as fault:
        return type(fault).__name__
    return None


def ledger_health(call: Call[Nothing, Nothing, Nothing]) -> Answer:
    """The books balance; 503 when they do not."""
    books = _books.get()
    body = LedgerHealthAnswer(
        healthy=books.balanced,
        numbers=books.numbers,
        accounted=books.accounted,
        dead_lettered=books.letters.dead_lettered,
        replayed=books.letters.replayed,
        letters=sum(books.letters.counts.values()),
    )
    return Answer(body, 200 if books.balanced else 503)


def _read_books() -> Books:
    own = desk()
    return Books(own.store.books.read_books(), own.letter_counts.get().letters)


_readiness, _books = Remembered(_find_fault), Remembered(_read_books)

OPERATIONS = (
    Operation("health_live", "The process lives", live, {200: HealthAnswer}, tag="health"),
    Operation("health_ready", "The store can be used", ready, {200: HealthAnswer, 503: HealthAnswer}, tag="health"),
    Operation(
        "health_ledger",
        "The books balance",
        ledger_health,
        {200: LedgerHealthAnswer, 503: LedgerHealthAnswer},
        tag="health",
    ),
)
