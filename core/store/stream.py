"""One stream of a database, for operators: reading it never opens a stream."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from core.model.events import PartitionId, Stream
from core.store.columns import names_of
from core.store.database import Database, write
from core.store.memory import Memory
from core.store.script import Named, Step


class StreamClosed(Exception):
    """Nothing was written: the stream is closed."""


class OneStream:
    """One stream of a database, in its newest incarnation; its id is remembered for a few seconds.

    `monotonic` gives seconds.
    """

    def __init__(self, database: Database, stream: Stream, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.database = database
        self.stream = stream
        self.monotonic = monotonic
        self._memory = Memory(timedelta(), monotonic)

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement about this stream; none while there is no such stream."""
        stream_id = self.find()
        return [] if stream_id is None else self.database.ask(statement, stream_id=stream_id, **values)

    def write(self, statement: str, partition_id: PartitionId, **values: Any) -> None:
        """Run a statement that writes to this stream; do nothing while there is no such stream."""
        stream_id = self.find()
        if stream_id is not None:
            place = {"stream_id": stream_id, "partition_id": partition_id}
            write(self.database, str(self.stream), statement, **place, **values)

    def find(self) -> int | None:
        """Return the stream's id; None while the stream is not in the database."""
        known = self._memory.stream_id_of(self.stream)
        if known is not None:
            return known
        row = self.database.ask("find_stream", **names_of(self.stream))
        return self._memory.remember_stream(self.stream, int(row[0][0])) if row else None


def lock_step(stream_id: int, otherwise: Callable[[], Exception]) -> Step:
    """Return the step that locks a stream until its transaction ends; `otherwise`: the error of a closed one."""
    return Step("lock_stream", {"stream_id": stream_id}, expect=1, otherwise=otherwise, keeps="locked_stream")
