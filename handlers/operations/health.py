"""Health: the process lives; the store can be used; the books balance. A result is remembered for five seconds."""

from core.errors import HubledgerError
from core.ledger.books import Books
from handlers.app import app
from handlers.remembered import Lifetime, Remembered
from handlers.web.operation import Answer, Answered, Call, Nothing, operation

FIVE_SECONDS = Lifetime(fresh=5.0, limit=5.0)  # health is requested often, and by many


class HealthAnswer(Answered):
    """The health, and the name of the fault where there is one."""

    healthy: bool
    fault: str | None = None


class LedgerHealthAnswer(Answered):
    """The health of the books, with the numbers that prove it."""

    healthy: bool
    numbers: int
    accounted: int
    dead_lettered: int
    replayed: int
    letters: int


@operation("The process lives", "health")
def health_live(call: Call[Nothing, Nothing, Nothing]) -> HealthAnswer:
    """Answer: the process lives."""
    return HealthAnswer(healthy=True)


@operation("The store can be used", "health", {200: HealthAnswer, 503: HealthAnswer})
def health_ready(call: Call[Nothing, Nothing, Nothing]) -> Answer:
    """Check that settings, database and schema can be used; a fault is reported by its name only."""
    fault = _readiness.get()
    return Answer(HealthAnswer(healthy=fault is None, fault=fault), 200 if fault is None else 503)


def _find_fault() -> str | None:
    try:
        app().find_stream()
    except HubledgerError as fault:
        return type(fault).__name__
    return None


@operation("The books balance", "health", {200: LedgerHealthAnswer, 503: LedgerHealthAnswer})
def health_ledger(call: Call[Nothing, Nothing, Nothing]) -> Answer:
    """Check that the books balance."""
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
    own = app()
    return Books(own.ledger.read_books(), own.letter_counts.get().letters)


_readiness, _books = Remembered(_find_fault, FIVE_SECONDS), Remembered(_read_books, FIVE_SECONDS)
