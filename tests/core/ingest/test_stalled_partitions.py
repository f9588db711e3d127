"""stalled_partitions.py: losses at the end of a partition that fell silent are healed, and nothing is disturbed."""

import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from core.errors import HubUnreachable, StreamIncarnationChanged
from core.incarnations.hub_check import HubVerification
from core.ingest.gaps import GapReading
from core.ingest.ingest import Ingestion, ingest_batch
from core.ingest.stalled_partitions import (
    Healed,
    HostCheckpoint,
    HostStorageUnreachable,
    Looked,
    PartitionStanding,
    SilenceCheck,
    Unhealed,
)
from core.model.commits import Checkpoint, PartitionState, PartitionStop
from core.model.events import Event, Partition, SequenceNumber, Span
from core.settle.isolate import Journal
from tests.fakes.builders import NOON, FakeClock, batch, event, events, partition, stamps
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.memory_store import MemoryStore
from tests.fakes.one_pass import assert_equals_one_pass
from tests.fakes.plain_transform import PLAIN

GRACE = timedelta(seconds=120)


class InHand(Journal):
    """A journal of which an attempt has partition 0 in hand."""

    def __init__(self) -> None:
        self.since: list[datetime] = []

    def has_in_hand(self, state: PartitionState, since: datetime) -> bool:
        self.since.append(since)
        return state.partition == partition("0")


class World:
    """Partitions of 20 events each, of which the trigger delivered 0 to 9."""

    def __init__(self, *ids: str) -> None:
        self.store, self.clock, self.ids = MemoryStore(), FakeClock(), ids or ("0", "1")
        self.log = events(0, 19, "reading a")
        self.events = {id: [*self.log] for id in self.ids}
        self.hub = MemoryHub(self.events)
        verified = HubVerification(self.hub, self.clock.monotonic, threading.RLock())
        self.means = Ingestion(self.store, PLAIN, stamps(1, self.clock), GapReading(self.hub), incarnations=verified)
        self.check = SilenceCheck(self.means, GRACE)
        for id in self.ids:
            self.deliver(9, id)

    def deliver(self, last: int, id: str = "0") -> None:
        """Let the trigger deliver all events up to a number."""
        given = [one for one in self.events[id] if one.sequence_number <= last]
        means = self.means
        ingest_batch(batch(given, partition(id)), Ingestion(self.store, PLAIN, means.clock, means.gap_reading))

    def publish(self, first: int, last: int, id: str = "0") -> None:
        made = [event(number, "reading a", at=self.clock.now()) for number in range(first, last + 1)]
        self.events.setdefault(id, []).extend(made)
        self.hub.publish(id, made)

    def look(self, after: float = 0.0) -> Sequence[Looked]:
        self.clock.advance(after)
        return list(self.check.run("timer-1"))

    def ranges(self, id: str = "0") -> list[tuple[int, int, int]]:
        return [(kept.first, kept.last, kept.absent) for kept in self.store.ledger() if kept.partition_id == id]

    def stops(self, id: str = "0") -> tuple[PartitionStop, ...]:
        return self.store.read_partition(partition(id)).stops


@pytest.fixture
def world() -> World:
    return World()


def test_a_partition_that_stands_still_behind_the_hubs_end_is_healed_after_the_grace(world: World) -> None:
    assert world.look() == []
    assert world.look(after=119) == []
    first, second = world.look(after=1)
    assert isinstance(first, Healed)
    assert isinstance(second, Healed)
    assert (first.gap.first, first.gap.last, first.healed, first.absent) == (10, 19, 10, 0)
    assert world.ranges() == world.ranges("1") == [(0, 9, 0), (10, 19, 0)]
    assert_equals_one_pass(world.store, {"0": world.log, "1": world.log})
    assert [(kept.first, kept.last, kept.status) for kept in world.store.gaps()] == [(10, 19, "healed")] * 2
    assert world.look(after=500) == []


def test_a_partition_that_an_attempt_has_in_hand_is_left_to_it(world: World) -> None:
    journal = InHand()
    world.check = SilenceCheck(replace(world.means, journal=journal), GRACE)
    world.look()
    assert journal.since == [], "nothing stands yet"
    (healed,) = world.look(after=120)
    assert isinstance(healed, Healed) and healed.partition == partition("1")
    assert journal.since == [world.clock.now() - GRACE] * 2


def test_a_clock_that_was_ahead_delays_no_healing(world: World) -> None:
    world.look(after=86_400)
    world.look(after=-86_400)
    assert [type(one) for one in world.look(after=120)] == [Healed, Healed]


def test_a_partition_that_moves_is_left_to_the_trigger(world: World) -> None:
    world.deliver(19, "1")
    world.look()
    for number in range(10, 20):
        assert world.look(after=60) == []
        world.deliver(number)
    assert world.ranges() == [(0, 9, 0), *((number, number, 0) for number in range(10, 20))]


def test_a_partition_that_stands_is_healed_while_events_still_come_and_stays_level(world: World) -> None:
    world.deliver(19, "1")
    world.look()
    for number in range(20, 24):
        world.publish(number, number)
        assert [type(one) for one in world.look(after=60)] == [Healed] * (number > 20)
    assert world.ranges() == [(0, 9, 0), (10, 21, 0), (22, 22, 0), (23, 23, 0)]
    world.look(after=600)
    world.publish(24, 24)
    assert len(world.look()) == 1, "nobody else has committed since"


def test_a_partition_is_carried_until_a_different_owner_commits_there_again(world: World) -> None:
    world.deliver(19, "1")
    world.look()
    world.look(after=120)
    world.publish(20, 20)
    world.deliver(20)
    world.publish(21, 21)
    assert world.look(after=60) == []
    assert world.look(after=119) == []
    assert len(world.look(after=1)) == 1


def test_a_different_owner_that_commits_during_the_healing_gets_the_partition_back(world: World) -> None:
    world.deliver(19, "1")
    for first in (20, 520, 1020):
        world.publish(first, first + 499)
    world.look()
    seen: list[int] = []

    def meanwhile() -> bool:
        seen.append(1)
        if len(seen) == 700:
            world.deliver(600)
        return False

    world.clock.advance(120)
    world.hub.fails = meanwhile
    assert [type(one) for one in world.look()] == [Healed]
    world.hub.fails = lambda: False
    assert world.store.read_partition(partition()).next_number == 1520
    world.publish(1520, 1520)
    assert world.look(after=60) == []


def test_no_number_is_absent_while_the_hubs_newest_event_is_younger_than_the_grace(world: World) -> None:
    world.deliver(19, "1")
    world.look()
    world.clock.advance(119)
    world.publish(20, 23)
    world.hub.lose("0", 20, 23)
    (healed,) = world.look(after=1)
    assert isinstance(healed, Healed)
    assert (healed.gap.last, healed.absent, healed.is_level) == (22, 1, False), "22 shows that 20 is not there"
    assert world.look(after=118) == []
    (closed,) = world.look(after=1)
    assert isinstance(closed, Healed)
    assert (closed.gap.last, closed.absent) == (23, 1)


def test_a_fault_in_the_middle_does_not_begin_the_wait_again(world: World) -> None:
    world.deliver(19, "1")
    world.publish(20, 1199)
    world.look()
    world.clock.advance(120)
    answers = iter([False] * 900)
    world.hub.fails = lambda: next(answers, True)
    assert {type(one) for one in world.look()} == {Unhealed}
    reached = world.store.read_partition(partition()).next_number
    assert reached > 10
    world.hub.fails = lambda: False
    assert len(world.look()) == 1
    assert world.store.read_partition(partition()).next_number == 1200


def test_a_partition_that_was_stopped_for_an_hour_is_level_after_one_check(world: World) -> None:
    """The host passes the batches of a partition that is stopped, so only the own reader brings them."""
    world.deliver(19, "1")
    world.look()
    made_at, world.hub.made_at = world.hub.made_at, world.clock.now()
    for minute in range(60):
        world.publish(20 + 60 * minute, 79 + 60 * minute)
        assert {type(one) for one in world.look(after=60)} == {Unhealed}
    assert [stop.attempts for stop in world.stops()] == [60]
    world.hub.made_at = made_at
    (healed,) = world.look(after=60)
    assert isinstance(healed, Healed)
    assert (healed.healed, healed.absent, healed.is_level) == (3_610, 0, True)
    assert world.stops() == ()


class TestManyPartitionsThatStand:
    """Each commit takes 6 seconds; so a turn, of 10 seconds, is two commits."""

    def test_take_turns_and_are_all_level_at_the_end(self) -> None:
        world = slow_world(patience=600)
        world.look()
        healed = world.look(after=120)
        turns = [(one.partition.partition_id, one.gap.last) for one in healed if isinstance(one, Healed)]
        assert turns == [("0", 1008), ("1", 1008), ("0", 2007), ("1", 2007), ("0", 2199), ("1", 2199)]

    def test_end_with_the_time_of_the_run_and_the_next_run_begins_with_the_others(self) -> None:
        world = slow_world(patience=30)
        world.look()
        assert [one.partition.partition_id for one in world.look(after=120)] == ["0", "1", "0"]
        assert [one.partition.partition_id for one in world.look()] == ["1", "0", "1"]
        assert world.store.read_partition(partition("0")).next_number == 2200

    def test_wait_for_a_hub_that_sends_nothing_no_longer_than_the_run_lasts(self) -> None:
        world = slow_world(patience=30)
        asked: list[float] = []
        read = world.hub.read_range

        def reading(*place: Any) -> Generator[Event, None, None]:
            asked.append((place[3] - world.clock.now()).total_seconds())
            return read(*place)

        world.hub.read_range = reading  # type: ignore[assignment, method-assign]
        world.look()
        world.look(after=120)
        assert asked == [30, 18, 10]


def slow_world(patience: float) -> World:
    world = World()
    for id in ("0", "1"):
        world.publish(20, 2199, id)

    def new_id() -> UUID:
        world.clock.advance(6)
        return world.means.clock.new_id()

    clock = replace(world.means.clock, new_id=new_id)
    gap_reading = GapReading(world.hub, patience=timedelta(seconds=patience))
    world.check = SilenceCheck(replace(world.means, clock=clock, gap_reading=gap_reading), GRACE)
    return world


def test_what_retention_cut_at_the_end_is_absent_in_a_commit_of_its_own(world: World) -> None:
    world.deliver(19, "1")
    world.hub.expire_before("0", 20)
    world.look()
    (healed,) = world.look(after=120)
    assert isinstance(healed, Healed)
    assert (healed.healed, healed.absent) == (0, 10)
    assert world.ranges() == [(0, 9, 0), (10, 19, 10)]
    assert_equals_one_pass(world.store, {"0": world.log[:10], "1": world.log}, absent={"0": set(range(10, 20))})
    checkpoint = world.store.read_partition(partition()).checkpoint
    assert checkpoint is not None
    assert checkpoint.offset == world.log[9].offset, "a reader goes on after the last event of the log"
    assert [books.balanced for books in world.store.read_ledgers()] == [True, True]


def test_events_that_the_trigger_still_had_in_hand_are_dropped_and_stop_nothing(world: World) -> None:
    world.hub.expire_before("0", 20)
    world.look()
    world.look(after=120)
    world.deliver(19)
    assert world.ranges() == [(0, 9, 0), (10, 19, 10)]


def test_a_partition_of_which_no_event_ever_came_is_healed_from_its_anchor() -> None:
    world = World()
    world.hub.recreate("2")
    world.look()
    world.hub.publish("2", world.log)
    world.hub.expire_before("2", 4)
    world.look(after=130)
    world.look(after=130)
    assert world.ranges("2") == [(0, 19, 4)]


def test_a_hub_that_ends_before_the_checkpoint_is_a_different_one(world: World) -> None:
    world.look()
    world.hub.recreate("0")
    world.look()
    (fault, healed) = world.look(after=120)
    assert isinstance(fault, Unhealed)
    assert isinstance(fault.fault, StreamIncarnationChanged)
    assert "the hub ends at -1, before the checkpoint at 9" in str(fault.fault)
    assert isinstance(healed, Healed)
    assert world.ranges() == [(0, 9, 0)]
    assert [stop.attempts for stop in world.stops()] == [2]


def test_a_hub_that_cannot_be_asked_at_all_is_a_fault_of_the_look(world: World) -> None:
    world.hub.fails = lambda: True
    with pytest.raises(HubUnreachable):
        world.look()


def test_an_open_gap_that_the_trigger_closed_itself_is_noted_as_healed(world: World) -> None:
    state = world.store.read_partition(partition())
    world.store.note_gap(state, Span(SequenceNumber(10), SequenceNumber(19)), world.clock.now())
    world.deliver(19)
    world.look()
    assert [(kept.first, kept.last, kept.status) for kept in world.store.gaps()] == [(10, 19, "healed")]


class MemoryHost:
    """The HostCheckpoints of a host in memory; `meanwhile` runs between a read and the write after it."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.version = 0
        self.fault: str | None = None
        self.meanwhile: Callable[[], object] = lambda: None

    def deliver_up_to(self, number: int, id: str = "0") -> None:
        """Move the checkpoint as the host itself does."""
        self.numbers[id], self.version = number, self.version + 1

    def read(self, partition: Partition) -> HostCheckpoint:
        if self.fault:
            raise HostStorageUnreachable(self.fault)
        number = self.numbers.get(partition.partition_id)
        return HostCheckpoint() if number is None else HostCheckpoint(number, str(self.version))

    def write(self, partition: Partition, position: Checkpoint, found: HostCheckpoint) -> bool:
        self.meanwhile()
        if self.read(partition).tag != found.tag:
            return False
        assert position.offset == str(position.sequence_number * 64)
        self.deliver_up_to(position.sequence_number, partition.partition_id)
        return True


class TriggerWorld(World):
    """A world with a host, at which the check has looked once."""

    def __init__(self, *ids: str) -> None:
        self.host = MemoryHost()
        super().__init__(*(ids or ("0",)))
        self.start_process()
        assert self.look() == []

    def start_process(self) -> None:
        self.check = SilenceCheck(self.means, GRACE, self.host)

    def deliver(self, last: int, id: str = "0") -> None:
        super().deliver(last, id)
        self.host.deliver_up_to(last, id)

    def said(self, after: float = 0.0) -> list[str]:
        return [one.words for one in self.look(after) if isinstance(one, PartitionStanding)]

    def stand(self, minutes: int) -> None:
        """Let so many minutes pass in which events come and the trigger delivers none."""
        for _ in range(minutes):
            last = self.hub.last["0"]
            self.publish(last + 1, last + 10)
            self.look(after=59.9)  # the timer is not exact


class TestALift:
    def test_moves_the_checkpoint_to_the_one_in_sql_after_the_own_reader_committed(self) -> None:
        world = TriggerWorld()
        assert world.said(after=120) == [
            "the trigger of partition 0 stands at 9 since 00:00 UTC; 10 events went by the app's own reader;"
            " its checkpoint was lifted"
        ]
        assert world.host.numbers == {"0": 19}
        assert world.stops() == ()

    def test_makes_a_checkpoint_where_there_is_none(self) -> None:
        world = TriggerWorld()
        world.host.numbers.clear()
        world.look(after=120)
        assert world.host.numbers == {"0": 19}

    def test_never_moves_a_checkpoint_back(self) -> None:
        world = TriggerWorld()
        world.host.deliver_up_to(1_000)
        (words,) = world.said(after=120)
        assert words.endswith("its checkpoint, 1000, is after the one in SQL, or of a former hub")
        assert world.host.numbers == {"0": 1_000}

    def test_leaves_a_checkpoint_that_moves_at_the_same_moment(self) -> None:
        world = TriggerWorld()
        world.host.meanwhile = lambda: world.host.deliver_up_to(15)
        (words,) = world.said(after=120)
        assert words.endswith("its checkpoint moved at the same moment")
        assert world.host.numbers == {"0": 15}

    def test_by_two_apps_at_once_happens_once(self) -> None:
        world = TriggerWorld()
        rival = SilenceCheck(world.means, GRACE, world.host)
        list(rival.run("timer-2"))
        world.clock.advance(120)
        world.host.meanwhile = lambda: list(rival.run("timer-2"))
        world.look()
        assert world.host.numbers == {"0": 19}
        assert [(one.first, one.last) for one in world.store.ledger()] == [(0, 9), (10, 19)]

    def test_waits_for_the_incarnation_where_the_hub_was_recreated(self) -> None:
        world = TriggerWorld()
        read = world.host.read

        def recreate(partition: Partition) -> HostCheckpoint:
            world.hub.recreate_hub(NOON)
            return read(partition)

        world.host.read = recreate  # type: ignore[method-assign]
        found = world.look(after=120)
        assert [type(one) for one in found] == [Healed, Unhealed]
        assert world.host.numbers == {"0": 9}
        assert [stop.reason for stop in world.stops()] == ["incarnation"]

    def test_is_not_tried_where_no_event_was_committed_by_the_own_reader(self) -> None:
        world = TriggerWorld()
        world.deliver(19)
        world.host.deliver_up_to(3)
        for _ in range(5):
            assert world.look(after=60) == []
        assert world.host.numbers == {"0": 3}

    def test_is_not_tried_where_there_is_no_host(self) -> None:
        world = TriggerWorld()
        world.check.host = None
        assert [type(one) for one in world.look(after=120)] == [Healed]
        world.stand(5)
        assert (world.host.numbers, world.stops()) == ({"0": 9}, ())


class TestTheWords:
    def test_name_the_event_at_which_the_trigger_stands_if_it_is_known(self) -> None:
        world = TriggerWorld()
        asked: list[int] = []

        def suspect(partition: Partition, first: int) -> str:
            asked.append(first)
            return f"event {first} cannot be delivered: its body is an AMQP value, not data"

        world.check.suspect = suspect
        (words,) = world.said(after=120)
        assert words.endswith("; event 10 cannot be delivered: its body is an AMQP value, not data")
        world.stand(3)
        (stop,) = world.stops()
        assert stop.detail.endswith("; event 10 cannot be delivered: its body is an AMQP value, not data")
        assert asked == [10]

    def test_say_when_the_trigger_has_delivered_nothing_and_a_new_process_says_so_too(self) -> None:
        world = TriggerWorld()
        world.hub.recreate("1")
        world.look()
        world.publish(0, 4, "1")
        world.look(after=60)
        (words,) = world.said(after=120)[1:]
        assert words.startswith("the trigger of partition 1 stands before its first event since 00:01 UTC; 5 events")

    def test_are_said_too_when_the_hub_does_not_name_the_event(self) -> None:
        world = TriggerWorld()

        def suspect(partition: Partition, first: int) -> str:
            raise HubUnreachable("the hub does not answer")

        world.check.suspect = suspect
        assert len(world.said(after=120)) == 1


class TestAStorageThatDoesNotAnswer:
    def test_is_told_once_and_the_events_go_on(self) -> None:
        world = TriggerWorld()
        world.host.fault = "AzureWebJobsStorage is not set"
        (words,) = world.said(after=120)
        assert words.endswith("its checkpoint cannot be lifted: AzureWebJobsStorage is not set")
        world.publish(20, 29)
        assert [type(one) for one in world.look(after=60)] == [Healed]

    def test_is_lifted_to_once_it_answers_again(self) -> None:
        world = TriggerWorld()
        world.host.fault = "AzureWebJobsStorage: the account is closed"
        world.look(after=120)
        world.host.fault = None
        world.stand(1)
        assert world.host.numbers == {"0": 29}


class TestATriggerThatStandsAlthoughItWasLifted:
    def test_is_recorded_after_two_minutes_with_the_events_that_went_by(self) -> None:
        world = TriggerWorld()
        world.look(after=120)
        world.stand(1)
        assert world.stops() == ()
        world.stand(1)
        (stop,) = world.stops()
        assert (stop.reason, stop.stopped_at) == ("trigger", NOON)
        assert stop.detail == (
            "the trigger of partition 0 stands at 9 since 00:00 UTC; 30 events went by the app's own reader;"
            " its checkpoint was lifted"
        )
        assert world.host.numbers == {"0": 39}

    def test_is_carried_on_by_a_new_process_without_a_wait(self) -> None:
        world = TriggerWorld()
        world.look(after=120)
        world.stand(3)
        world.start_process()
        world.stand(1)
        (stop,) = world.stops()
        assert stop.detail.startswith(
            "the trigger of partition 0 stands at 9 since 00:00 UTC; 50 events went by the app's own reader"
        )
        assert world.store.read_partition(partition()).next_number == 60

    def test_has_no_record_once_it_commits_again(self) -> None:
        world = TriggerWorld()
        world.look(after=120)
        world.stand(3)
        world.publish(50, 59)
        world.deliver(55)
        assert world.look(after=60) == []
        assert world.stops() == ()
        assert world.look(after=119) == []
        assert [type(one) for one in world.look(after=1)] == [Healed, PartitionStanding]

    @pytest.mark.parametrize("delivered", [55, 59])
    def test_has_no_record_when_it_committed_before_a_new_process_looks(self, delivered: int) -> None:
        world = TriggerWorld()
        world.look(after=120)
        world.stand(3)
        world.start_process()
        world.publish(50, 59)
        world.deliver(delivered)
        assert world.look(after=60) == []
        assert world.stops() == ()

    def test_keeps_its_record_in_a_new_process_while_no_event_comes(self) -> None:
        world = TriggerWorld()
        world.look(after=120)
        world.stand(3)
        world.start_process()
        world.look(after=60)
        assert [stop.reason for stop in world.stops()] == ["trigger"]

    def test_counts_as_moving_while_it_is_ahead_of_sql_and_goes_on(self) -> None:
        world = TriggerWorld()
        for number in (500, 600, 700, 800, 900, 1_000):
            world.host.deliver_up_to(number)
            world.stand(1)
        assert world.store.read_partition(partition()).next_number == 80
        assert world.stops() == ()

    def test_counts_as_moving_while_its_own_checkpoint_moves(self) -> None:
        world = TriggerWorld()
        world.look(after=120)
        for number in (20, 21, 22, 23):
            world.publish(number, number)
            world.host.deliver_up_to(number)
            world.look(after=60)
        assert world.stops() == ()
