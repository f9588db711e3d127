"""Heal a gap: read its events back from the hub in pieces, and record which numbers the hub no longer has."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import merge
from itertools import groupby, islice

from core.errors import GapNotHealed, HubUnreachable
from core.model.commits import PartitionState, SequenceGap
from core.model.events import BATCH_EVENTS, Event, EventBatch, Partition, SequenceNumber, Span, number_of
from core.model.policies import Anchoring
from core.model.ports import Extent, HubReader, Place


@dataclass(frozen=True, slots=True)
class GapReading:
    """The means to read gaps back: the hub, the start of the stream in it, and the time limit of one try."""

    hub: HubReader
    anchoring: Anchoring = "first"
    patience: timedelta = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Gap:
    """Missing numbers of a partition, the new events of the batch up to their end, and the invocation that found it."""

    state: PartitionState
    missing: Span
    in_hand: Sequence[Event]
    invocation_id: str

    @property
    def read_from(self) -> SequenceNumber:
        """The first number to read: the checkpoint's own number when the gap follows the checkpoint.

        The guard then compares that event with the checkpoint.
        """
        checkpoint = self.state.checkpoint
        if checkpoint is not None and self.missing.first == checkpoint.sequence_number + 1:
            return checkpoint.sequence_number
        return self.missing.first


def pieces(gap: Gap, gap_reading: GapReading, now: Callable[[], datetime]) -> Iterator[EventBatch]:
    """Yield the events of a gap, from the hub and in hand, as batches. Numbers that are in no batch are absent.

    Raises GapNotHealed between two pieces when the time is up, but always yields the first piece.
    """
    partition, missing = gap.state.partition, gap.missing
    deadline = now() + gap_reading.patience
    found = gap_reading.hub.read_range(partition, gap.read_from, missing.last, deadline)
    with closing(found):
        in_order = merge(gap.in_hand, found, key=number_of)
        each_once = (next(same) for _, same in groupby(in_order, key=number_of))
        first = True
        while events := tuple(islice(each_once, BATCH_EVENTS)):
            if not first and now() >= deadline:
                raise GapNotHealed(partition, events[0].sequence_number, missing.last)
            yield EventBatch(partition, events, gap.invocation_id, asked=missing)
            first = False


def gap_rows(run: Sequence[Event], committed: Span, asked: Span) -> list[SequenceGap]:
    """Return the parts of the `asked` range: healed or absent where a commit of these events covers it, else open."""
    covered = asked.overlap(committed)
    if covered is None:
        return []
    numbers = [event.sequence_number for event in run if covered.first <= event.sequence_number <= covered.last]
    rows = [SequenceGap(*part.ends, "healed" if is_there else "absent") for part, is_there in covered.runs(numbers)]
    if covered.last < asked.last:
        rows.append(SequenceGap(SequenceNumber(covered.last + 1), asked.last, "open"))
    return rows


def gap_facts(partition: Partition, gap: Span, healed: int, absent: int) -> dict[str, object]:
    """Return the fields of the log line of a gap."""
    return {
        "action": "gap",
        "partition": str(partition),
        "first": gap.first,
        "last": gap.last,
        "healed": healed,
        "absent": absent,
    }


class _NoHub:
    """Stands in when no hub is configured: every call raises HubUnreachable."""

    def partitions(self) -> tuple[Partition, ...]:
        raise self._fault("the partitions of the hub")

    def created_at(self) -> datetime:
        raise self._fault("the hub's time of creation")

    def extent(self, partition: Partition) -> Extent:
        raise self._fault(f"the beginning of {partition}")

    def first_at(self, partition: Partition, place: Place) -> Event | None:
        raise self._fault(f"{partition} at {place}")

    def find_event(self, partition: Partition, sequence_number: SequenceNumber) -> Event | None:
        raise self._fault(f"{partition} at {sequence_number}")

    def read_range(
        self, partition: Partition, first: SequenceNumber, last: SequenceNumber, deadline: datetime
    ) -> Generator[Event, None, None]:
        raise self._fault(f"{partition} from {first} to {last}")

    @staticmethod
    def _fault(what: str) -> HubUnreachable:
        return HubUnreachable(f"no hub reader is configured, so {what} cannot be read")


NO_GAP_READING = GapReading(_NoHub())
