"""Check that the hub is still the one that the stream was read from, and anchor a partition at its first number.

The check compares two facts with the store. One is the hub's time of creation, which a recreated hub does not share.
The other is the event at the checkpoint: after a failover or a restore, its number may mean a different event.

Ingestion checks before each batch (`Verification`). All other reads of the hub go through `VerifiedHub`.
"""

from bisect import bisect_left
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter

from core.errors import BatchRefused, StreamIncarnationChanged
from core.model.commits import PartitionState
from core.model.events import Event, EventBatch, Partition, SequenceNumber, is_same_instant
from core.model.policies import Anchoring
from core.model.ports import Extent, HubReader, OffsetRefused, Place
from core.settle.partition_store import Partitions


def choose_anchor(
    state: PartitionState, anchoring: Anchoring, hub: HubReader, in_hand: Event | None = None
) -> SequenceNumber:
    """Return the first number of a partition without a commit.

    `in_hand` is the first event that was delivered: retention may have removed it since. While no event has been
    enqueued at or after the time, the anchor is the next number that the hub will give.
    """
    if anchoring == "first":
        if in_hand is not None and in_hand.sequence_number == 0:
            return in_hand.sequence_number  # no number is lower, so the hub need not be asked
        beginning = hub.extent(state.partition).beginning
        return beginning if in_hand is None else min(beginning, in_hand.sequence_number)
    moment = anchoring if isinstance(anchoring, datetime) else state.opened_at
    if moment is None:
        raise ValueError(f"{state.partition}: the store has no time at which its stream was opened")
    extent = hub.extent(state.partition)  # read first: events that arrive later come after it
    found = hub.first_at(state.partition, moment)
    return SequenceNumber(extent.last + 1) if found is None else found.sequence_number


OLDEST = 5.0  # seconds: no batch rests on a reading of the hub that is older
SOONEST = 0.1  # seconds: deleting, creating, filling and reading a hub takes longer
FASTEST = 100_000  # events per second: more than a partition takes in
PAUSE = 60.0  # seconds without a batch, after which the checkpoint's event is compared again

enqueued_at_of = attrgetter("enqueued_at")


class Verification:
    """Checks the hub before a partition is read or written. This class itself assumes that the hub is the stream's.

    Every method may be called from several threads. Raises StreamIncarnationChanged when the hub is a different one,
    HubUnreachable when the hub does not answer.
    """

    def verify(self, state: PartitionState, store: Partitions) -> PartitionState:
        """Check the hub, and return the partition's state, read again if the stream has a newer incarnation."""
        return state

    def verify_now(self, state: PartitionState, store: Partitions) -> None:
        """Check that the answers of the hub before this call came from the stream's hub."""

    def verify_whole(self, state: PartitionState, store: Partitions) -> None:
        """Check creation and checkpoint now, even if they were checked before."""

    def without_former(self, batch: EventBatch, state: PartitionState) -> EventBatch:
        """Return the batch without the events of a former incarnation, which the host may still hold."""
        return batch

    def verify_events(self, run: Sequence[Event], state: PartitionState, *, is_retry: bool) -> None:
        """Raise BatchRefused for events of a hub that stood in for the stream's, and that the host may still hold."""


NOT_VERIFIED = Verification()


@dataclass(frozen=True, slots=True)
class CreationReading:
    """The hub's time of creation, and the second at which the request for it was sent."""

    created_at: datetime
    sent: float


class HubVerification(Verification):
    """The verification of a process, over one hub. One reading of the hub serves all partitions.

    `monotonic` gives seconds. `alone` is a reentrant lock. A reading is trusted only for as long as a new hub would
    need to reach the numbers of the events, at most five seconds: so no event of a new hub passes for one of the old
    hub.
    """

    def __init__(self, hub: HubReader, monotonic: Callable[[], float], alone: AbstractContextManager[object]) -> None:
        self._hub = hub
        self._monotonic = monotonic
        self._alone = alone
        self._reading: CreationReading | None = None
        self._created: dict[int, datetime] = {}  # by stream id; it never changes
        self._met: dict[tuple[int, Partition], float] = {}  # by stream id: the second of the last verification
        self._doubted: set[tuple[int, Partition]] = set()  # the host may still hold events of a different hub

    def verify(self, state: PartitionState, store: Partitions) -> PartitionState:
        now, place = self._monotonic(), (state.stream_id, state.partition)
        since, met_at = now - _age_limit(_following(state)), self._met.pop(place, None)
        if not self._is_known_to_fit(state, since) and self._differs(state, store, since):
            store.forget_partition(state.partition)
            found = store.read_partition(state.partition)
            if found.stream_id == state.stream_id:
                raise self._changed(state)
            return self.verify(found, store)  # the stream has a newer incarnation
        is_stopped = state.stop_for("incarnation") is not None
        if is_stopped:
            self._doubted.add(place)
        if met_at is None or now - met_at >= PAUSE or is_stopped:
            self._compare(state)
        self._met[place] = now
        return state

    def verify_reached(self, state: PartitionState, store: Partitions, number: int) -> None:
        """Check that a hub whose partition has just shown this number is the stream's."""
        since = self._monotonic() - _age_limit(number)
        if not self._is_known_to_fit(state, since) and self._differs(state, store, since):
            raise self._changed(state)

    def verify_now(self, state: PartitionState, store: Partitions) -> None:
        if self._differs(state, store, self._monotonic()):
            raise self._changed(state)

    def verify_whole(self, state: PartitionState, store: Partitions) -> None:
        self.verify_now(state, store)
        self._compare(state)

    def without_former(self, batch: EventBatch, state: PartitionState) -> EventBatch:
        """Drop the events that were enqueued before the hub was created, unless the hub still holds them."""
        created_at, first = self._created.get(state.stream_id), batch.events[0]
        if created_at is None or first.enqueued_at >= created_at:
            return batch
        held = self._hub.find_event(batch.partition, first.sequence_number)
        if held is not None and is_same_instant(held.enqueued_at, first.enqueued_at):
            return batch
        former = bisect_left(batch.events, created_at, key=enqueued_at_of)
        return replace(batch, events=batch.events[former:])

    def verify_events(self, run: Sequence[Event], state: PartitionState, *, is_retry: bool) -> None:
        """Ask the hub for events that were tried before, or that follow a stop: it may have been another hub then.

        After a stop the hub must hold one of the two ends: it may have lost the events of these numbers.
        """
        place, partition = (state.stream_id, state.partition), state.partition
        if not run or not (is_retry or place in self._doubted):
            return
        last, is_known = self._hub.extent(partition).last, place not in self._doubted
        for event in (run[0], run[-1]):
            number = event.sequence_number
            if number > last:
                raise BatchRefused(f"{partition}: event {number} of the batch is not in the hub, which ends at {last}")
            held = self._hub.find_event(partition, number)
            if held is not None and not is_same_instant(held.enqueued_at, event.enqueued_at):
                raise BatchRefused(f"{partition}: event {number} of the batch is not the hub's event of this number")
            is_known = is_known or held is not None
        if not is_known:
            raise BatchRefused(f"{partition}: the hub has lost the events of the batch, which follows a stop")
        self._doubted.discard(place)

    def _differs(self, state: PartitionState, store: Partitions, since: float) -> bool:
        with self._alone:  # threads that wait for the hub's answer share one request
            if self._reading is None or self._reading.sent <= since:
                sent = self._monotonic()
                self._reading = CreationReading(self._hub.created_at(), sent)
            created_at = self._reading.created_at
        stored = self._created.get(state.stream_id) or self._stored(state, store, created_at)
        return stored != created_at

    def _is_known_to_fit(self, state: PartitionState, since: float) -> bool:
        reading = self._reading
        if reading is None or reading.sent < since:
            return False
        return reading.created_at == self._created.get(state.stream_id)

    def _stored(self, state: PartitionState, store: Partitions, created_at: datetime) -> datetime | None:
        """Return the stored time of creation. A stream without one adopts the hub, if its checkpoints fit."""
        with self._alone:
            found = store.read_incarnation(state.partition.stream)
            if found.stream_id == state.stream_id and found.hub_created_at is None:
                for partition in self._hub.partitions():
                    self._compare(store.read_partition(partition))
                store.adopt_hub(found, created_at)
                found = store.read_incarnation(state.partition.stream)
            if found.hub_created_at is not None:
                self._created[found.stream_id] = found.hub_created_at
        return self._created.get(state.stream_id)

    def _compare(self, state: PartitionState) -> None:
        evidence = contradiction(state, self._hub)
        if evidence is not None:
            self._doubted.add((state.stream_id, state.partition))
            raise StreamIncarnationChanged(state.partition, evidence)

    def _changed(self, state: PartitionState) -> StreamIncarnationChanged:
        self._doubted.add((state.stream_id, state.partition))
        reading, stored = self._reading, self._created.get(state.stream_id)
        if reading is None or stored is None:
            return StreamIncarnationChanged(state.partition, "the stream is of a former incarnation of the hub")
        return StreamIncarnationChanged(state.partition, created_differently(reading.created_at, stored))


class VerifiedHub:
    """The HubReader of a stream: it answers only for the hub that the stream was read from.

    Any method may raise StreamIncarnationChanged. So the absence of an event always means that the
    stream's hub has lost it. `store` has no memory, because other processes commit too.
    """

    def __init__(self, hub: HubReader, verification: HubVerification, store: Partitions) -> None:
        self._hub = hub
        self._verification = verification
        self._store = store

    def partitions(self) -> tuple[Partition, ...]:
        found = self._hub.partitions()
        for partition in found[:1]:
            self._verification.verify_now(self._store.read_partition(partition), self._store)
        return found

    def created_at(self) -> datetime:
        self.partitions()
        return self._hub.created_at()

    def extent(self, partition: Partition) -> Extent:
        state = self._store.read_partition(partition)  # read first: the hub only grows
        extent = self._hub.extent(partition)
        self._verification.verify_reached(state, self._store, extent.last)
        if (evidence := too_short(state, extent)) is not None:
            raise StreamIncarnationChanged(partition, evidence)
        return extent

    def first_at(self, partition: Partition, place: Place) -> Event | None:
        try:
            found = self._hub.first_at(partition, place)
        except OffsetRefused:
            self._checked(partition, None)
            raise
        return self._checked(partition, found)

    def find_event(self, partition: Partition, sequence_number: SequenceNumber) -> Event | None:
        found = self._hub.find_event(partition, sequence_number)
        return self._checked(partition, found)

    def read_range(
        self, partition: Partition, first: SequenceNumber, last: SequenceNumber, deadline: datetime
    ) -> Generator[Event, None, None]:
        state, reached = self._store.read_partition(partition), first - 1
        self._verification.verify_whole(state, self._store)
        with closing(self._hub.read_range(partition, first, last, deadline)) as events:
            for event in events:
                reached = event.sequence_number
                self._verification.verify_reached(state, self._store, reached)
                yield event
        if reached < last:
            self._checked(partition, None)

    def _checked(self, partition: Partition, found: Event | None) -> Event | None:
        """Return an answer of the hub after a check. The check is whole where the hub shows no event."""
        state = self._store.read_partition(partition)
        if found is None:
            self._verification.verify_whole(state, self._store)
        else:
            self._verification.verify_reached(state, self._store, found.sequence_number)
        return found


def contradiction(state: PartitionState, hub: HubReader) -> str | None:
    """Return a clause that says how the hub contradicts the state of a partition, or None when it does not.

    The hub may have lost the checkpoint's event to retention: then only the hub's end is compared.
    """
    if state.checkpoint is None and state.anchor is None:
        return None
    extent = hub.extent(state.partition)
    return too_short(state, extent) or differing_event(state, hub, extent)


def too_short(state: PartitionState, extent: Extent) -> str | None:
    """Return a clause that says that a partition of the hub ends too early for its state. None when it does not."""
    checkpoint = state.checkpoint
    if extent.last < _following(state) - 1:
        kind = "anchor" if checkpoint is None else "checkpoint"
        number = state.next_number if checkpoint is None else checkpoint.sequence_number
        return f"the hub ends at {extent.last}, before the {kind} at {number}"
    return None


def differing_event(state: PartitionState, hub: HubReader, extent: Extent) -> str | None:
    """Return a clause that says how the hub's event differs from the checkpoint of its number, or None when it does
    not."""
    checkpoint = state.checkpoint
    if checkpoint is None or extent.beginning > checkpoint.sequence_number:
        return None
    event = hub.find_event(state.partition, checkpoint.sequence_number)
    if event is None or is_same_instant(event.enqueued_at, checkpoint.enqueued_at):
        return None
    times = f"enqueued at {event.enqueued_at.isoformat()}, not at {checkpoint.enqueued_at.isoformat()}"
    return f"the hub's event {event.sequence_number} was {times} as the event of the checkpoint"


def created_differently(created_at: datetime, stored: datetime) -> str:
    """Return a clause that names both times of creation when they differ."""
    return f"the hub was created at {created_at.isoformat()}, but the stream was read from one of {stored.isoformat()}"


def _following(state: PartitionState) -> int:
    return state.next_number if state.checkpoint is not None or state.anchor is not None else 0


def _age_limit(reached: int) -> float:
    """Return how old a reading may be: a new hub cannot have reached this number since then."""
    return min(OLDEST, max(SOONEST, reached / FASTEST))
