"""How long the hub still holds the events of open letters and open gaps, and which it has forgotten.

The beginning of a partition in the hub shows exactly which events the hub no longer holds. The rest is a forecast: the
hub forgets an event when it is as old as the hub's retention, or a little later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from core.errors import HubRefused, HubUnreachable, StreamIncarnationChanged
from core.ledger.store.burn_down import LETTERS, BurnDowns, Kind, OpenCount, OpenGap
from core.model.events import PartitionId, Stream
from core.model.hub import HubReader
from core.model.spans import SequenceNumber

ONLY_IN_HUB: tuple[Kind, ...] = ("unkept", "gap")  # their events are lost when the hub forgets them
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class BurnDownMeans:
    """The means to read the burn-down of a stream. `retention` is None where no setting states it: then there is no
    forecast, only the events that the hub no longer holds."""

    stream: Stream
    store: BurnDowns
    hub: HubReader
    retention: timedelta | None


@dataclass(frozen=True, slots=True)
class BurnDown:
    """The open letters and gaps at one moment. A hub that does not answer, or is another one, is known to have
    forgotten none of their events."""

    at: datetime
    retention: timedelta | None
    counts: tuple[OpenCount, ...]

    @property
    def letters_expiring_hours(self) -> float:
        """The hours until the hub forgets the first event of an open letter."""
        return self._hours(LETTERS)

    @property
    def loss_hours(self) -> float:
        """The hours until the hub forgets the first event that is only there."""
        return self._hours(ONLY_IN_HUB)

    @property
    def events_lost(self) -> int:
        """The open letters without a body, and the open gaps, whose event the hub no longer holds."""
        return sum(one.gone for one in self.counts if one.kind in ONLY_IN_HUB)

    def _hours(self, kinds: Sequence[Kind]) -> float:
        """Return the hours until the hub forgets the first of these events: never less than 0, its whole retention when
        there is none, and -1 where the retention is not known."""
        if self.retention is None:
            return -1.0
        enqueued_at = [one.first_at for one in self.counts if one.kind in kinds and one.first_at is not None]
        left = min(enqueued_at, default=self.at) + self.retention - self.at
        return round(max(timedelta(), left) / HOUR, 3)


@dataclass(frozen=True, slots=True)
class _Held:
    """The first number that the hub still holds of each partition, and the time of the first event of each gap."""

    beginnings: Mapping[PartitionId, SequenceNumber]
    gaps_at: Mapping[PartitionId, datetime]


def read_burn_down(own: BurnDownMeans, now: datetime) -> BurnDown:
    """READ the burn-down of this moment. Raises only the store's faults."""
    gaps = own.store.read_open_gaps()
    ids = tuple(dict.fromkeys((*own.store.read_partition_ids(), *(gap.partition_id for gap in gaps))))
    held = _held(own, ids, gaps)
    counts = [one for id in ids for one in own.store.count_open_letters(id, held.beginnings[id])]
    counts += [_count_gaps(list(each), held) for _, each in groupby(gaps, lambda gap: gap.partition_id)]
    return BurnDown(now, own.retention, tuple(counts))


def _held(own: BurnDownMeans, ids: Sequence[PartitionId], gaps: Sequence[OpenGap]) -> _Held:
    """Read the hub; without an answer, nothing is known to be gone, and a gap is as old as the event before it."""
    after = {gap.partition_id: gap.after_at for gap in reversed(gaps)}
    try:
        beginnings = {id: own.hub.extent(own.stream.partition(id)).beginning for id in ids}
        first = {gap.partition_id: gap for gap in reversed(gaps) if gap.first >= beginnings[gap.partition_id]}
        found = {id: own.hub.first_at(own.stream.partition(id), gap.first) for id, gap in first.items()}
    except (HubRefused, HubUnreachable, StreamIncarnationChanged):
        return _Held(dict.fromkeys(ids, SequenceNumber(0)), after)
    return _Held(beginnings, after | {id: event.enqueued_at for id, event in found.items() if event is not None})


def _count_gaps(gaps: Sequence[OpenGap], held: _Held) -> OpenCount:
    """Count the gaps of a partition; each that the hub holds counts as old as the first of them."""
    id = gaps[0].partition_id
    gone = sum(gap.first < held.beginnings[id] for gap in gaps)
    return OpenCount(id, "gap", gone, held.gaps_at[id] if gone < len(gaps) else None)
