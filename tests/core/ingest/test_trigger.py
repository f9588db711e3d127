"""core/ingest/stalled_partitions.py: the trigger is lifted forward only, and said to stand when that does not help."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from core.errors import HubUnreachable
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
from core.model.commits import Checkpoint, PartitionStop
from core.model.events import Partition
from tests.fakes.builders import NOON, FakeClock, batch, event, events, partition, stamps
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.memory_store import MemoryStore
from tests.fakes.plain_transform import PLAIN

GRACE = timedelta(seconds=120)


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


class World:
    """Partitions of which the trigger delivered 0 to 9, and whose hub goes on to 19."""

    def __init__(self, *ids: str) -> None:
        self.store, self.clock, self.host, self.ids = MemoryStore(), FakeClock(), MemoryHost(), ids or ("0",)
        self.hub = MemoryHub({id: events(0, 9, "reading a") for id in self.ids})
        verified = HubVerification(self.hub, self.clock.monotonic, threading.RLock())
        self.means = Ingestion(self.store, PLAIN, stamps(1, self.clock), GapReading(self.hub), incarnations=verified)
        self.check = SilenceCheck(self.means, GRACE, self.host)
        for id in self.ids:
            self.deliver(9, id)
            self.publish(10, 19, id)
        assert self.look() == []

    def publish(self, first: int, last: int, id: str = "0") -> None:
        self.hub.publish(id, [event(one, "reading a", at=self.clock.now()) for one in range(first, last + 1)])

    def deliver(self, last: int, id: str = "0") -> None:
        """Let the trigger deliver all events up to a number."""
        given = [one for one in self.hub.held[id].values() if one.sequence_number <= last]
        ingest_batch(batch(given, partition(id)), replace(self.means, clock=stamps(2, self.clock)))
        self.host.deliver_up_to(last, id)

    def look(self, after: float = 0.0) -> Sequence[Looked]:
        self.clock.advance(after)
        return list(self.check.run("timer-1"))

    def said(self, after: float = 0.0) -> list[str]:
        return [one.words for one in self.look(after) if isinstance(one, PartitionStanding)]

    def stops(self, id: str = "0") -> tuple[PartitionStop, ...]:
        return self.store.read_partition(partition(id)).stops

    def stand(self, minutes: int, more: int = 10) -> None:
        """Let so many minutes pass in which events come and the trigger delivers none."""
        for _ in range(minutes):
            last = self.hub.last["0"]
            self.publish(last + 1, last + more)
            self.look(after=59.9)  # the timer is not exact


class TestALift:
    def test_moves_the_checkpoint_to_the_one_in_sql_after_the_own_reader_committed(self) -> None:
        world = World()
        assert world.said(after=120) == [
            "the trigger of partition 0 stands at 9 since 00:00 UTC; 10 events went by the app's own reader;"
            " its checkpoint was lifted"
        ]
        assert world.host.numbers == {"0": 19}
        assert world.stops() == ()

    def test_makes_a_checkpoint_where_there_is_none(self) -> None:
        world = World()
        world.host.numbers.clear()
        world.look(after=120)
        assert world.host.numbers == {"0": 19}

    def test_of_ten_partitions_lifts_each(self) -> None:
        ids = [str(id) for id in range(10)]
        world = World(*ids)
        assert len(world.said(after=120)) == 10
        assert world.host.numbers == dict.fromkeys(ids, 19)

    def test_never_moves_a_checkpoint_back(self) -> None:
        world = World()
        world.host.deliver_up_to(1_000)
        (words,) = world.said(after=120)
        assert words.endswith("its checkpoint, 1000, is after the one in SQL, or of a former hub")
        assert world.host.numbers == {"0": 1_000}

    def test_leaves_a_checkpoint_that_moves_at_the_same_moment(self) -> None:
        world = World()
        world.host.meanwhile = lambda: world.host.deliver_up_to(15)
        (words,) = world.said(after=120)
        assert words.endswith("its checkpoint moved at the same moment")
        assert world.host.numbers == {"0": 15}

    def test_by_two_apps_at_once_happens_once(self) -> None:
        world = World()
        rival = SilenceCheck(world.means, GRACE, world.host)
        list(rival.run("timer-2"))
        world.clock.advance(120)
        world.host.meanwhile = lambda: list(rival.run("timer-2"))
        world.look()
        assert world.host.numbers == {"0": 19}
        assert [(one.first, one.last) for one in world.store.ledger()] == [(0, 9), (10, 19)]

    def test_waits_for_the_incarnation_where_the_hub_was_recreated(self) -> None:
        world = World()
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
        world = World()
        world.deliver(19)
        world.host.deliver_up_to(3)
        for _ in range(5):
            assert world.look(after=60) == []
        assert world.host.numbers == {"0": 3}

    def test_is_not_tried_where_there_is_no_host(self) -> None:
        world = World()
        world.check.host = None
        assert [type(one) for one in world.look(after=120)] == [Healed]
        world.stand(5)
        assert (world.host.numbers, world.stops()) == ({"0": 9}, ())


class TestTheWords:
    def test_name_the_event_at_which_the_trigger_stands_if_it_is_known(self) -> None:
        world = World()
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
        world = World()
        world.hub.recreate("1")
        world.look()
        world.publish(0, 4, "1")
        world.look(after=60)
        (words,) = world.said(after=120)[1:]
        assert words.startswith("the trigger of partition 1 stands before its first event since 00:01 UTC; 5 events")

    def test_are_said_too_when_the_hub_does_not_name_the_event(self) -> None:
        world = World()

        def suspect(partition: Partition, first: int) -> str:
            raise HubUnreachable("the hub does not answer")

        world.check.suspect = suspect
        assert len(world.said(after=120)) == 1


class TestAStorageThatDoesNotAnswer:
    def test_is_told_once_and_the_events_go_on(self) -> None:
        world = World()
        world.host.fault = "AzureWebJobsStorage is not set"
        (words,) = world.said(after=120)
        assert words.endswith("its checkpoint cannot be lifted: AzureWebJobsStorage is not set")
        world.publish(20, 29)
        assert [type(one) for one in world.look(after=60)] == [Healed]

    def test_is_lifted_to_once_it_answers_again(self) -> None:
        world = World()
        world.host.fault = "AzureWebJobsStorage: the account is closed"
        world.look(after=120)
        world.host.fault = None
        world.stand(1)
        assert world.host.numbers == {"0": 29}


class TestATriggerThatStandsAlthoughItWasLifted:
    def test_is_recorded_after_two_minutes_with_the_events_that_went_by(self) -> None:
        world = World()
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
        world = World()
        world.look(after=120)
        world.stand(3)
        world.check = SilenceCheck(world.means, GRACE, world.host)
        world.stand(1)
        (stop,) = world.stops()
        assert stop.detail.startswith(
            "the trigger of partition 0 stands at 9 since 00:00 UTC; 50 events went by the app's own reader"
        )
        assert world.store.read_partition(partition()).next_number == 60

    def test_keeps_its_record_while_no_event_comes(self) -> None:
        world = World()
        world.look(after=120)
        world.stand(3)
        world.look(after=600)
        assert [stop.reason for stop in world.stops()] == ["trigger"]

    def test_has_no_record_once_it_commits_again(self) -> None:
        world = World()
        world.look(after=120)
        world.stand(3)
        world.publish(50, 59)
        world.deliver(55)
        assert world.look(after=60) == []
        assert world.stops() == ()
        assert world.look(after=119) == []
        assert [type(one) for one in world.look(after=1)] == [Healed, PartitionStanding]

    def test_has_no_record_when_it_commits_again_and_nothing_waits(self) -> None:
        world = World()
        world.look(after=120)
        world.stand(3)
        world.publish(50, 59)
        world.deliver(59)
        world.look(after=60)
        assert world.stops() == ()

    @pytest.mark.parametrize("delivered", [55, 59])
    def test_has_no_record_when_it_committed_before_a_new_process_looks(self, delivered: int) -> None:
        world = World()
        world.look(after=120)
        world.stand(3)
        world.check = SilenceCheck(world.means, GRACE, world.host)
        world.publish(50, 59)
        world.deliver(delivered)
        assert world.look(after=60) == []
        assert world.stops() == ()

    def test_keeps_its_record_in_a_new_process_while_no_event_comes(self) -> None:
        world = World()
        world.look(after=120)
        world.stand(3)
        world.check = SilenceCheck(world.means, GRACE, world.host)
        world.look(after=60)
        assert [stop.reason for stop in world.stops()] == ["trigger"]

    def test_counts_as_moving_while_it_is_ahead_of_sql_and_goes_on(self) -> None:
        world = World()
        for number in (500, 600, 700, 800, 900, 1_000):
            world.host.deliver_up_to(number)
            world.stand(1)
        assert world.store.read_partition(partition()).next_number == 80
        assert world.stops() == ()

    def test_counts_as_moving_while_its_own_checkpoint_moves(self) -> None:
        world = World()
        world.look(after=120)
        for number in (20, 21, 22, 23):
            world.publish(number, number)
            world.host.deliver_up_to(number)
            world.look(after=60)
        assert world.stops() == ()
