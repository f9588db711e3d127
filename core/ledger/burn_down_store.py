"""The open letters and gaps whose events the hub will forget, from named statements of either engine."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from core.model.events import PartitionId, SequenceNumber
from core.store.columns import decoded, instant_or_none
from core.store.database import OneStream

MOST_GAPS = 1000
Kind = Literal["kept", "unkept", "gap"]  # a letter with a stored body, a letter without, a gap
LETTERS: tuple[Kind, ...] = ("kept", "unkept")


@dataclass(frozen=True, slots=True)
class OpenCount:
    """The open letters or gaps of one kind in a partition. The hub no longer holds the events of `gone`; a gap is gone
    with its first event. Of the others, the first event was enqueued at `first_at`."""

    partition_id: PartitionId
    kind: Kind
    gone: int
    first_at: datetime | None


@dataclass(frozen=True, slots=True)
class OpenGap:
    """An open gap: its first number, and a time before which the event of that number was not enqueued."""

    partition_id: PartitionId
    first: SequenceNumber
    after_at: datetime


class BurnDowns:
    """Reads the open letters and gaps of one stream."""

    def __init__(self, stream: OneStream) -> None:
        self._stream = stream

    def read_partition_ids(self) -> tuple[PartitionId, ...]:
        """Return the partitions that have a checkpoint: no other partition has letters."""
        return tuple(PartitionId(id) for id, _ in self._stream.ask("read_last_batches"))

    def count_open_letters(self, partition_id: PartitionId, beginning: SequenceNumber) -> tuple[OpenCount, ...]:
        """Count the open letters of a partition by kind; those before `beginning` are gone."""
        return tuple(
            OpenCount(partition_id, kind, gone, instant_or_none(first_at))
            for kind in LETTERS
            for gone, first_at in self._count(kind, partition_id, beginning)
            if gone or first_at
        )

    def read_open_gaps(self) -> tuple[OpenGap, ...]:
        """Return the open gaps by partition and number, as many as a person can look at."""
        return decoded(OpenGap, self._stream.ask("read_open_gaps", most=MOST_GAPS))

    def _count(self, kind: Kind, partition_id: PartitionId, beginning: SequenceNumber) -> list[tuple[Any, ...]]:
        own = {"partition_id": partition_id, "body_kept": int(kind == "kept")}
        return self._stream.ask("count_open_letters", **own, beginning=beginning)
