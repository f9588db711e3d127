"""The calls to the store: their number in a piece of work, their time, their conflicts and their transient faults."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from core.errors import CheckpointConflict, IncarnationConflict, LetterConflict, StoreUnavailable, TaskConflict
from core.model.connection import embedded_path
from core.remote.telemetry.instruments import Instruments, Value
from core.remote.telemetry.names import (
    CALL_DURATION,
    CONFLICTS,
    DATABASE,
    DATABASE_OPERATION,
    ERROR,
    TRANSIENT_FAULTS,
)

LOST_RACES = (CheckpointConflict, IncarnationConflict, LetterConflict, TaskConflict)


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


class CallNotes:
    """Notes the calls to a store of one system."""

    def __init__(self, system: str, instruments: Instruments) -> None:
        self._instruments = instruments
        self._system: dict[str, Value] = {DATABASE: system}

    def note(self, operation: str, seconds: float, fault: Exception | None) -> None:
        """Record a call that took some seconds, and the fault that ended it."""
        if (calls := _calls.get()) is not None:
            calls.count += 1
        told = self._system if fault is None else {**self._system, ERROR: type(fault).__name__}
        self._instruments.record(CALL_DURATION, seconds, {**told, DATABASE_OPERATION: operation})
        if isinstance(fault, StoreUnavailable):
            self._instruments.record(TRANSIENT_FAULTS, 1, told)
        elif isinstance(fault, LOST_RACES):
            self._instruments.record(CONFLICTS, 1, told)
