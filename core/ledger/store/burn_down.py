"""The burn-down of a stream, from named statements of either engine."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from core.ledger.retention.open_counts import LETTERS, Kind, OpenCount, OpenGap
from core.model.events import PartitionId
from core.model.spans import SequenceNumber
from core.store.columns import instant_or_none, instant_text
from core.store.decoding import decoded
from core.store.stream import OneStream

MOST_GAPS = 1000


class BurnDowns:
    """Reads the open letters and gaps of one stream."""

    def __init__(self, stream: OneStream) -> None:
        self._stream = stream

    def read_partition_ids(self) -> tuple[PartitionId, ...]:
        """Return the partitions that have a checkpoint: no other partition has letters."""
        return tuple(PartitionId(id) for id, _ in self._stream.ask("read_last_batches"))

    def count_open_letters(
        self, partition_id: PartitionId, beginning: SequenceNumber, cuts: Sequence[datetime]
    ) -> tuple[OpenCount, ...]:
        """Count the open letters of a partition by kind; those before `beginning` are gone."""
        first, second, third = map(instant_text, cuts)
        given = {"beginning": beginning, "first_cut": first, "second_cut": second, "third_cut": third}
        return tuple(
            OpenCount(partition_id, kind, letters, gone, instant_or_none(first_at), tuple(by_cut))
            for kind in LETTERS
            for letters, gone, first_at, *by_cut in self._count(kind, partition_id, given)
            if letters
        )

    def read_open_gaps(self) -> tuple[OpenGap, ...]:
        """Return the open gaps by partition and number, as many as a person can look at."""
        return decoded(OpenGap, self._stream.ask("read_open_gaps", most=MOST_GAPS))

    def _count(self, kind: Kind, partition_id: PartitionId, given: dict[str, object]) -> list[tuple[Any, ...]]:
        own = {"partition_id": partition_id, "body_kept": int(kind == "kept")}
        return self._stream.ask("count_open_letters", **own, **given)
