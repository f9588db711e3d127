from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from core.errors import CheckpointConflict, CommitOutcomeUnknown, HubUnreachable, IncarnationConflict, LetterConflict
from core.incarnations import next_incarnation as incarnating
from core.incarnations.next_incarnation import HubFits, IncarnationReport, Incarnations, Opening, StateDiffers
from core.letters.retry import Keeper, claim_due, retry_chunk
from core.model.events import SequenceNumber
from core.model.letters import LetterOutcome, RetryCommit
from core.model.policies import Anchoring
from core.model.ports import Extent
from core.settle.partition_store import Partitions
from core.store.database import OneStream, StreamClosed, write
from core.store.memory import Memory
from tests.core.replay.test_task import request
from tests.fakes import builders
from tests.fakes.builders import EPOCH, NOON, STREAM, FakeClock, claim, commit, events, keep_letters, partition, settled
from tests.fakes.faulty_database import NotedDatabase
from tests.fakes.kept import Engine
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.plain_transform import PLAIN
from tests.fakes.replaying import opened
from tests.fakes.store import MemoryStore, Store, open_next, opening

P = partition()
OLD, NEW = EPOCH - timedelta(days=1), EPOCH + timedelta(hours=1)
LATEST = NOON + timedelta(hours=2)


def incarnations(store: Store) -> Incarnations:
    return Incarnations(store.database, Partitions(store.database))


def test_a_hub_is_adopted_once(store: Store) -> None:
    found = store.read_incarnation(STREAM)
    for created_at in (NOON, EPOCH):
        store.adopt_hub(found, created_at)
    assert store.read_incarnation(STREAM) == replace(found, hub_created_at=NOON)


def test_the_next_incarnation_is_a_separate_stream_with_its_anchors(store: Store) -> None:
    before = store.read_partition(P)
    store.commit_batch(commit(before, 0, 4, settled({0: [builders.reading()]}, filtered=4)))
    for reason in ("incarnation", "outage"):
        store.note_stop(before, reason, "why", NOON)
    open_next(store, first=7)
    found, state = store.read_incarnation(STREAM), store.read_partition(P)
    assert (found.number, found.hub_created_at, found.opened_at) == (2, NOON, NOON)
    assert (found.opened_by, found.opened_why) == ("ada", "the hub was recreated")
    assert (state.stream_id, state.checkpoint, state.anchor) == (found.stream_id, None, 7)
    assert state.stream_id != before.stream_id
    stops = store.database.ask("read_stops", stream_id=before.stream_id, partition_id="0")
    assert (state.stops, [row[0] for row in stops]) == ((), ["outage"]), "the stop of the former hub ends"
    store.commit_batch(commit(state, 7, 9, settled({}, filtered=3)))
    assert store.read_books()[0].numbers == 3


def test_no_batch_anchor_or_retry_is_committed_to_a_closed_stream(store: Store, engine: Engine) -> None:
    fresh = store.read_partition(partition("1"))
    keep_letters(store, {0: "a", 1: "b"})
    store.claim_letters(claim())
    began = builders.hold(store, [0, 1])
    done = tuple(LetterOutcome(number, "resolved", why="it was filtered") for number in began.sequence_numbers)
    late = RetryCommit(began.state, began.claimed_by, done, settled({}, filtered=2), "test/1", "invocation-1", NOON)
    open_next(store)
    for stale in (commit(began.state, 2, 9), commit(fresh, 0, 4)):
        with pytest.raises(CheckpointConflict):
            store.commit_batch(stale)
    with pytest.raises(CheckpointConflict):
        store.anchor_partition(fresh, SequenceNumber(0), NOON)
    with pytest.raises(LetterConflict):
        store.commit_retry(late)
    assert [(kept.first, kept.last) for kept in engine.ledger()] == [(0, 1)]


def test_a_process_that_remembers_the_closed_stream_reads_the_new_one_after_its_conflict(store: Store) -> None:
    remembering, clock = store.remembering(timedelta(seconds=5)), FakeClock()
    remembering.commit_batch(commit(remembering.read_partition(P), 0, 4))
    looking = OneStream(store.database, STREAM, clock.monotonic)
    old = looking.find()
    open_next(store)
    assert looking.find() == old
    clock.advance(5)
    assert looking.find() == store.open_stream(STREAM) != old, "an operator sees the new stream within seconds"
    with pytest.raises(CheckpointConflict):
        remembering.commit_batch(commit(remembering.read_partition(P), 5, 9))
    assert remembering.read_partition(P) == store.read_partition(P)
    assert remembering.read_partition(P).checkpoint is None


def test_a_keeper_that_remembers_the_closed_stream_retries_the_letters_of_the_new_one(store: Store) -> None:
    clock = FakeClock()
    remembering = store.remembering(timedelta(seconds=5), clock.monotonic)
    keeper = Keeper(STREAM, remembering, PLAIN, lambda *_: None, replace(builders.stamps(), now=lambda: NOON))
    remembering.commit_batch(commit(remembering.read_partition(P), 0, 4))
    open_next(store)
    keep_letters(store, {0: "quiet"})  # a gap check without a memory commits it, and no batch of the partition follows
    clock.advance(5)
    (chunk,) = claim_due(keeper)
    report = retry_chunk(chunk, keeper, "retry-1")
    assert (report.resolved, report.lost) == (1, 0)


def test_a_round_of_a_keeper_is_one_call_and_the_next_one_is_about_the_new_stream(store: Store) -> None:
    clock, noted = FakeClock(), NotedDatabase(store.database)
    keeper = Store(noted, Memory(timedelta(seconds=60), clock.monotonic))

    def calls() -> list[str]:
        made = list(noted.calls)
        noted.calls.clear()
        return made

    keeper.next_due_at(STREAM, LATEST)
    calls()
    for _ in range(3):
        clock.advance(3_600)
        assert (keeper.next_due_at(STREAM, LATEST), calls()) == (None, ["next_due_at"])
    keep_letters(store, {0: "quiet"})
    assert keeper.next_due_at(STREAM, LATEST) == NOON
    old = keeper.open_stream(STREAM)
    assert len(keeper.claim_letters(claim())) == 1
    assert calls() == ["next_due_at", "claim_letters"]
    open_next(store)
    assert keeper.next_due_at(STREAM, LATEST) is None
    assert calls() == ["next_due_at", "find_stream", "next_due_at"]
    assert keeper.open_stream(STREAM) == store.open_stream(STREAM) != old
    calls()
    assert (keeper.next_due_at(STREAM, LATEST), calls()) == (None, ["next_due_at"])


def test_of_two_operators_one_opens_the_next_incarnation(store: Store) -> None:
    first = replace(opening(store), opened_by="👩" * 100, opened_why="👩" * 400)
    second = opening(store, first=5)
    incarnations(store).open_incarnation(first)
    with pytest.raises(IncarnationConflict):
        incarnations(store).open_incarnation(second)
    found = store.read_incarnation(STREAM)
    assert (found.number, store.read_partition(P).anchor) == (2, 0)
    assert (found.opened_by, found.opened_why) == ("👩" * 50, "👩" * 200)  # as many UTF-16 units as the columns hold


def test_open_replays_of_the_closed_stream_are_cancelled_and_no_further_one_is_opened(store: Store) -> None:
    remembering = store.remembering(timedelta(seconds=5))
    remembering.commit_batch(commit(remembering.read_partition(P), 0, 9))
    job = request()
    opened(store, job)
    place = {"task_id": str(job.order.task_id), "partition_id": "0"}
    write(store.database, "a replay", "carry_states", **place, carried='[["key", 4, "{}"]]')
    assert store.database.ask("read_carried", **place, keys='[["key"]]') != []
    open_next(store)
    found = store.find_replay(job.order.task_id)
    assert found is not None
    assert (found.task.status, found.task.ended_at) == ("cancelled", NOON)
    assert "next incarnation" in (found.task.fault or "")
    assert store.database.ask("read_carried", **place, keys='[["key"]]') == []
    late = request(UUID(int=1))
    with pytest.raises(StreamClosed):
        opened(remembering, late)
    assert store.find_replay(late.order.task_id) is None


class World:
    def __init__(self) -> None:
        self.base, self.clock = MemoryStore(), FakeClock()
        self.hub = MemoryHub({"0": events(0, 4), "1": []})
        self.hub.made_at = NEW
        self.base.adopt_hub(self.base.read_incarnation(STREAM), OLD)
        self.base.commit_batch(commit(self.base.read_partition(P), 0, 4))
        keep_letters(self.base, {7: "poison", 9: "poison"})
        self.store = incarnations(self.base)

    def order(self, *, expected: int = 1, created: datetime | None = None, **changed: Any) -> IncarnationReport:
        order = incarnating.IncarnationOrder("ada", "recreated", expected, created)
        means = incarnating.IncarnationMeans(STREAM, self.store, self.hub, builders.stamps(1, self.clock))
        return incarnating.next_incarnation(replace(order, **changed), means)

    def open(self, **changed: Any) -> IncarnationReport:
        return self.order(created=self.hub.made_at, is_dry_run=False, **changed)

    def anchors(self) -> list[int | None]:
        return [self.base.read_partition(partition(id)).anchor for id in "01"]

    @property
    def number(self) -> int:
        return self.base.read_incarnation(STREAM).number


@pytest.fixture
def world() -> World:
    return World()


def test_a_dry_run_says_what_will_be_read_changes_nothing_and_is_what_is_opened(world: World) -> None:
    said = world.order()
    assert (said.closed.number, said.hub_created_at, said.is_opened) == (1, NEW, False)
    assert "the hub was created at" in (said.evidence or "")
    found = [(one.partition_id, one.anchor, one.beginning, one.end, one.numbers) for one in said.beginnings]
    assert found == [("0", 0, 0, 4, 5), ("1", 0, 0, -1, 0)]
    assert said.beginnings[0].evidence == "the hub ends at 4, before the checkpoint at 9"
    assert world.number == 1
    assert world.open() == replace(said, is_opened=True)
    found_now = world.base.read_incarnation(STREAM)
    assert (found_now.number, found_now.hub_created_at, found_now.opened_by) == (2, NEW, "ada")
    assert (world.anchors(), world.base.read_books()) == ([0, 0], ())


def test_carried_out_again_it_is_refused_with_the_state_that_was_found(world: World) -> None:
    for created in (OLD, NEW + timedelta(seconds=1)):  # a hub that the person has not seen
        with pytest.raises(StateDiffers):
            world.order(created=created, is_dry_run=False)
    assert world.number == 1
    world.open()
    with pytest.raises(StateDiffers) as refusal:
        world.open()
    assert (refusal.value.incarnation, refusal.value.hub_created_at) == (2, NEW)


@pytest.mark.parametrize(
    ("anchoring", "anchors"), [("first", [2, 0]), ("latest", [5, 0]), (events(3, 3)[0].enqueued_at, [3, 0])]
)
def test_every_partition_begins_where_the_person_says(world: World, anchoring: Anchoring, anchors: list[int]) -> None:
    world.hub.expire_before("0", 2)
    assert [one.anchor for one in world.order(anchoring=anchoring).beginnings] == anchors
    world.open(anchoring=anchoring)
    assert world.anchors() == anchors


def test_a_hub_that_fits_is_left_alone_unless_it_is_forced(world: World) -> None:
    world.hub.made_at = OLD
    said = world.order()
    assert said.evidence == "partition 0: the hub ends at 4, before the checkpoint at 9", "a failover is evidence"
    world.hub.publish("0", events(5, 20))
    with pytest.raises(HubFits):
        world.order()
    assert world.order(is_forced=True).evidence is None
    assert world.open(is_forced=True).is_opened
    assert world.number == 2


def test_nothing_is_opened_for_a_hub_that_is_recreated_while_it_is_read(world: World) -> None:
    class ChangingHub(MemoryHub):
        def extent(self, partition: object) -> Extent:
            self.made_at += timedelta(seconds=1)
            return super().extent(partition)  # type: ignore[arg-type]

    world.hub = ChangingHub({"0": events(0, 4), "1": []})
    world.hub.made_at = NEW
    for act in (world.order, world.open):
        with pytest.raises(HubUnreachable, match="recreated while it was read: repeat the dry run"):
            act()
    assert world.number == 1


@pytest.mark.parametrize("stands", [True, False])
def test_a_lost_answer_is_settled_by_a_look(world: World, stands: bool) -> None:
    class LosesTheAnswer(Incarnations):
        def open_incarnation(self, opening: Opening) -> None:
            if stands:
                super().open_incarnation(opening)
            raise CommitOutcomeUnknown("the connection was lost")

    world.store = LosesTheAnswer(world.base.database, world.base)
    if stands:
        assert world.open().is_opened
        assert world.base.read_incarnation(STREAM).opened_at == NOON
    else:
        with pytest.raises(CommitOutcomeUnknown):
            world.open()
