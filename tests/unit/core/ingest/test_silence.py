"""core/ingest/silence.py: losses at the end of a partition that fell silent are healed, and nothing is disturbed."""

import threading
from collections.abc import Sequence
from datetime import timedelta

import pytest

from core.errors import HubUnreachable, StreamIncarnationChanged
from core.ingest.gaps import Healing
from core.ingest.incarnation import HubVerification
from core.ingest.ingest import Means, ingest_batch
from core.ingest.silence import Healed, SilenceCheck, Unhealed
from core.model.spans import SequenceNumber, Span
from tests.fakes.builders import FakeClock, batch, event, events, partition, stamps
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.memory_store import MemoryStore
from tests.fakes.one_pass import assert_equals_one_pass
from tests.fakes.plain_transform import PLAIN

GRACE = timedelta(seconds=120)


class World:
    """Two partitions of 20 events each, of which 0 to 9 are committed."""

    def __init__(self) -> None:
        self.store, self.clock = MemoryStore(), FakeClock()
        self.log = events(0, 19, "reading a")
        self.hub = MemoryHub({"0": self.log, "1": self.log})
        verified = HubVerification(self.hub, self.clock.monotonic, threading.RLock())
        self.means = Means(self.store, PLAIN, stamps(1, self.clock), Healing(self.hub), incarnations=verified)
        self.check = SilenceCheck(self.means, GRACE)
        for id in ("0", "1"):
            self.deliver(0, 9, id)

    def deliver(self, first: int, last: int, id: str = "0") -> None:
        means = self.means
        ingest_batch(
            batch(self.log[first : last + 1], partition(id)), Means(self.store, PLAIN, means.clock, means.healing)
        )

    def look(self, after: float = 0.0) -> Sequence[Healed | Unhealed]:
        self.clock.advance(after)
        return list(self.check.run("timer-1"))

    def ranges(self, id: str = "0") -> list[tuple[int, int, int]]:
        return [(kept.first, kept.last, kept.absent) for kept in self.store.ledger() if kept.partition_id == id]


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


def test_a_clock_that_was_ahead_delays_no_healing(world: World) -> None:
    world.look(after=86_400)
    world.look(after=-86_400)
    assert [type(one) for one in world.look(after=120)] == [Healed, Healed]


def test_a_partition_that_moves_is_left_to_the_trigger(world: World) -> None:
    world.deliver(10, 19, "1")
    world.look()
    for number in range(10, 20):
        assert world.look(after=60) == []
        world.deliver(number, number)
    assert world.ranges() == [(0, 9, 0), *((number, number, 0) for number in range(10, 20))]


def test_a_partition_into_which_events_still_come_is_left_to_the_trigger(world: World) -> None:
    world.deliver(10, 19, "1")
    world.look()
    world.hub.publish("0", [event(20, "quiet", at=world.clock.now() + timedelta(seconds=100))])
    assert world.look(after=130) == []
    assert len(world.look(after=100)) == 1


def test_what_retention_cut_at_the_end_is_absent_in_a_commit_of_its_own(world: World) -> None:
    world.deliver(10, 19, "1")
    world.hub.expire_before("0", 20)
    world.look()
    (healed,) = world.look(after=120)
    assert isinstance(healed, Healed)
    assert (healed.healed, healed.absent) == (0, 10)
    assert world.ranges() == [(0, 9, 0), (10, 19, 10)]
    assert_equals_one_pass(world.store, {"0": world.log[:10], "1": world.log}, absent={"0": set(range(10, 20))})
    checkpoint = world.store.read_partition(partition()).checkpoint
    assert checkpoint is not None
    assert checkpoint.offset == world.log[9].offset, "a reader goes on behind the last event that was there"
    assert [books.balanced for books in world.store.read_ledgers()] == [True, True]


def test_a_partition_continues_after_absent_numbers_at_its_end(world: World) -> None:
    world.hub.expire_before("0", 20)
    world.look()
    world.look(after=120)
    later = events(20, 22, "reading a")
    world.hub.publish("0", later)
    report = ingest_batch(batch(later), Means(world.store, PLAIN, world.means.clock, world.means.healing))
    assert (report.redelivered, report.gaps) == (0, ())
    assert [books.balanced for books in world.store.read_ledgers()] == [True, True]


def test_events_that_the_trigger_still_had_in_hand_are_dropped_and_stop_nothing(world: World) -> None:
    world.hub.expire_before("0", 20)
    world.look()
    world.look(after=120)
    world.deliver(10, 19)
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


def test_a_new_partition_without_events_is_anchored_early_so_that_retention_cannot_hide_a_loss() -> None:
    world = World()
    world.hub.recreate("2")
    world.look()
    assert world.store.read_partition(partition("2")).anchor == 0


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
    assert [stop.attempts for stop in world.store.read_partition(partition("0")).stops] == [2]


def test_a_hub_that_cannot_be_asked_at_all_is_a_fault_of_the_look(world: World) -> None:
    world.hub.fails = lambda: True
    with pytest.raises(HubUnreachable):
        world.look()


def test_an_open_gap_that_the_trigger_closed_itself_is_noted_as_healed(world: World) -> None:
    state = world.store.read_partition(partition())
    world.store.note_gap(state, Span(SequenceNumber(10), SequenceNumber(19)), world.clock.now())
    world.deliver(10, 19)
    world.look()
    assert [(kept.first, kept.last, kept.status) for kept in world.store.gaps()] == [(10, 19, "healed")]
