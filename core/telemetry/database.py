"""A database whose calls are counted and timed, with their conflicts and their transient faults."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeVar

from core.errors import CheckpointConflict, IncarnationConflict, LetterConflict, ReplayConflict, StoreUnavailable
from core.settings import embedded_path
from core.store.database import Database
from core.store.script import Named, Outcome, Script
from core.telemetry.instruments import Instruments
from core.telemetry.names import CALL_DURATION, CONFLICTS, DATABASE, DATABASE_OPERATION, ERROR, TRANSIENT_FAULTS

Answer = TypeVar("Answer")
LOST_RACES = (CheckpointConflict, IncarnationConflict, LetterConflict, ReplayConflict)


@dataclass(slots=True)
class Calls:
    """The number of calls to the store in one piece of work."""

    count: int = 0


_calls: ContextVar[Calls | None] = ContextVar("store_calls", default=None)


@contextmanager
def counted_calls() -> Iterator[Calls]:
    """Count the calls that the block makes in its own thread."""
    calls = Calls()
    token = _calls.set(calls)
    try:
        yield calls
    finally:
        _calls.reset(token)


def system_of(store_connection: str) -> str:
    """Return the `db.system.name` of a store."""
    return "sqlite" if embedded_path(store_connection) else "microsoft.sql_server"


class ObservedDatabase:
    """Observes each call to a database, also those that patience repeats. It changes no answer and no fault."""

    def __init__(self, database: Database, system: str, instruments: Instruments) -> None:
        self._database, self._instruments = database, instruments
        self._system = {DATABASE: system}

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        """Read, and record the call."""
        return self._observed("read", lambda: self._database.ask(statement, **values))

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        """Write, and record the call."""
        return self._observed("commit", lambda: self._database.run(script, rehearse))

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _observed(self, operation: str, call: Callable[[], Answer]) -> Answer:
        if (calls := _calls.get()) is not None:
            calls.count += 1
        attributes, began = {**self._system, DATABASE_OPERATION: operation}, perf_counter()
        try:
            return call()
        except Exception as fault:
            attributes[ERROR] = type(fault).__name__
            self._note(fault)
            raise
        finally:
            self._instruments.record(CALL_DURATION, perf_counter() - began, attributes)

    def _note(self, fault: Exception) -> None:
        told = {**self._system, ERROR: type(fault).__name__}
        if isinstance(fault, StoreUnavailable):
            self._instruments.record(TRANSIENT_FAULTS, 1, told)
        elif isinstance(fault, LOST_RACES):
            self._instruments.record(CONFLICTS, 1, told)
