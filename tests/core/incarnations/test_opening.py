"""The next incarnation: what a dry run says is what is opened, once, and only for a hub that does not fit."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from core.errors import CommitOutcomeUnknown, HubUnreachable
from core.incarnations.next_incarnation import (
    HubFits,
    IncarnationMeans,
    IncarnationOrder,
    IncarnationReport,
    Incarnations,
    Opening,
    StateDiffers,
    next_incarnation,
)
from core.model.policies import Anchoring
from core.model.ports import Extent
from core.settle.partition_store import Partitions
from tests.fakes.builders import EPOCH, NOON, STREAM, FakeClock, commit, events, keep_letters, partition, stamps
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.memory_store import MemoryStore

OLD, NEW = EPOCH - timedelta(days=1), EPOCH + timedelta(hours=1)


class World:
    """A stream of the old hub with ten numbers and two letters, and a new hub with five events."""

    def __init__(self) -> None:
        self.base, self.clock = MemoryStore(), FakeClock()
        self.hub = MemoryHub({"0": events(0, 4), "1": []})
        self.hub.made_at = NEW
        self.base.adopt_hub(self.base.read_incarnation(STREAM), OLD)
        self.base.commit_batch(commit(self.base.read_partition(partition()), 0, 4))
        keep_letters(self.base, {7: "poison", 9: "poison"})
        self.store = Incarnations(self.base.database, Partitions(self.base.database))

    @property
    def means(self) -> IncarnationMeans:
        return IncarnationMeans(STREAM, self.store, self.hub, stamps(1, self.clock))

    def order(self, *, expected: int = 1, created: datetime | None = None, **changed: Any) -> IncarnationReport:
        order = IncarnationOrder("ada", "recreated", expected, created)
        return next_incarnation(replace(order, **changed), self.means)

    def open(self, **changed: Any) -> IncarnationReport:
        return self.order(created=self.hub.made_at, is_dry_run=False, **changed)

    def anchors(self) -> list[int | None]:
        return [self.base.read_partition(partition(id)).anchor for id in "01"]


@pytest.fixture
def world() -> World:
    return World()


def test_a_dry_run_says_what_will_be_read_and_changes_nothing(world: World) -> None:
    said = world.order()
    assert (said.closed.number, said.hub_created_at, said.is_opened) == (1, NEW, False)
    assert "the hub was created at" in (said.evidence or "")
    found = [(one.partition_id, one.anchor, one.beginning, one.end, one.numbers) for one in said.beginnings]
    assert found == [("0", 0, 0, 4, 5), ("1", 0, 0, -1, 0)]
    assert said.beginnings[0].evidence == "the hub ends at 4, before the checkpoint at 9"
    assert world.base.read_incarnation(STREAM).number == 1


def test_what_the_dry_run_said_is_opened(world: World) -> None:
    said, done = world.order(), world.open()
    assert done == replace(said, is_opened=True)
    found = world.base.read_incarnation(STREAM)
    assert (found.number, found.hub_created_at, found.opened_by, found.opened_why) == (2, NEW, "ada", "recreated")
    assert world.anchors() == [0, 0]
    assert world.base.read_books() == ()


def test_carried_out_again_it_is_refused_with_the_state_that_was_found(world: World) -> None:
    world.open()
    with pytest.raises(StateDiffers) as refusal:
        world.open()
    assert (refusal.value.incarnation, refusal.value.hub_created_at) == (2, NEW)


@pytest.mark.parametrize("created", [OLD, NEW + timedelta(seconds=1)])
def test_a_hub_that_the_person_has_not_seen_is_refused(world: World, created: datetime) -> None:
    with pytest.raises(StateDiffers):
        world.order(created=created, is_dry_run=False)
    assert world.base.read_incarnation(STREAM).number == 1


@pytest.mark.parametrize(
    ("anchoring", "anchors"), [("first", [2, 0]), ("latest", [5, 0]), (EPOCH + timedelta(seconds=3), [3, 0])]
)
def test_every_partition_begins_where_the_person_says(world: World, anchoring: Anchoring, anchors: list[int]) -> None:
    world.hub.expire_before("0", 2)
    assert [one.anchor for one in world.order(anchoring=anchoring).beginnings] == anchors
    world.open(anchoring=anchoring)
    assert world.anchors() == anchors


def test_a_hub_that_fits_is_left_alone_unless_it_is_forced(world: World) -> None:
    world.hub.made_at = OLD
    world.hub.publish("0", events(5, 20))
    with pytest.raises(HubFits):
        world.order()
    assert world.order(is_forced=True).evidence is None
    world.open(is_forced=True)
    assert world.base.read_incarnation(STREAM).number == 2


def test_a_failover_that_kept_the_time_of_creation_is_evidence_enough(world: World) -> None:
    world.hub.made_at = OLD
    assert world.order().evidence == "partition 0: the hub ends at 4, before the checkpoint at 9"
    assert world.open().is_opened


class ChangingHub(MemoryHub):
    """A hub that is recreated whenever it is read."""

    def extent(self, partition: object) -> Extent:
        self.made_at += timedelta(seconds=1)
        return super().extent(partition)  # type: ignore[arg-type]


def test_nothing_is_opened_for_a_hub_that_is_recreated_while_it_is_read(world: World) -> None:
    world.hub = ChangingHub({"0": events(0, 4), "1": []})
    world.hub.made_at = NEW
    for act in (world.order, world.open):
        with pytest.raises(HubUnreachable, match="recreated while it was read: repeat the dry run"):
            act()
    assert world.base.read_incarnation(STREAM).number == 1


class LosesTheAnswer(Incarnations):
    """Loses the answer of the transaction, which stands or not."""

    stands = True

    def open_incarnation(self, opening: Opening) -> None:
        if self.stands:
            super().open_incarnation(opening)
        raise CommitOutcomeUnknown("the connection was lost")


def test_a_lost_answer_is_settled_by_a_look(world: World) -> None:
    world.store = LosesTheAnswer(world.base.database, world.base)
    assert world.open().is_opened
    assert world.base.read_incarnation(STREAM).opened_at == NOON
    other = World()
    store = LosesTheAnswer(other.base.database, other.base)
    store.stands = False
    other.store = store
    with pytest.raises(CommitOutcomeUnknown):
        other.open()
