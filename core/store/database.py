"""The database: the port that both engines implement, and patience around it."""

import math
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from core.errors import StoreUnavailable, StoreUnreachable
from core.model.events import PartitionId, Stream
from core.model.ports import Clock
from core.store.columns import instant_of, names_of
from core.store.memory import Memory
from core.store.script import Named, Outcome, Script, Step

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds
Answer = TypeVar("Answer")


class Database(Protocol):
    """Runs statements by name. Both engines have the same names, parameters and columns. Instants are texts.

    Several threads may call every method. Every method may raise StoreUnavailable: then nothing was written.
    """

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement that reads. Raises DataRefused for values that it cannot compare."""
        ...

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        """Run a script in one transaction. A rehearsal is rolled back and returns what a commit would have returned.

        Raises the error that `otherwise` of a step makes, and DataRefused. With both, nothing was written. Raises
        CommitOutcomeUnknown when the answer was lost.
        """
        ...

    def close(self) -> None:
        """Close every connection."""
        ...


@dataclass(frozen=True, slots=True)
class Waiting:
    """The clock and the sleep of the retries, in seconds, and their chance (0 to 1)."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random


LONGEST_INVOCATION = timedelta(minutes=8)  # `functionTimeout` of host.json less the longest call after the last pause
_must_end_at: ContextVar[float] = ContextVar("invocation_must_end_at", default=math.inf)
_ends_at: ContextVar[float] = ContextVar("invocation_ends_at", default=math.inf)


@contextmanager
def invocation(limit: timedelta, monotonic: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """End the patience of all calls within this block when the limit is over: no pause holds the invocation longer.

    A child process that tries events that may hang has the time of a whole invocation.
    """
    ends = _ends_at.set(monotonic() + limit.total_seconds())
    must_end = _must_end_at.set(time.monotonic() + LONGEST_INVOCATION.total_seconds())
    try:
        yield
    finally:
        _ends_at.reset(ends)
        _must_end_at.reset(must_end)


def seconds_left() -> float:
    """Return the seconds until the invocation has to end. Without an invocation, they never end."""
    return _must_end_at.get() - time.monotonic()


class PatientDatabase:
    """Repeats a call, with growing pauses, while the database is unavailable and patience lasts.

    Only StoreUnavailable is retried: it promises that nothing was written. An unknown outcome goes to the caller. A
    fault of the connection names its own pause. Patience ends with the invocation at the latest.
    """

    def __init__(self, database: Database, patience: timedelta, waiting: Waiting | None = None) -> None:
        self._database = database
        self._patience = patience.total_seconds()
        self._waiting = waiting or Waiting()

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        """Read with patience."""
        return self._patiently(lambda: self._database.ask(statement, **values))

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        """Write with patience."""
        return self._patiently(lambda: self._database.run(script, rehearse))

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _patiently(self, call: Callable[[], Answer]) -> Answer:
        deadline = min(self._waiting.monotonic() + self._patience, _ends_at.get())
        pause = FIRST_PAUSE
        while True:
            try:
                return call()
            except StoreUnavailable as fault:
                chance = self._waiting.chance()  # so that not all callers try at once
                rest = fault.pause * (1 + chance / 4) if isinstance(fault, StoreUnreachable) else pause * chance
                if self._waiting.monotonic() + rest >= deadline:
                    raise
            self._waiting.sleep(rest)
            pause = min(2 * pause, LONGEST_PAUSE)


def write(database: Database, subject: str, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
    """Run one statement that may be repeated, and return its rows."""
    return database.run(Script(subject, (Step(statement, values, answers=True),), may_repeat=True)).rows


OF_BATCHES = timedelta(minutes=1)  # the greatest age of a reading: a batch pays nothing for it
OF_LETTERS = timedelta(seconds=1)  # processes that disagree take letters from each other, so they must not for long


def read_time(database: Database) -> datetime:
    """Return the time by the clock of the database."""
    return instant_of(database.ask("read_time")[0][0])


def store_clock(
    database: Database, own: Clock, age: timedelta = OF_BATCHES, monotonic: Callable[[], float] = time.monotonic
) -> Clock:
    """Return a clock that tells the time of the database, with the ids and the chance of `own`.

    It reads the time when its last reading is older than `age`, and adds the seconds since then by a clock that never
    goes back. `now` may raise StoreFault.
    """
    return replace(own, now=_Readings(lambda: read_time(database), age.total_seconds(), monotonic).now)


@dataclass(slots=True)
class _Readings:
    """The last reading: the time, and the seconds of this process between its request and its answer."""

    read: Callable[[], datetime]
    age: float
    monotonic: Callable[[], float]
    last: tuple[datetime, float] | None = None

    def now(self) -> datetime:
        last, seconds = self.last, self.monotonic()
        if last is None or seconds - last[1] >= self.age:
            last = self.read(), (seconds + self.monotonic()) / 2
            self.last, seconds = last, self.monotonic()
        return last[0] + timedelta(seconds=seconds - last[1])


class StreamClosed(Exception):
    """Nothing was written: the stream is closed."""


class OneStream:
    """One stream of a database, in its newest incarnation. Its id is remembered for a few seconds.

    `monotonic` gives seconds.
    """

    def __init__(self, database: Database, stream: Stream, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.database = database
        self.stream = stream
        self.monotonic = monotonic
        self._memory = Memory(timedelta(), monotonic)

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement about this stream, or none while there is no such stream."""
        stream_id = self.find()
        return [] if stream_id is None else self.database.ask(statement, stream_id=stream_id, **values)

    def write(self, statement: str, partition_id: PartitionId, **values: Any) -> None:
        """Run a statement that writes to this stream. Do nothing while there is no such stream."""
        stream_id = self.find()
        if stream_id is not None:
            place = {"stream_id": stream_id, "partition_id": partition_id}
            write(self.database, str(self.stream), statement, **place, **values)

    def find(self) -> int | None:
        """Return the stream's id, or None while the stream is not in the database."""
        known = self._memory.stream_id_of(self.stream)
        if known is not None:
            return known
        row = self.database.ask("find_stream", **names_of(self.stream))
        return self._memory.remember_stream(self.stream, int(row[0][0])) if row else None

    def forget(self) -> None:
        """Forget the stream's id: its next incarnation was opened."""
        self._memory.forget_stream(self.stream)


def lock_step(stream_id: int, otherwise: Callable[[], Exception]) -> Step:
    """Return the step that locks a stream until its transaction ends. `otherwise`: the error of a closed one."""
    return Step("lock_stream", {"stream_id": stream_id}, expect=1, otherwise=otherwise, keeps="locked_stream")
