import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from core.errors import HubUnreachable, StreamIncarnationChanged
from core.incarnations.hub_check import HubVerification
from core.ingest import stalled_partitions
from core.ingest.gaps import GapReading
from core.ingest.stalled_partitions import Healed, HostCheckpoint, Looked, PartitionStanding, SilenceCheck, Unhealed
from core.model.commits import Checkpoint, PartitionState
from core.model.events import Event, Partition, span
from core.settle.isolate import Journal
from tests.core.ingest.conftest import World
from tests.fakes.builders import NOON, event, events, partition
from tests.fakes.kept import assert_equals_one_pass

GRACE = timedelta(seconds=120)
TEN = "the trigger of partition 0 stands at 9 since 00:00 UTC; 10 events went by the app's own reader; "


class MemoryHost:
    """The HostCheckpoints of a host in memory. `meanwhile` runs between a read and the write after it."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.fault: str | None = None
        self.meanwhile: Callable[[], object] = lambda: None

    def deliver_up_to(self, number: int, id: str = "0") -> None:
        self.numbers[id] = number

    def read(self, partition: Partition) -> HostCheckpoint:
        if self.fault:
            raise stalled_partitions.HostStorageUnreachable(self.fault)
        number = self.numbers.get(partition.partition_id)
        return HostCheckpoint() if number is None else HostCheckpoint(number, str(number))

    def write(self, partition: Partition, position: Checkpoint, found: HostCheckpoint) -> bool:
        self.meanwhile()
        if self.read(partition).tag != found.tag:
            return False
        assert position.offset == str(position.sequence_number * 64)
        self.deliver_up_to(position.sequence_number, partition.partition_id)
        return True


class Silence(World):
    """Partitions of 20 events, of which the trigger delivered 0 to 9, and a check. At a host it has looked."""

    def __init__(self, *ids: str, host: MemoryHost | None = None, patience: float = 120) -> None:
        super().__init__(events(0, 19, "reading a"), ids)
        self.events, self.host = {id: [*self.log] for id in ids}, host
        verified = HubVerification(self.hub, self.clock.monotonic, threading.RLock())
        reading = GapReading(self.hub, patience=timedelta(seconds=patience))
        self.means = replace(self.means, incarnations=verified, gap_reading=reading)
        for id in ids:
            self.trigger(9, id)
        self.start_process()
        if host:
            assert self.look() == []

    def start_process(self, **changed: Any) -> None:
        self.check = SilenceCheck(replace(self.means, **changed), GRACE, self.host)

    def trigger(self, last: int, id: str = "0") -> None:
        given = [one for one in self.events[id] if one.sequence_number <= last]
        self.take(*given, of=id)
        if self.host:
            self.host.deliver_up_to(last, id)

    def publish(self, first: int, last: int, id: str = "0") -> None:
        made = [event(number, "reading a", at=self.clock.now()) for number in range(first, last + 1)]
        self.events.setdefault(id, []).extend(made)
        self.hub.publish(id, made)

    def look(self, after: float = 0.0) -> Sequence[Looked]:
        self.clock.advance(after)
        return list(self.check.run("timer-1"))

    def kinds(self, after: float = 0.0) -> list[type]:
        return [type(one) for one in self.look(after)]

    def said(self, after: float = 0.0) -> list[str]:
        return [one.words for one in self.look(after) if isinstance(one, PartitionStanding)]

    def stand(self, minutes: int) -> None:
        """Let so many minutes pass in which events come and the trigger delivers none."""
        for _ in range(minutes):
            last = self.hub.last["0"]
            self.publish(last + 1, last + 10)
            self.look(after=59.9)  # the timer is not exact


@pytest.fixture
def two() -> Silence:
    return Silence("0", "1")


@pytest.fixture
def one() -> Silence:
    made = Silence("0")
    made.look()
    return made


@pytest.fixture
def host() -> MemoryHost:
    return MemoryHost()


@pytest.fixture
def hosted(host: MemoryHost) -> Silence:
    return Silence("0", host=host)


def test_a_partition_that_stands_still_behind_the_hubs_end_is_healed_after_the_grace(two: Silence) -> None:
    two.look(after=86_400)
    two.clock.advance(-86_400)  # a clock that was ahead delays no healing
    assert two.look() == two.look(after=119) == []
    first, second = two.look(after=1)
    assert isinstance(first, Healed) and isinstance(second, Healed)
    assert (first.gap.first, first.gap.last, first.healed, first.absent) == (10, 19, 10, 0)
    assert two.ranges() == two.ranges("1") == [(0, 9, 0), (10, 19, 0)]
    assert_equals_one_pass(two.store, {"0": two.log, "1": two.log})
    assert two.gaps() == [(10, 19, "healed")] * 2
    assert two.look(after=500) == []


def test_a_partition_that_an_attempt_has_in_hand_is_left_to_it(two: Silence) -> None:
    asked: list[datetime] = []

    class InHand(Journal):
        def has_in_hand(self, state: PartitionState, since: datetime) -> bool:
            asked.append(since)
            return state.partition == partition("0")

    two.start_process(journal=InHand())
    two.look()
    assert asked == [], "nothing stands yet"
    (healed,) = two.look(after=120)
    assert isinstance(healed, Healed) and healed.partition == partition("1")
    assert asked == [two.clock.now() - GRACE] * 2


def test_a_partition_that_moves_is_left_to_the_trigger_which_may_close_an_open_gap_itself(one: Silence) -> None:
    one.store.note_gap(one.store.read_partition(partition()), span(10, 19), one.clock.now())
    for number in range(10, 20):
        assert one.look(after=60) == []
        one.trigger(number)
    assert one.ranges() == [(0, 9, 0), *((number, number, 0) for number in range(10, 20))]
    one.look()
    assert one.gaps() == [(10, 19, "healed")]


def test_a_partition_that_stands_is_healed_while_events_still_come_and_stays_level(one: Silence) -> None:
    for number in range(20, 24):
        one.publish(number, number)
        assert one.kinds(after=60) == [Healed] * (number > 20)
    assert one.ranges() == [(0, 9, 0), (10, 21, 0), (22, 22, 0), (23, 23, 0)]
    one.look(after=600)
    one.publish(24, 24)
    assert one.kinds() == [Healed], "nobody else has committed since"


def test_a_partition_is_carried_until_a_different_owner_commits_there_again(one: Silence) -> None:
    one.look(after=120)
    one.publish(20, 20)
    one.trigger(20)
    one.publish(21, 21)
    assert one.look(after=60) == one.look(after=119) == []
    assert one.kinds(after=1) == [Healed]


def test_a_different_owner_that_commits_during_the_healing_gets_the_partition_back(one: Silence) -> None:
    for first in (20, 520, 1020):
        one.publish(first, first + 499)
    one.look()
    seen: list[int] = []

    def meanwhile() -> bool:
        seen.append(1)
        if len(seen) == 700:
            one.trigger(600)
        return False

    one.clock.advance(120)
    one.hub.fails = meanwhile
    assert one.kinds() == [Healed]
    one.hub.fails = lambda: False
    assert one.next_number == 1520
    one.publish(1520, 1520)
    assert one.look(after=60) == []


def test_no_number_is_absent_while_the_hubs_newest_event_is_younger_than_the_grace(one: Silence) -> None:
    one.clock.advance(119)
    one.publish(20, 23)
    one.hub.lose("0", 20, 23)
    (healed,) = one.look(after=1)
    assert isinstance(healed, Healed)
    assert (healed.gap.last, healed.absent, healed.is_level) == (22, 1, False), "22 shows that 20 is not there"
    assert one.look(after=118) == []
    (closed,) = one.look(after=1)
    assert isinstance(closed, Healed)
    assert (closed.gap.last, closed.absent) == (23, 1)


def test_a_fault_in_the_middle_does_not_begin_the_wait_again(two: Silence) -> None:
    two.trigger(19, "1")
    two.publish(20, 1199)
    two.look()
    two.clock.advance(120)
    answers = iter([False] * 900)
    two.hub.fails = lambda: next(answers, True)
    assert set(two.kinds()) == {Unhealed}
    assert two.next_number > 10
    with pytest.raises(HubUnreachable):
        two.look()  # a hub that cannot be asked at all is a fault of the look
    two.hub.fails = lambda: False
    assert two.kinds() == [Healed]
    assert two.next_number == 1200


def test_a_partition_that_was_stopped_for_an_hour_is_level_after_one_check(one: Silence) -> None:
    """The host passes the batches of a partition that is stopped, so only the own reader brings them."""
    made_at, one.hub.made_at = one.hub.made_at, one.clock.now()
    for minute in range(60):
        one.publish(20 + 60 * minute, 79 + 60 * minute)
        assert one.kinds(after=60) == [Unhealed]
    assert [stop.attempts for stop in one.stops] == [60]
    one.hub.made_at = made_at
    (healed,) = one.look(after=60)
    assert isinstance(healed, Healed)
    assert (healed.healed, healed.absent, healed.is_level, one.stops) == (3_610, 0, True, ())


def slow(patience: float) -> Silence:
    """Each commit takes 6 seconds. So a turn, of 10 seconds, is two commits."""
    world = Silence("0", "1", patience=patience)

    def new_id() -> UUID:
        world.clock.advance(6)
        return world.means.clock.new_id()

    for id in ("0", "1"):
        world.publish(20, 2199, id)
    world.start_process(clock=replace(world.means.clock, new_id=new_id))
    world.look()
    return world


def test_many_partitions_that_stand_take_turns_and_are_all_level_at_the_end() -> None:
    healed = slow(patience=600).look(after=120)
    turns = [(one.partition.partition_id, one.gap.last) for one in healed if isinstance(one, Healed)]
    assert turns == [("0", 1008), ("1", 1008), ("0", 2007), ("1", 2007), ("0", 2199), ("1", 2199)]


def test_the_turns_end_with_the_time_of_the_run_and_the_next_run_begins_with_the_others() -> None:
    world, asked = slow(patience=30), list[float]()
    read = world.hub.read_range

    def reading(*place: Any) -> Generator[Event, None, None]:
        asked.append((place[3] - world.clock.now()).total_seconds())
        return read(*place)

    world.hub.read_range = reading  # type: ignore[assignment, method-assign]
    assert [one.partition.partition_id for one in world.look(after=120)] == ["0", "1", "0"]
    assert asked == [30, 18, 10], "the hub is waited for no longer than the run lasts"
    assert [one.partition.partition_id for one in world.look()] == ["1", "0", "1"]
    assert world.next_number == 2200


def test_what_retention_cut_at_the_end_is_absent_in_a_commit_of_its_own(one: Silence) -> None:
    one.hub.expire_before("0", 20)
    (healed,) = one.look(after=120)
    assert isinstance(healed, Healed)
    assert (healed.healed, healed.absent) == (0, 10)
    assert one.ranges() == [(0, 9, 0), (10, 19, 10)]
    one.assert_whole(19, *range(10, 20))
    checkpoint = one.store.read_partition(partition()).checkpoint
    assert checkpoint is not None
    assert checkpoint.offset == one.log[9].offset, "a reader goes on after the last event of the log"
    one.trigger(19)  # it still had the events in hand
    assert one.ranges() == [(0, 9, 0), (10, 19, 10)]


def test_a_partition_of_which_no_event_ever_came_is_healed_from_its_anchor(two: Silence) -> None:
    two.hub.recreate("2")
    two.look()
    two.hub.publish("2", two.log)
    two.hub.expire_before("2", 4)
    two.look(after=130)
    two.look(after=130)
    assert two.ranges("2") == [(0, 19, 4)]


def test_a_hub_that_ends_before_the_checkpoint_is_a_different_one_and_the_others_are_healed(two: Silence) -> None:
    two.look()
    two.hub.recreate("0")
    two.look()
    (fault, healed) = two.look(after=120)
    assert isinstance(fault, Unhealed) and isinstance(healed, Healed)
    assert isinstance(fault.fault, StreamIncarnationChanged)
    assert "the hub ends at -1, before the checkpoint at 9" in str(fault.fault)
    assert (two.ranges(), [stop.attempts for stop in two.stops]) == ([(0, 9, 0)], [2])


def moves_meanwhile(host: MemoryHost) -> None:
    host.meanwhile = lambda: host.deliver_up_to(15)


@pytest.mark.parametrize(
    ("before", "words", "number"),
    [
        pytest.param(lambda host: None, "its checkpoint was lifted", 19, id="behind"),
        pytest.param(lambda host: host.numbers.clear(), "its checkpoint was lifted", 19, id="missing"),
        pytest.param(
            lambda host: host.deliver_up_to(1_000),
            "its checkpoint, 1000, is after the one in SQL, or of a former hub",
            1_000,
            id="ahead",
        ),
        pytest.param(moves_meanwhile, "its checkpoint moved at the same moment", 15, id="moves"),
    ],
)
def test_a_lift_moves_the_hosts_checkpoint_to_the_one_in_sql_and_never_back(
    hosted: Silence, host: MemoryHost, before: Callable[[MemoryHost], object], words: str, number: int
) -> None:
    before(host)
    (said,) = hosted.said(after=120)
    assert said.endswith(words)
    assert (host.numbers, hosted.stops) == ({"0": number}, ())


def test_a_lift_waits_for_the_incarnation_where_the_hub_was_recreated(hosted: Silence, host: MemoryHost) -> None:
    read = host.read

    def recreate(partition: Partition) -> HostCheckpoint:
        hosted.hub.recreate_hub(NOON)
        return read(partition)

    host.read = recreate  # type: ignore[method-assign]
    assert hosted.kinds(after=120) == [Healed, Unhealed]
    assert (host.numbers, [stop.reason for stop in hosted.stops]) == ({"0": 9}, ["incarnation"])


def test_a_lift_is_not_tried_without_an_own_commit_or_without_a_host(hosted: Silence, host: MemoryHost) -> None:
    hosted.trigger(19)
    host.deliver_up_to(3)
    for _ in range(5):
        assert hosted.look(after=60) == []
    hosted.check.host = None
    hosted.stand(5)
    assert (host.numbers, hosted.stops, hosted.next_number) == ({"0": 3}, (), 70)


def test_the_words_name_the_event_at_which_the_trigger_stands_if_the_hub_does(hosted: Silence) -> None:
    asked: list[int] = []

    def suspect(partition: Partition, first: int) -> str:
        asked.append(first)
        return f"event {first} cannot be delivered: its body is an AMQP value, not data"

    hosted.check.suspect = suspect
    (words,) = hosted.said(after=120)
    assert words.endswith("; event 10 cannot be delivered: its body is an AMQP value, not data")
    hosted.stand(3)
    (stop,) = hosted.stops
    assert stop.detail.endswith("; event 10 cannot be delivered: its body is an AMQP value, not data")
    assert asked == [10]


def test_the_words_say_when_the_trigger_has_delivered_nothing_although_the_hub_names_no_event(hosted: Silence) -> None:
    def suspect(partition: Partition, first: int) -> str:
        raise HubUnreachable("the hub does not answer")

    hosted.check.suspect = suspect
    hosted.hub.recreate("1")
    hosted.look()
    hosted.publish(0, 4, "1")
    hosted.look(after=60)
    (words,) = hosted.said(after=120)[1:]
    assert words.startswith("the trigger of partition 1 stands before its first event since 00:01 UTC; 5 events")


def test_a_storage_that_does_not_answer_is_told_once_and_the_events_go_on(hosted: Silence, host: MemoryHost) -> None:
    host.fault = "AzureWebJobsStorage is not set"
    (words,) = hosted.said(after=120)
    assert words.endswith("its checkpoint cannot be lifted: AzureWebJobsStorage is not set")
    hosted.publish(20, 29)
    assert hosted.kinds(after=60) == [Healed]
    host.fault = None
    hosted.stand(1)
    assert host.numbers == {"0": 39}, "it answers again"


def test_a_trigger_that_stands_although_it_was_lifted_is_recorded(hosted: Silence, host: MemoryHost) -> None:
    assert hosted.said(after=120) == [TEN + "its checkpoint was lifted"]
    hosted.stand(1)
    assert [*hosted.stops] == []
    hosted.stand(1)
    (stop,) = hosted.stops
    assert (stop.reason, stop.stopped_at) == ("trigger", NOON)
    assert stop.detail == TEN.replace("10 events", "30 events") + "its checkpoint was lifted"
    assert host.numbers == {"0": 39}
    hosted.publish(40, 49)
    hosted.trigger(45)
    assert hosted.look(after=60) == []
    assert (hosted.stops, hosted.look(after=119)) == ((), [])
    assert hosted.kinds(after=1) == [Healed, PartitionStanding]


def test_a_new_process_carries_the_record_on_without_a_wait(hosted: Silence) -> None:
    hosted.look(after=120)
    hosted.stand(3)
    hosted.start_process()
    hosted.look(after=60)
    assert [stop.reason for stop in hosted.stops] == ["trigger"], "while no event comes"
    hosted.start_process()
    hosted.stand(1)
    (stop,) = hosted.stops
    assert stop.detail.startswith(TEN.replace("10 events", "50 events"))
    assert hosted.next_number == 60
    hosted.start_process()
    hosted.publish(60, 69)
    hosted.trigger(65)
    assert hosted.look(after=60) == []
    assert hosted.stops == (), "the trigger committed before the new process looked"


def test_a_trigger_counts_as_moving_while_it_is_ahead_of_sql_or_its_own_checkpoint_moves(
    hosted: Silence, host: MemoryHost
) -> None:
    for number in (500, 600, 700, 800, 900, 1_000):
        host.deliver_up_to(number)
        hosted.stand(1)
    assert (hosted.next_number, hosted.stops) == (80, ())
    moving = Silence("0", host=MemoryHost())
    moving.look(after=120)
    for number in (20, 21, 22, 23):
        moving.publish(number, number)
        assert moving.host is not None
        moving.host.deliver_up_to(number)
        moving.look(after=60)
    assert moving.stops == ()
