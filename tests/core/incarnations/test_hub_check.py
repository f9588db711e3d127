"""A hub that was recreated, restored or failed over stops its partitions, and no number of it passes for an old one."""

import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from core.errors import BatchRefused, HubUnreachable, StopReason, StreamIncarnationChanged
from core.incarnations.hub_check import OLDEST, PAUSE, SOONEST, HubVerification
from core.ingest.ingest import ingest_batch
from core.ingest.stalled_partitions import Unhealed
from core.model.commits import PartitionState
from core.model.events import Event
from examples.home_security.transform import SensorReading
from tests.core.incarnations.world import NEW, OLD, World, log, renewed
from tests.fakes.builders import EPOCH, STREAM, batch, commit, event, partition
from tests.patience import allowed


@pytest.fixture
def world() -> World:
    return World()


class TestARecreatedHub:
    def test_whose_numbers_fit_stops_the_partition(self, world: World) -> None:
        world.deliver(log(0, 9))
        world.recreate(*renewed(0, 9))
        world.clock.advance(SOONEST * 2)
        said = world.refuse(renewed(10, 19))
        assert f"the hub was created at {NEW.isoformat()}" in said
        assert OLD.isoformat() in said
        (stop,) = world.base.read_partition(partition()).stops
        assert (stop.reason, stop.detail) == ("incarnation", said)

    def test_is_seen_by_a_process_that_starts_after_it(self, world: World) -> None:
        world.deliver(log(0, 9))
        world.recreate(*renewed(0, 9))
        world.start_process()
        world.refuse(renewed(10, 19))

    def test_is_seen_by_every_partition_that_shares_the_reading(self, world: World) -> None:
        for id in "01":
            world.deliver(log(0, 9), id)
        world.recreate(*renewed(0, 9))
        world.hub.publish("1", renewed(0, 9))
        world.clock.advance(SOONEST * 2)
        world.hub.asked.clear()
        for id in "01":
            world.refuse(renewed(10, 19), id)
        assert world.asked("created_at") == 1

    def test_is_seen_in_a_partition_that_has_no_commit(self, world: World) -> None:
        world.deliver(log(0, 9))
        world.recreate()
        world.clock.advance(OLDEST + 1)
        world.refuse(renewed(0, 4), "1")
        assert world.base.read_partition(partition("1")).anchor is None

    def test_is_seen_by_the_silence_check_of_every_partition(self, world: World) -> None:
        world.deliver(log(0, 9))
        world.recreate(*renewed(0, 29))
        world.clock.advance(OLDEST + 1)
        found = list(world.silence.run("timer"))
        assert [type(one) for one in found] == [Unhealed, Unhealed]
        assert {str(one.partition.partition_id) for one in found} == {"0", "1"}
        assert [stop.reason for stop in world.base.read_partition(partition("1")).stops] == ["incarnation"]

    def test_between_two_pieces_of_a_gap_leaves_no_number_absent(self, world: World) -> None:
        world.deliver(log(0, 9))
        world.hub.publish("0", log(10, 39))

        def recreated(*_: object) -> bool:
            if world.hub.asked[-1:] == ["read_range"]:
                world.recreate()
            return False

        world.hub.fails = recreated
        world.refuse(log(30, 39))
        assert world.base.read_ledgers()[0].absent == 0

    def test_while_a_silent_partition_is_closed_leaves_no_number_absent(self, world: World) -> None:
        world.deliver(log(0, 9))
        world.hub.publish("0", log(10, 19))
        list(world.silence.run("timer"))
        world.hub.lose("0", *range(10, 20))
        world.clock.advance(120)
        asked = world.hub.asked

        def recreated() -> bool:
            if asked[-1] == "read_range":
                world.recreate()
            return False

        world.hub.fails = recreated
        found = list(world.silence.run("timer"))
        assert isinstance(found[0], Unhealed)
        assert isinstance(found[0].fault, StreamIncarnationChanged)
        assert world.base.read_ledgers()[0].absent == 0


class TestTheHubThatComesBack:
    """The host tries batches of the other hub again, when the stream's hub has long answered for it."""

    def give_back(self, world: World, *other: Event) -> None:
        """Let a batch of another hub be refused, and give the stream's hub back."""
        world.deliver(log(0, 9))
        world.recreate(*renewed(0, 9))
        world.clock.advance(OLDEST + 1)
        world.refuse(list(other))
        world.hub.recreate_hub(OLD)
        world.hub.publish("0", log(0, 9))
        world.clock.advance(OLDEST + 1)

    @pytest.mark.parametrize("retries", [0, 3])
    def test_never_gets_numbers_that_it_has_not_given(self, world: World, retries: int) -> None:
        other = renewed(10, 19)
        self.give_back(world, *other)
        list(world.silence.run("timer"))
        assert world.base.read_partition(partition()).stops == ()
        for _ in range(2):
            with pytest.raises(BatchRefused, match="event 10 of the batch is not in the hub"):
                ingest_batch(replace(batch(other), retries=retries), world.means)
        assert world.base.read_ledgers()[0].accounted == 10

    def test_keeps_its_own_event_of_the_same_number(self, world: World) -> None:
        other = renewed(10, 19)
        self.give_back(world, *other)
        own = log(10, 29)
        world.hub.publish("0", own)
        with pytest.raises(BatchRefused, match="event 10 of the batch is not the hub's"):
            ingest_batch(batch(other), world.means)
        world.deliver(own)
        assert world.bodies() == {(1, "0"): {"old"}}
        assert world.base.read_ledgers()[0].accounted == 30

    def test_never_gets_numbers_whose_events_it_has_lost(self, world: World) -> None:
        other = renewed(10, 19)
        self.give_back(world, *other)
        world.hub.publish("0", log(10, 29))
        world.hub.expire_before("0", 20)
        with pytest.raises(BatchRefused, match="the hub has lost the events of the batch"):
            ingest_batch(replace(batch(other), retries=1), world.means)
        world.deliver(log(20, 29))
        assert world.bodies() == {(1, "0"): {"old"}}
        assert world.base.read_ledgers()[0].absent == 10

    def test_is_known_to_a_process_that_starts_after_it(self, world: World) -> None:
        other = renewed(10, 19)
        self.give_back(world, *other)
        list(world.silence.run("timer"))
        world.start_process()
        with pytest.raises(BatchRefused):
            ingest_batch(replace(batch(other), retries=1), world.means)

    def test_gives_a_batch_whose_events_it_forgets_meanwhile(self, world: World) -> None:
        self.give_back(world, *renewed(10, 19))
        own = log(10, 19)
        world.hub.publish("0", own)
        world.hub.expire_before("0", 15)
        ingest_batch(batch(own), world.means)
        assert world.base.read_ledgers()[0].accounted == 20


class TestAFailover:
    """The time of creation is the same, but a number means a different event."""

    def test_is_seen_by_a_process_that_starts_after_it(self, world: World) -> None:
        world.deliver(log(0, 9))
        world.hub.recreate("0")
        world.hub.publish("0", renewed(0, 9))
        world.start_process()
        said = world.refuse(renewed(10, 19))
        assert "the hub's event 9 was enqueued at" in said

    def test_is_seen_after_a_pause_of_the_partition(self, world: World) -> None:
        world.deliver(log(0, 9))
        world.hub.recreate("0")
        world.hub.publish("0", renewed(0, 9))
        world.clock.advance(PAUSE)
        world.refuse(renewed(10, 19))

    def test_that_lost_the_checkpoint_is_seen_by_the_end_of_the_hub(self, world: World) -> None:
        world.deliver(log(0, 9))
        world.hub.recreate("0")
        world.hub.publish("0", log(0, 7))
        world.start_process()
        with pytest.raises(StreamIncarnationChanged, match="the hub ends at 7, before the checkpoint at 9"):
            ingest_batch(batch(log(5, 7)), world.means)

    def test_is_seen_by_the_next_silence_check_however_soon_it_comes(self, world: World) -> None:
        world.deliver(log(0, 9))
        assert list(world.silence.run("timer")) == []
        world.hub.recreate("0")
        world.hub.publish("0", renewed(0, 19))
        (found,) = world.silence.run("timer")
        assert isinstance(found, Unhealed)
        assert "the hub's event 9 was enqueued" in str(found.fault)

    def test_an_event_of_the_checkpoint_that_retention_has_cut_tells_nothing(self, world: World) -> None:
        world.deliver(log(0, 9))
        world.hub.publish("0", log(10, 19))
        world.hub.expire_before("0", 15)
        world.start_process()
        assert world.deliver(log(15, 19)).absent == 5


class TestAStoreThatIsOlder:
    def test_adopts_the_hub_when_every_checkpoint_fits(self, world: World) -> None:
        world.deliver(log(0, 4))
        assert world.base.read_incarnation(STREAM).hub_created_at == OLD

    def test_adopts_no_hub_that_one_of_its_checkpoints_contradicts(self, world: World) -> None:
        state = world.base.read_partition(partition("1"))
        world.base.commit_batch(commit(state, 0, 9))
        world.hub.publish("1", renewed(0, 20))
        world.refuse(log(0, 4))
        assert world.base.read_incarnation(STREAM).hub_created_at is None


class TestThePrice:
    def test_a_reading_serves_all_partitions_that_are_far_enough_for_five_seconds(self, world: World) -> None:
        far = 1_000_000
        for id in "01":
            world.hub.publish(id, log(far, far + 4))
            world.deliver(log(far, far + 4), id)
        world.clock.advance(OLDEST)
        world.hub.asked.clear()
        for id in "01":
            world.deliver(log(far + 5, far + 9), id)
        assert world.asked("created_at") == 0
        world.clock.advance(0.1)
        for id in "01":
            world.deliver(log(far + 10, far + 14), id)
        assert world.asked("created_at") == 1

    @pytest.mark.parametrize(("reached", "age"), [(9, SOONEST), (99_999, 1.0), (10_000_000, OLDEST)])
    def test_a_reading_is_no_older_than_a_new_hub_needs_to_reach_the_numbers(
        self, world: World, reached: int, age: float
    ) -> None:
        world.hub.publish("0", log(reached, reached))
        world.deliver(log(reached, reached))
        world.hub.asked.clear()
        world.clock.advance(age * 0.99)
        world.deliver(log(reached + 1, reached + 1))
        assert world.asked("created_at") == 0
        world.clock.advance(age * 0.02)
        world.deliver(log(reached + 2, reached + 2))
        assert world.asked("created_at") == 1

    def test_a_first_contact_costs_the_event_of_the_checkpoint(self, world: World) -> None:
        world.deliver(log(0, 4))
        world.start_process()
        world.hub.asked.clear()
        world.deliver(log(5, 9))
        assert world.hub.asked == ["created_at", "extent", "find_event"]

    def test_threads_that_wait_for_a_reading_share_it(self, world: World) -> None:
        own, is_waited_for = threading.RLock(), threading.Event()

        class Alone:
            """A lock that says when somebody waits for it."""

            def __enter__(self) -> None:
                if not own.acquire(blocking=False):
                    is_waited_for.set()
                    own.acquire()

            def __exit__(self, *fault: object) -> None:
                own.release()

        verified = HubVerification(world.hub, world.clock.monotonic, Alone())
        states = [world.base.read_partition(partition(id)) for id in "01"]
        # An answer comes when the other thread waits, too.
        world.hub.fails = lambda: not is_waited_for.wait(allowed(30))
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(lambda state: verified.verify(state, world.base), states)) == states
        assert world.asked("created_at") == 1


class TestAHubThatDoesNotAnswer:
    def test_holds_the_partition_at_first_contact(self, world: World) -> None:
        world.hub.publish("0", log(0, 4))
        world.hub.fails = lambda: True
        with pytest.raises(HubUnreachable):
            world.deliver(log(0, 4))
        assert world.base.ledger() == []
        world.hub.fails = lambda: False
        world.deliver(log(0, 4))

    def test_holds_it_when_the_reading_is_old(self, world: World) -> None:
        world.deliver(log(0, 4))
        world.clock.advance(OLDEST + 1)
        world.hub.publish("0", log(5, 9))
        world.hub.fails = lambda: True
        with pytest.raises(HubUnreachable):
            world.deliver(log(5, 9))
        assert [(kept.first, kept.last) for kept in world.base.ledger()] == [(0, 4)]


class TestAStop:
    def stopped(self, world: World) -> None:
        world.deliver(log(0, 9))
        world.hub.made_at = NEW
        world.clock.advance(1)
        world.refuse(log(10, 14))

    def test_ends_when_the_hub_is_the_streams_again(self, world: World) -> None:
        self.stopped(world)
        world.hub.made_at = OLD
        world.clock.advance(1)
        world.deliver(log(10, 14))
        assert world.base.read_partition(partition()).stops == ()

    def test_that_ends_while_another_owner_commits_leaves_the_decision_as_it_was_read(self, world: World) -> None:
        self.stopped(world)
        world.hub.made_at = OLD
        world.clock.advance(1)
        whole, cleared = log(10, 29), world.store.clear_stops
        other = world.means

        def clear(state: PartitionState, reasons: Collection[StopReason]) -> None:
            cleared(state, reasons)
            ingest_batch(batch(log(10, 14)), replace(other, store=world.base))

        world.store.clear_stops = clear  # type: ignore[method-assign]
        world.deliver(whole)
        assert [(kept.first, kept.last) for kept in world.base.ledger()] == [(0, 9), (10, 14), (15, 29)]

    def test_ends_by_the_silence_check_when_no_batch_comes(self, world: World) -> None:
        self.stopped(world)
        world.hub.made_at = OLD
        list(world.silence.run("timer"))
        assert world.base.read_partition(partition()).stops == ()

    def test_of_a_contradicting_event_stays_while_the_event_contradicts(self, world: World) -> None:
        world.deliver(log(0, 9))
        for attempts in (1, 2):
            said = world.refuse([event(4, "reading new", at=EPOCH + timedelta(days=9))])
            assert "event 4 was enqueued after the checkpoint at 9" in said
            assert [one.attempts for one in world.base.read_partition(partition()).stops] == [attempts]


class TestTheNextIncarnation:
    def opened(self, world: World, *held: Event) -> None:
        world.deliver(log(0, 9))
        world.recreate(*held)
        world.clock.advance(1)
        world.refuse(renewed(len(held), len(held) + 4))
        world.open_next()

    def test_is_read_from_its_anchor_and_nothing_is_mixed(self, world: World) -> None:
        self.opened(world, *renewed(0, 14))
        world.deliver(renewed(15, 19))
        old, new = sorted({row.stream_id for row in world.base.rows(SensorReading)})
        assert world.bodies() == {(old, "0"): {"old"}, (new, "0"): {"new"}}
        assert [row.sequence_number for row in world.base.rows(SensorReading) if row.stream_id == new] == list(
            range(20)
        )
        assert world.base.read_books()[0].balanced

    def test_drops_the_events_of_the_former_hub_that_the_host_still_holds(self, world: World) -> None:
        self.opened(world, *renewed(0, 4))
        held_back = log(10, 14)
        assert ingest_batch(batch(held_back), world.means).redelivered == 5
        assert world.base.read_books() == ()
        world.hub.publish("0", renewed(5, 9))
        ingest_batch(batch([*log(0, 2), *renewed(3, 9)]), world.means)
        assert world.bodies().popitem()[1] == {"new"}
        assert [(one.accounted, one.absent, one.balanced) for one in world.base.read_books()] == [(10, 0, True)]

    def test_keeps_events_that_were_enqueued_before_its_hub_was_created_if_the_hub_holds_them(
        self, world: World
    ) -> None:
        world.hub.made_at = EPOCH + timedelta(seconds=5)
        assert world.deliver(log(0, 9)).healed == 0
        assert [(kept.first, kept.last, kept.absent) for kept in world.base.ledger()] == [(0, 9, 0)]
        assert len(world.base.rows(SensorReading)) == 10

    def test_is_noticed_by_a_process_that_remembers_the_closed_stream(self, world: World) -> None:
        world.deliver(log(0, 9))
        other = world.means
        world.start_process()
        world.deliver(log(10, 14))
        world.recreate(*renewed(0, 14))
        world.open_next()
        world.clock.advance(1)
        world.hub.publish("0", renewed(15, 19))
        ingest_batch(batch(renewed(15, 19)), other)
        assert world.base.read_partition(partition()).checkpoint is not None
        assert world.base.read_partition(partition()).stops == ()
