"""The burn-down: how long the hub still holds the events of open letters and open gaps, and which are only there.

The beginning of a partition in the hub shows exactly which events the hub no longer holds. The rest is a forecast: the
hub forgets an event when it is as old as the hub's retention, or a little later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

from core.errors import HubRefused, HubUnreachable, StreamIncarnationChanged
from core.ledger.retention.open_counts import Kind, OpenCount, OpenGap
from core.ledger.store.burn_down import BurnDowns
from core.model.events import PartitionId, Stream
from core.model.hub import HubReader
from core.model.spans import SequenceNumber

KINDS: tuple[Kind, ...] = ("kept", "unkept", "gap")
ONLY_IN_HUB: tuple[Kind, ...] = ("unkept", "gap")  # their events are lost when the hub forgets them
WITHIN = (timedelta(hours=1), timedelta(hours=6), timedelta(hours=24))
HOUR = timedelta(hours=1)
NEVER = datetime(1, 1, 1, tzinfo=UTC)  # no event was enqueued before


@dataclass(frozen=True, slots=True)
class BurnDownMeans:
    """The means to read the burn-down of a stream. `retention` is None where no setting states it: then there is no
    forecast, only the events that the hub no longer holds."""

    stream: Stream
    store: BurnDowns
    hub: HubReader
    retention: timedelta | None


@dataclass(frozen=True, slots=True)
class Share:
    """A part of the burn-down: its open letters or gaps, those whose events are gone, the time at which the hub forgets
    the first of the others (None: there is none, or no forecast), and the number forgotten within each of WITHIN."""

    open: int
    gone: int
    first_lost_at: datetime | None
    within: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BurnDown:
    """The open letters and gaps at one moment. With `hub_fault` the hub did not answer, or is another one. Then none is
    known to be gone."""

    at: datetime
    retention: timedelta | None
    partition_ids: tuple[PartitionId, ...]
    counts: tuple[OpenCount, ...]
    hub_fault: str | None = None

    def share(self, kinds: Sequence[Kind] = KINDS, partition_id: PartitionId | None = None) -> Share:
        """Return the part of these kinds, of one partition or of all."""
        found = [one for one in self.counts if one.kind in kinds and partition_id in (None, one.partition_id)]
        first_at = min((one.first_at for one in found if one.first_at is not None), default=None)
        return Share(
            open=sum(one.open for one in found),
            gone=sum(one.gone for one in found),
            first_lost_at=self._lost_at(first_at),
            within=tuple(sum(one.by_cut[place] for one in found) for place in range(len(WITHIN))),
        )

    def hours_left(self, share: Share) -> float | None:
        """Return the hours until the hub forgets the first event of a share; None when it has none, or no forecast."""
        return None if share.first_lost_at is None else round((share.first_lost_at - self.at) / HOUR, 3)

    def _lost_at(self, enqueued_at: datetime | None) -> datetime | None:
        """Forecast the loss of an event that the hub still holds: it is never in the past."""
        if enqueued_at is None or self.retention is None:
            return None
        return max(self.at, enqueued_at + self.retention)


@dataclass(frozen=True, slots=True)
class _Held:
    """The first number that the hub still holds of each partition, and the time of the first event of each gap."""

    beginnings: Mapping[PartitionId, SequenceNumber]
    gaps_at: Mapping[PartitionId, datetime]
    fault: str | None = None


def read_burn_down(own: BurnDownMeans, now: datetime) -> BurnDown:
    """READ the burn-down of this moment. A hub that does not answer is part of it; raises only the store's faults."""
    gaps = own.store.read_open_gaps()
    ids = tuple(dict.fromkeys((*own.store.read_partition_ids(), *(gap.partition_id for gap in gaps))))
    held = _held(own, ids, gaps)
    cuts = [NEVER if own.retention is None else now + hours - own.retention for hours in WITHIN]
    counts = [one for id in ids for one in own.store.count_open_letters(id, held.beginnings[id], cuts)]
    counts += [_count_gaps(list(each), held, cuts) for _, each in groupby(gaps, lambda gap: gap.partition_id)]
    return BurnDown(now, own.retention, ids, tuple(counts), held.fault)


def _held(own: BurnDownMeans, ids: Sequence[PartitionId], gaps: Sequence[OpenGap]) -> _Held:
    """Read the hub; without an answer, nothing is known to be gone, and a gap is as old as the event before it."""
    after = {gap.partition_id: gap.after_at for gap in reversed(gaps)}
    try:
        beginnings = {id: own.hub.extent(own.stream.partition(id)).beginning for id in ids}
        first = {gap.partition_id: gap for gap in reversed(gaps) if gap.first >= beginnings[gap.partition_id]}
        found = {id: own.hub.first_at(own.stream.partition(id), gap.first) for id, gap in first.items()}
    except (HubRefused, HubUnreachable, StreamIncarnationChanged) as fault:
        return _Held(dict.fromkeys(ids, SequenceNumber(0)), after, str(fault))
    return _Held(beginnings, after | {id: event.enqueued_at for id, event in found.items() if event is not None})


def _count_gaps(gaps: Sequence[OpenGap], held: _Held, cuts: Sequence[datetime]) -> OpenCount:
    """Count the gaps of a partition; each that the hub holds counts as old as the first of them."""
    id = gaps[0].partition_id
    gone = sum(gap.first < held.beginnings[id] for gap in gaps)
    there, first_at = len(gaps) - gone, held.gaps_at[id]
    return OpenCount(
        id, "gap", len(gaps), gone, first_at if there else None, tuple(there * (first_at <= cut) for cut in cuts)
    )
