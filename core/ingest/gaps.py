"""Heal a gap: fetch its events back from the hub in pieces, and say which numbers the hub no longer has."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import merge
from itertools import groupby, islice
from operator import attrgetter
from typing import Protocol

from core.errors import GapNotHealed, HubUnreachable
from core.ingest.anchor import Anchoring
from core.model.commits import PartitionState, SequenceGap
from core.model.events import Event, EventBatch, Partition
from core.model.hub import Extent, HubReader, Place
from core.model.spans import SequenceNumber, Span

PIECE = 500  # events, each piece its own commit: as many as a batch of the trigger

_number = attrgetter("sequence_number")


@dataclass(frozen=True, slots=True)
class Healing:
    """How gaps are healed: from which hub, since when its events count, and how long one try may take."""

    hub: HubReader
    anchoring: Anchoring = "first"
    patience: timedelta = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Wound:
    """A gap of a partition, with the new events in hand up to its end, in the name of an invocation."""

    state: PartitionState
    gap: Span
    in_hand: Sequence[Event]
    invocation_id: str

    @property
    def read_from(self) -> SequenceNumber:
        """Behind the checkpoint, the read begins with the checkpoint's own event: the guard sees if it is another."""
        checkpoint = self.state.checkpoint
        if checkpoint is not None and self.gap.first == checkpoint.sequence_number + 1:
            return checkpoint.sequence_number
        return self.gap.first


def pieces(wound: Wound, healing: Healing, now: Callable[[], datetime]) -> Iterator[EventBatch]:
    """What the hub holds of a gap, with what is in hand before its end, as batches that leave out what is absent.

    Raises GapNotHealed between two pieces when the time is up; the first piece is always given.
    """
    partition, gap = wound.state.partition, wound.gap
    deadline = now() + healing.patience
    found = healing.hub.read_range(partition, wound.read_from, gap.last, deadline)
    with closing(found):
        in_order = _each_once(merge(wound.in_hand, found, key=_number))
        first = True
        while events := tuple(islice(in_order, PIECE)):
            if not first and now() >= deadline:
                raise GapNotHealed(partition, events[0].sequence_number, gap.last)
            yield EventBatch(partition, events, wound.invocation_id, asked=gap)
            first = False


def _each_once(events: Iterable[Event]) -> Iterator[Event]:
    return (next(same) for _, same in groupby(events, key=_number))


def gap_rows(run: Sequence[Event], committed: Span, asked: Span) -> list[SequenceGap]:
    """Return the parts of an asked range: healed or absent where a commit of these events covers it, else open."""
    covered = asked.overlap(committed)
    if covered is None:
        return []
    numbers = [event.sequence_number for event in run if covered.first <= event.sequence_number <= covered.last]
    rows = [SequenceGap(*part.ends, "healed" if is_there else "absent") for part, is_there in covered.runs(numbers)]
    if covered.last < asked.last:
        rows.append(SequenceGap(SequenceNumber(covered.last + 1), asked.last, "open"))
    return rows


class HealingReport(Protocol):
    """Whatever tells how healing came out."""

    @property
    def healed(self) -> int: ...

    @property
    def absent(self) -> int: ...


def gap_facts(partition: Partition, gap: Span, report: HealingReport) -> dict[str, object]:
    """What the log line of a gap says, as fields."""
    return {
        "action": "gap",
        "partition": str(partition),
        "first": gap.first,
        "last": gap.last,
        "healed": report.healed,
        "absent": report.absent,
    }


class _NoHub:
    """In place of a hub for those who have none: whatever would have to be asked is a fault."""

    def partitions(self) -> tuple[Partition, ...]:
        raise self._fault("its partitions")

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
        return HubUnreachable(f"there is no hub reader to ask for {what}")


NOT_HEALING = Healing(_NoHub())
