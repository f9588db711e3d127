"""One stream of an engine, as operators ask about it: by named statements, each a transaction of its own."""

from datetime import datetime
from typing import Any

from core.model.events import Partition, PartitionId, Stream
from core.store import NamedQueries
from core.store.records import instant_of


class NamedStream:
    """One stream of an engine by its id, which is asked for once it is there: reading opens none."""

    def __init__(self, engine: NamedQueries, stream: Stream) -> None:
        self.engine = engine
        self._key = {"event_hub": stream.event_hub, "consumer_group": stream.consumer_group}
        self._id: int | None = None
        self._stream = stream

    def of(self, partition_id: PartitionId) -> Partition:
        """A partition of this stream."""
        return self._stream.partition(partition_id)

    def ask(self, name: str, **values: Any) -> list[tuple[Any, ...]]:
        """Run a named statement that reads of this stream; nothing while there is no such stream."""
        stream_id = self.find()
        return [] if stream_id is None else self.engine.ask(name, stream_id=stream_id, **values)

    def tell(self, name: str, **values: Any) -> list[tuple[Any, ...]]:
        """Run a named statement that writes of this stream; nothing while there is no such stream."""
        stream_id = self.find()
        return [] if stream_id is None else self.engine.tell(name, stream_id=stream_id, **values)

    def find(self) -> int | None:
        """The stream's id; None while nothing of it is in the store."""
        if self._id is None:
            found = self.engine.ask("find_stream", **self._key)
            self._id = int(found[0][0]) if found else None
        return self._id


def instant_or_none(text: str | None) -> datetime | None:
    """An instant of a column that may be empty."""
    return None if text is None else instant_of(text)
