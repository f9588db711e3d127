import threading
from collections.abc import Callable, Collection
from contextlib import closing, nullcontext
from copy import deepcopy
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest

from core.errors import BatchRefused, HubUnreachable, StopReason, StreamIncarnationChanged
from core.incarnations.hub_check import OLDEST, PAUSE, SOONEST, HubVerification, VerifiedHub, choose_anchor
from core.incarnations.next_incarnation import Incarnations
from core.ingest.gaps import GapReading
from core.ingest.ingest import Ingestion, IngestReport, ingest_batch
from core.ingest.stalled_partitions import SilenceCheck, Unhealed
from core.model.commits import PartitionState, PartitionStop
from core.model.events import Event, Partition, SequenceNumber
from core.model.policies import Anchoring
from core.model.ports import Extent, OffsetRefused, Place
from core.settle.partition_store import Partitions
from examples.home_security.transform import SensorReading
from tests.fakes.builders import EPOCH, NOON, STREAM, FakeClock, batch, commit, event, events, partition, stamps
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import MemoryStore, Store, opening

OLD, NEW = EPOCH - timedelta(days=1), EPOCH + timedelta(hours=1)
REFUSED = "recreated, restored or failed over"


def log(first: int, last: int, body: str = "reading old", since: datetime = EPOCH) -> list[Event]:
    return [event(number, body, at=since + timedelta(seconds=number)) for number in range(first, last + 1)]


def renewed(first: int, last: int) -> list[Event]:
    return log(first, last, "reading new", NEW)


class World:
    """A hub of two partitions, a store, and a process that remembers what it has read."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.hub = MemoryHub({"0": [], "1": []})
        self.hub.made_at = OLD
        self.base = MemoryStore()
        self.start_process()

    def start_process(self) -> None:
        self.store: Store = self.base.remembering(timedelta(seconds=60), self.clock.monotonic)
        self.means = self._means(self.store)
        self.silence = SilenceCheck(self._means(self.base), timedelta(seconds=60))

    def _means(self, store: Store) -> Ingestion:
        verified = HubVerification(self.hub, self.clock.monotonic, threading.RLock())
        return Ingestion(store, PLAIN, stamps(1, self.clock), GapReading(self.hub), incarnations=verified)

    def deliver(self, events: list[Event], id: str = "0") -> IngestReport:
        self.hub.publish(id, [one for one in events if one.sequence_number not in self.hub.held[id]])
        return ingest_batch(batch(events, partition(id)), self.means)

    def refuse(self, events: list[Event], id: str = "0") -> str:
        before = (self.base.rows(SensorReading), self.base.ledger())
        with pytest.raises(StreamIncarnationChanged, match=REFUSED) as stop:
            self.deliver(events, id)
        assert (self.base.rows(SensorReading), self.base.ledger()) == before
        return str(stop.value)

    def recreate(self, *events: Event) -> None:
        self.hub.recreate_hub(NEW)
        self.hub.publish("0", events)

    def open_next(self, first: int = 0) -> None:
        made = replace(opening(self.base, first), hub_created_at=self.hub.made_at)
        Incarnations(self.base.database, Partitions(self.base.database)).open_incarnation(made)

    @property
    def stops(self) -> tuple[PartitionStop, ...]:
        return self.base.read_partition(partition()).stops

    def ranges(self) -> list[tuple[int, int]]:
        return [(kept.first, kept.last) for kept in self.base.ledger()]

    def asked(self, call: str) -> int:
        """Count the requests of a kind since the last time, and forget them."""
        count = self.hub.asked.count(call)
        self.hub.asked.clear()
        return count

    def bodies(self) -> dict[tuple[int, str], set[str]]:
        found: dict[tuple[int, str], set[str]] = {}
        for row in self.base.rows(SensorReading):
            home = row.row.home_id  # type: ignore[attr-defined]
            found.setdefault((row.stream_id, row.partition_id), set()).add(home)
        return found


@pytest.fixture
def world() -> World:
    return World()


def at(second: int) -> Anchoring:
    return EPOCH + timedelta(seconds=second)


def hub(last: int = 20, first: int = 0) -> MemoryHub:
    made = MemoryHub({"0": events(0, last, "quiet")})
    made.expire_before("0", first)
    return made


def state(opened: int = 12) -> PartitionState:
    return PartitionState(partition(), 1, None, None, EPOCH + timedelta(seconds=opened))


@pytest.mark.parametrize(
    ("anchoring", "given", "in_hand", "anchor"),
    [
        ("first", hub(first=3), None, 3),
        ("first", hub(last=-1), None, 0),
        ("first", hub(first=21), None, 21),
        ("first", hub(first=9), event(6), 6),  # retention cut the delivered event meanwhile
        ("latest", hub(), None, 12),
        ("latest", hub(last=8), None, 9),
        ("latest", hub(first=15), None, 15),
        (at(5), hub(), None, 5),
        (at(0), hub(first=7), None, 7),
        (at(99), hub(), None, 21),
        (at(99), hub(last=-1), None, 0),
    ],
)
def test_a_partition_begins_at_the_first_event_that_counts(
    anchoring: Anchoring, given: MemoryHub, in_hand: Event | None, anchor: int
) -> None:
    assert choose_anchor(state(), anchoring, given, in_hand) == anchor
    assert choose_anchor(state(), "first", given, event(0)) == 0


def test_an_event_that_comes_in_between_two_questions_is_not_left_out() -> None:
    class GrowingHub(MemoryHub):
        def extent(self, partition: Partition) -> Extent:
            found = super().extent(partition)
            self.publish("0", [event(self.last["0"] + 1)])
            return found

        def first_at(self, partition: Partition, place: Place) -> Event | None:
            found = super().first_at(partition, place)
            self.publish("0", [event(self.last["0"] + 1)])
            return found

    assert choose_anchor(state(opened=99), "latest", GrowingHub({"0": events(0, 8)})) == 9


def test_events_before_the_anchor_are_dropped_and_another_setting_later_moves_none() -> None:
    store = MemoryStore()
    away = MemoryHub({"0": events(0, 9)}, fails=lambda: True)
    with pytest.raises(HubUnreachable):
        ingest_batch(batch(events(0, 4)), Ingestion(store, PLAIN, stamps(), GapReading(away, "latest")))
    assert store.read_partition(partition()).anchor is None
    for first, anchoring, dropped in ((0, at(7), 5), (5, "first", 2)):
        means = Ingestion(store, PLAIN, stamps(first), GapReading(hub(last=40), anchoring))
        assert ingest_batch(batch(events(first, first + 4, "quiet")), means).redelivered == dropped
    assert [(kept.first, kept.last) for kept in store.ledger()] == [(7, 9)]
    assert [books.balanced for books in store.read_ledgers()] == [True]


@pytest.fixture
def ten(world: World) -> World:
    world.deliver(log(0, 9))
    return world


def test_a_recreated_hub_whose_numbers_fit_stops_every_partition_with_one_reading(ten: World) -> None:
    ten.deliver(log(0, 9), "1")
    ten.recreate(*renewed(0, 9))
    ten.hub.publish("1", renewed(0, 9))
    ten.clock.advance(SOONEST * 2)
    ten.hub.asked.clear()
    said, _ = ten.refuse(renewed(10, 19)), ten.refuse(renewed(10, 19), "1")
    assert ten.asked("created_at") == 1
    assert f"the hub was created at {NEW.isoformat()}" in said
    assert OLD.isoformat() in said
    (stop,) = ten.stops
    assert (stop.reason, stop.detail) == ("incarnation", said)
    ten.start_process()
    ten.refuse(renewed(20, 29))


def test_a_recreated_hub_is_seen_in_a_partition_without_a_commit_and_by_the_silence_check(ten: World) -> None:
    ten.recreate()
    ten.clock.advance(OLDEST + 1)
    ten.refuse(renewed(0, 4), "1")
    assert ten.base.read_partition(partition("1")).anchor is None
    ten.recreate(*renewed(0, 29))
    found = list(ten.silence.run("timer"))
    assert [type(one) for one in found] == [Unhealed, Unhealed]
    assert {str(one.partition.partition_id) for one in found} == {"0", "1"}
    assert [stop.reason for stop in ten.base.read_partition(partition("1")).stops] == ["incarnation"]


@pytest.mark.parametrize("is_silent", [False, True])
def test_a_hub_that_is_recreated_while_a_gap_is_read_leaves_no_number_absent(ten: World, is_silent: bool) -> None:
    ten.hub.publish("0", log(10, 39))
    list(ten.silence.run("timer"))
    if is_silent:
        ten.hub.lose("0", *range(10, 40))
        ten.clock.advance(120)

    def recreated() -> bool:
        if ten.hub.asked[-1:] == ["read_range"]:
            ten.recreate()
        return False

    ten.hub.fails = recreated
    if is_silent:
        found, *_ = ten.silence.run("timer")
        assert isinstance(found, Unhealed) and isinstance(found.fault, StreamIncarnationChanged)
    else:
        ten.refuse(log(30, 39))
    assert ten.base.read_ledgers()[0].absent == 0


@pytest.fixture
def back(ten: World) -> World:
    """The world after a batch of a different hub was refused and the stream's hub came back.

    The host tries batches of the other hub again, when the stream's hub has long answered for it.
    """
    ten.recreate(*renewed(0, 9))
    ten.clock.advance(OLDEST + 1)
    ten.refuse(renewed(10, 19))
    ten.hub.recreate_hub(OLD)
    ten.hub.publish("0", log(0, 9))
    ten.clock.advance(OLDEST + 1)
    return ten


def pass_over(world: World, words: str, retries: int = 0) -> None:
    with pytest.raises(BatchRefused, match=words):
        ingest_batch(replace(batch(renewed(10, 19)), retries=retries), world.means)


@pytest.mark.parametrize("retries", [0, 3])
def test_never_gets_numbers_that_it_has_not_given(back: World, retries: int) -> None:
    list(back.silence.run("timer"))
    assert back.stops == ()
    for _ in range(2):
        pass_over(back, "event 10 of the batch is not in the hub", retries)
    back.start_process()
    pass_over(back, "event 10", 1)
    assert back.base.read_ledgers()[0].accounted == 10


def test_keeps_its_own_event_of_the_same_number(back: World) -> None:
    own = log(10, 29)
    back.hub.publish("0", own)
    pass_over(back, "event 10 of the batch is not the hub's")
    back.deliver(own)
    assert back.bodies() == {(1, "0"): {"old"}}
    assert back.base.read_ledgers()[0].accounted == 30


def test_never_gets_numbers_whose_events_it_has_lost_but_those_that_it_forgets_meanwhile(back: World) -> None:
    back.hub.publish("0", log(10, 39))
    back.hub.expire_before("0", 20)
    pass_over(back, "the hub has lost the events of the batch", 1)
    back.hub.expire_before("0", 25)
    ingest_batch(batch(log(20, 29)), back.means)
    assert back.bodies() == {(1, "0"): {"old"}}
    assert (back.base.read_ledgers()[0].accounted, back.base.read_ledgers()[0].absent) == (30, 10)


@pytest.mark.parametrize("is_new_process", [True, False])
def test_a_failover_that_kept_the_time_of_creation_is_seen_by_the_last_event(ten: World, is_new_process: bool) -> None:
    assert list(ten.silence.run("timer")) == []
    ten.hub.recreate("0")
    ten.hub.publish("0", renewed(0, 9))
    if is_new_process:
        ten.start_process()
    else:
        ten.clock.advance(PAUSE)
    assert "the hub's event 9 was enqueued at" in ten.refuse(renewed(10, 19))
    ten.hub.publish("0", renewed(10, 19))
    (found,) = ten.silence.run("timer")
    assert isinstance(found, Unhealed)
    assert "the hub's event 9 was enqueued" in str(found.fault)
    ten.hub.recreate("0")
    ten.hub.publish("0", log(0, 7))
    ten.start_process()
    with pytest.raises(StreamIncarnationChanged, match="the hub ends at 7, before the checkpoint at 9"):
        ingest_batch(batch(log(5, 7)), ten.means)


def test_an_older_store_adopts_the_hub_unless_one_of_its_checkpoints_contradicts(world: World) -> None:
    world.hub.made_at = late = EPOCH + timedelta(seconds=5)  # after events that it holds: they are kept
    assert world.deliver(log(0, 9)).healed == 0
    assert (world.ranges(), len(world.base.rows(SensorReading))) == ([(0, 9)], 10)
    assert world.base.read_incarnation(STREAM).hub_created_at == late
    other = World()
    other.base.commit_batch(commit(other.base.read_partition(partition("1")), 0, 9))
    other.hub.publish("1", renewed(0, 20))
    other.refuse(log(0, 4))
    assert other.base.read_incarnation(STREAM).hub_created_at is None


@pytest.mark.parametrize(("reached", "age"), [(9, SOONEST), (99_999, 1.0), (10_000_000, OLDEST)])
def test_a_reading_is_no_older_than_a_new_hub_needs_for_the_numbers(world: World, reached: int, age: float) -> None:
    world.hub.publish("0", log(reached, reached))
    world.deliver(log(reached, reached))
    world.hub.asked.clear()
    for number, part, asked in ((reached + 1, 0.99, 0), (reached + 2, 0.02, 1)):
        world.clock.advance(age * part)
        world.deliver(log(number, number))
        assert world.asked("created_at") == asked


def test_holds_the_partition_at_first_contact(world: World) -> None:
    world.hub.publish("0", log(0, 9))
    for seconds, first in ((0, 0), (OLDEST + 1, 5)):  # and when the reading is old
        world.clock.advance(seconds)
        before = world.ranges()
        world.hub.fails = lambda: True
        with pytest.raises(HubUnreachable):
            world.deliver(log(first, first + 4))
        assert world.ranges() == before
        world.hub.fails = lambda: False
        world.deliver(log(first, first + 4))
    assert world.ranges() == [(0, 4), (5, 9)]


@pytest.mark.parametrize("is_silent", [True, False])
def test_a_stop_ends_when_the_hub_is_the_streams_again(ten: World, is_silent: bool) -> None:
    ten.hub.made_at = NEW
    ten.clock.advance(1)
    ten.refuse(log(10, 14))
    ten.hub.made_at = OLD
    if is_silent:
        list(ten.silence.run("timer"))
        assert ten.stops == ()
        return
    ten.clock.advance(1)
    cleared, other = ten.store.clear_stops, ten.means

    def clear(state: PartitionState, reasons: Collection[StopReason]) -> None:
        cleared(state, reasons)
        ingest_batch(batch(log(10, 14)), replace(other, store=ten.base))

    ten.store.clear_stops = clear  # type: ignore[method-assign]
    ten.deliver(log(10, 29))
    assert (ten.stops, ten.ranges()) == ((), [(0, 9), (10, 14), (15, 29)]), "the decision is as it was read"


def opened(world: World, *held: Event) -> None:
    world.recreate(*held)
    world.clock.advance(1)
    world.refuse(renewed(len(held), len(held) + 4))
    world.open_next()


def test_the_next_incarnation_is_read_from_its_anchor_and_nothing_is_mixed(ten: World) -> None:
    remembering = ten.means  # a process that remembers the closed stream
    ten.start_process()
    opened(ten, *renewed(0, 14))
    ten.hub.publish("0", renewed(15, 19))
    ingest_batch(batch(renewed(15, 19)), remembering)
    assert ten.stops == ()
    old, new = sorted({row.stream_id for row in ten.base.rows(SensorReading)})
    assert ten.bodies() == {(old, "0"): {"old"}, (new, "0"): {"new"}}
    rows = [row.sequence_number for row in ten.base.rows(SensorReading) if row.stream_id == new]
    assert rows == list(range(20))
    assert ten.base.read_books()[0].balanced


def test_the_next_incarnation_drops_the_events_of_the_former_hub_that_the_host_still_holds(ten: World) -> None:
    opened(ten, *renewed(0, 4))
    assert ingest_batch(batch(log(10, 14)), ten.means).redelivered == 5
    assert ten.base.read_books() == ()
    ten.hub.publish("0", renewed(5, 9))
    ingest_batch(batch([*log(0, 2), *renewed(3, 9)]), ten.means)
    assert ten.bodies().popitem()[1] == {"new"}
    assert [(one.accounted, one.absent, one.balanced) for one in ten.base.read_books()] == [(10, 0, True)]


class Reading(World):
    def __init__(self) -> None:
        super().__init__()
        self.deliver(log(0, 9))
        self.deliver(log(0, 2), "1")
        verification = HubVerification(self.hub, self.clock.monotonic, threading.RLock())
        self.read = VerifiedHub(self.hub, verification, self.base)
        self.read.extent(partition())
        self.pass_the_age()

    def range(self, first: int = 0, last: int = 9) -> list[int]:
        given = self.read.read_range(partition(), SequenceNumber(first), SequenceNumber(last), NOON)
        return [event.sequence_number for event in given]

    def pass_the_age(self) -> None:
        self.clock.advance(SOONEST * 2)

    def empty(self) -> None:
        for id in "01":
            self.hub.recreate(id)


@pytest.fixture
def reading() -> Reading:
    return Reading()


FIVE = SequenceNumber(5)
METHODS: dict[str, Callable[[Reading], Any]] = {
    "partitions": lambda to: to.read.partitions(),
    "created_at": lambda to: to.read.created_at(),
    "extent": lambda to: to.read.extent(partition()),
    "first_at": lambda to: to.read.first_at(partition(), FIVE),
    "first_at of a time": lambda to: to.read.first_at(partition(), EPOCH + timedelta(seconds=5)),
    "first_at of an offset": lambda to: to.read.first_at(partition(), "320"),
    "find_event": lambda to: to.read.find_event(partition(), FIVE),
    "read_range": lambda to: to.range(),
    "read_range of one": lambda to: to.range(5, 5),
}
CHANGES: dict[str, Callable[[Reading], object]] = {
    "recreated": lambda to: to.recreate(),
    "recreated and filled": lambda to: to.recreate(*renewed(0, 20)),
    "emptied": Reading.empty,
}
STILL_RIGHT = [("partitions", "emptied"), ("created_at", "emptied")]


@pytest.mark.parametrize("ask", METHODS.values(), ids=METHODS)
def test_each_method_answers_as_the_hub_does_or_does_not(reading: Reading, ask: Callable[[Reading], Any]) -> None:
    found, verified = ask(reading), reading.read
    reading.read = reading.hub  # type: ignore[assignment]
    assert found == ask(reading)
    with pytest.raises(OffsetRefused):
        verified.first_at(partition(), "99999")
    reading.read, reading.hub.fails = verified, lambda: True
    with pytest.raises(HubUnreachable):
        ask(reading)


@pytest.mark.parametrize(("method", "change"), [*product(METHODS, CHANGES)])
def test_each_method_refuses_a_different_hub(reading: Reading, method: str, change: str) -> None:
    right = deepcopy(vars(reading.hub))
    CHANGES[change](reading)
    with nullcontext() if (method, change) in STILL_RIGHT else pytest.raises(StreamIncarnationChanged):
        METHODS[method](reading)
    vars(reading.hub).update(right)
    reading.pass_the_age()
    METHODS[method](reading)


@pytest.mark.parametrize("method", ["find_event", "read_range", "read_range of one"])
def test_what_a_hub_that_failed_over_does_not_hold_is_not_gone(reading: Reading, method: str) -> None:
    for id, last in (("0", 6), ("1", 0)):  # a copy that lost the last events and took others since
        reading.hub.recreate(id)
        reading.hub.publish(id, [*log(0, last), *renewed(last + 1, 12)])
        reading.hub.expire_before(id, last + 1)
    with pytest.raises(StreamIncarnationChanged, match="as the event of the checkpoint"):
        METHODS[method](reading)


def test_events_that_retention_or_compaction_took_are_gone(reading: Reading) -> None:
    reading.hub.expire_before("0", 3)
    reading.hub.lose("0", 5, 9)
    assert reading.read.find_event(partition(), FIVE) is None
    assert reading.range() == [3, 4, 6, 7, 8]
    assert reading.read.extent(partition()).beginning == 3
    reading.hub.expire_before("0", 10)
    assert reading.range() == []


@pytest.mark.parametrize("filled", [[], renewed(0, 20)], ids=["empty", "filled"])
def test_a_hub_that_is_recreated_amid_a_range_ends_it(reading: Reading, filled: list[Event]) -> None:
    numbers = []
    given = reading.read.read_range(partition(), SequenceNumber(0), SequenceNumber(9), NOON)
    with closing(given) as events, pytest.raises(StreamIncarnationChanged):
        for event in events:
            numbers.append(event.sequence_number)
            if event.sequence_number == 4:
                reading.recreate(*filled)
                reading.pass_the_age()
    assert numbers == [0, 1, 2, 3, 4]
    if filled:
        reading.open_next()
        assert reading.range(0, 4) == [0, 1, 2, 3, 4], "the hub of the next incarnation is read as soon as it is open"
        assert reading.base.read_incarnation(STREAM).hub_created_at == NEW


def test_a_range_asks_for_the_creation_as_often_as_a_new_hub_needs_to_reach_its_numbers(reading: Reading) -> None:
    reading.hub.asked.clear()
    reading.range()
    assert reading.asked("created_at") == 1
    many = 10 * int(OLDEST * 100_000)
    reading.deliver(log(10, 10))
    reading.hub.publish("0", log(many, many + 2))
    reading.hub.asked.clear()
    reading.clock.advance(OLDEST / 2)
    reading.range(many, many + 2)
    assert reading.asked("created_at") == 1
