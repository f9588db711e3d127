"""One stream of a database, for operators: reading it never opens a stream."""

from typing import Any

from core.model.events import PartitionId, Stream
from core.store.database import Database, write
from core.store.script import Named


class OneStream:
    """One stream of a database by its id, which is remembered once the stream exists."""

    def __init__(self, database: Database, stream: Stream) -> None:
        self.database = database
        self.stream = stream
        self._id: int | None = None

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
        if self._id is None:
            key = {"event_hub": self.stream.event_hub, "consumer_group": self.stream.consumer_group}
            found = self.database.ask("find_stream", **key)
            self._id = int(found[0][0]) if found else None
        return self._id
