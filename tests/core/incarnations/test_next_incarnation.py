"""Promises of every store about incarnations: one at a time is open, and nothing is committed to a closed one."""

from dataclasses import replace
from datetime import timedelta

import pytest

from core.errors import CheckpointConflict, IncarnationConflict, LetterConflict
from core.incarnations.next_incarnation import Incarnations
from core.letters.retry import Keeper, claim_due, retry_chunk
from core.model.events import SequenceNumber
from core.model.letters import LetterOutcome, RetryCommit
from core.model.ports import Clock
from core.settle.partition_store import Partitions
from core.store.database import OneStream, StreamClosed, write
from core.store.memory import Memory
from tests.core.replay.test_task import request
from tests.fakes.builders import (
    EPOCH,
    NOON,
    STREAM,
    FakeClock,
    claim,
    commit,
    hold,
    ids,
    keep_letters,
    partition,
    reading,
    settled,
)
from tests.fakes.faulty_database import NotedDatabase
from tests.fakes.incarnations import open_next, opening
from tests.fakes.kept import Engine
from tests.fakes.plain_transform import PLAIN
from tests.fakes.replaying import opened
from tests.fakes.store import Store

P = partition()
LATEST = NOON + timedelta(hours=2)
CREATED = EPOCH - timedelta(days=3)


def test_a_stream_begins_in_its_first_incarnation_of_a_hub_that_was_never_read(store: Store) -> None:
    found = store.read_incarnation(STREAM)
    assert (found.number, found.hub_created_at, found.opened_by, found.opened_why) == (1, None, None, None)
    assert found == store.read_incarnation(STREAM)


def test_a_reason_that_is_too_long_is_cut_to_what_the_column_holds(store: Store) -> None:
    given = replace(opening(store), opened_by="👩" * 100, opened_why="👩" * 400)
    Incarnations(store.database, Partitions(store.database)).open_incarnation(given)
    found = store.read_incarnation(STREAM)
    assert (found.opened_by, found.opened_why) == ("👩" * 50, "👩" * 200)  # two UTF-16 units each


def test_a_hub_is_adopted_once(store: Store) -> None:
    found = store.read_incarnation(STREAM)
    store.adopt_hub(found, CREATED)
    store.adopt_hub(found, NOON)
    assert store.read_incarnation(STREAM) == replace(found, hub_created_at=CREATED)


def test_the_next_incarnation_is_a_separate_stream_with_its_anchors(store: Store) -> None:
    before = store.read_partition(P)
    store.commit_batch(commit(before, 0, 4, settled({0: [reading()]}, filtered=4)))
    open_next(store, first=7)
    found, state = store.read_incarnation(STREAM), store.read_partition(P)
    assert (found.number, found.hub_created_at, found.opened_at) == (2, NOON, NOON)
    assert (found.opened_by, found.opened_why) == ("ada", "the hub was recreated")
    assert (state.stream_id, state.checkpoint, state.anchor) == (found.stream_id, None, 7)
    assert state.stream_id != before.stream_id
    store.commit_batch(commit(state, 7, 9, settled({}, filtered=3)))
    assert store.read_books()[0].numbers == 3


def test_nothing_is_committed_to_a_closed_stream(store: Store, engine: Engine) -> None:
    fresh, began = store.read_partition(partition("1")), store.read_partition(P)
    store.commit_batch(commit(began, 0, 4))
    began = store.read_partition(P)
    open_next(store)
    for stale in (commit(began, 5, 9), commit(fresh, 0, 4)):
        with pytest.raises(CheckpointConflict):
            store.commit_batch(stale)
    with pytest.raises(CheckpointConflict):
        store.anchor_partition(fresh, SequenceNumber(0), NOON)
    assert [(kept.first, kept.last) for kept in engine.ledger()] == [(0, 4)]


def test_a_retry_that_began_before_the_close_is_not_committed_to_the_closed_stream(store: Store) -> None:
    keep_letters(store, {0: "a", 1: "b"})
    store.claim_letters(claim())
    began = hold(store, [0, 1])
    late = RetryCommit(
        began.state,
        began.claimed_by,
        tuple(LetterOutcome(number, "resolved", why="it was filtered") for number in began.sequence_numbers),
        settled({}, filtered=2),
        "test/1",
        "invocation-1",
        NOON,
    )
    open_next(store)
    with pytest.raises(LetterConflict):
        store.commit_retry(late)


def test_a_process_that_remembers_the_closed_stream_reads_the_new_one_after_its_conflict(store: Store) -> None:
    remembering = store.remembering(timedelta(seconds=5))
    remembering.commit_batch(commit(remembering.read_partition(P), 0, 4))
    open_next(store)
    with pytest.raises(CheckpointConflict):
        remembering.commit_batch(commit(remembering.read_partition(P), 5, 9))
    assert remembering.read_partition(P) == store.read_partition(P)
    assert remembering.read_partition(P).checkpoint is None


def test_a_keeper_that_remembers_the_closed_stream_retries_the_letters_of_the_new_one(store: Store) -> None:
    clock, source = FakeClock(), iter(ids())
    remembering = store.remembering(timedelta(seconds=5), clock.monotonic)
    keeper = Keeper(STREAM, remembering, PLAIN, lambda *_: None, Clock(lambda: NOON, lambda: next(source)))
    remembering.commit_batch(commit(remembering.read_partition(P), 0, 4))
    open_next(store)
    keep_letters(store, {0: "quiet"})  # a gap check without a memory commits it, and no batch of the partition follows
    clock.advance(5)
    (chunk,) = claim_due(keeper)
    report = retry_chunk(chunk, keeper, "retry-1")
    assert (report.resolved, report.lost) == (1, 0)


def keeper_of(store: Store, clock: FakeClock) -> tuple[Store, NotedDatabase]:
    """A keeper with a memory over the same database, and the calls of its rounds."""
    noted = NotedDatabase(store.database)
    return Store(noted, Memory(timedelta(seconds=60), clock.monotonic)), noted


def test_a_round_of_an_idle_keeper_is_one_call_however_long_the_stream_is_known(store: Store) -> None:
    clock = FakeClock()
    keeper, noted = keeper_of(store, clock)
    for _ in range(3):
        noted.calls.clear()
        assert keeper.next_due_at(STREAM, LATEST) is None
        clock.advance(3_600)
    assert noted.calls == ["next_due_at"]


def test_a_round_that_finds_due_letters_claims_them_with_one_more_call(store: Store) -> None:
    clock = FakeClock()
    keeper, noted = keeper_of(store, clock)
    keeper.next_due_at(STREAM, LATEST)
    keep_letters(store, {0: "quiet"})
    clock.advance(3_600)
    noted.calls.clear()
    assert keeper.next_due_at(STREAM, LATEST) == NOON
    assert len(keeper.claim_letters(claim())) == 1
    assert noted.calls == ["next_due_at", "claim_letters"]


def test_the_next_round_of_a_keeper_is_about_the_new_stream(store: Store) -> None:
    clock = FakeClock()
    keeper, noted = keeper_of(store, clock)
    keep_letters(store, {0: "quiet"})
    assert keeper.next_due_at(STREAM, LATEST) == NOON
    old = keeper.open_stream(STREAM)
    open_next(store)
    assert keeper.next_due_at(STREAM, LATEST) is None
    assert noted.calls[-3:] == ["next_due_at", "find_stream", "next_due_at"]
    assert keeper.open_stream(STREAM) == store.open_stream(STREAM) != old
    noted.calls.clear()
    assert keeper.next_due_at(STREAM, LATEST) is None
    assert noted.calls == ["next_due_at"]


def test_an_operator_who_looked_at_the_closed_stream_sees_the_new_one_within_seconds(store: Store) -> None:
    clock = FakeClock()
    store.open_stream(STREAM)
    looking = OneStream(store.database, STREAM, clock.monotonic)
    old = looking.find()
    open_next(store)
    assert looking.find() == old
    clock.advance(5)
    assert looking.find() == store.open_stream(STREAM) != old


def test_of_two_operators_one_opens_the_next_incarnation(store: Store) -> None:
    first, second = opening(store), opening(store, first=5)
    Incarnations(store.database, Partitions(store.database)).open_incarnation(first)
    with pytest.raises(IncarnationConflict):
        Incarnations(store.database, Partitions(store.database)).open_incarnation(second)
    assert store.read_incarnation(STREAM).number == 2
    assert store.read_partition(P).anchor == 0


def test_the_stops_of_the_former_hub_end_and_others_of_the_old_stream_stay(store: Store) -> None:
    old = store.read_partition(P)
    for reason in ("incarnation", "outage"):
        store.note_stop(old, reason, "why", NOON)
    open_next(store)
    assert store.read_partition(P).stops == ()
    found = store.database.ask("read_stops", stream_id=old.stream_id, partition_id="0")
    assert [row[0] for row in found] == ["outage"]


def test_open_replays_of_the_closed_stream_are_cancelled(store: Store) -> None:
    store.commit_batch(commit(store.read_partition(P), 0, 9))
    job = request()
    opened(store, job)
    open_next(store)
    found = store.find_replay(job.order.task_id)
    assert found is not None
    assert (found.task.status, found.task.ended_at) == ("cancelled", NOON)
    assert "next incarnation" in (found.task.fault or "")


def test_a_replay_of_numbers_of_the_closed_stream_is_not_opened(store: Store) -> None:
    remembering = store.remembering(timedelta(seconds=5))
    remembering.commit_batch(commit(remembering.read_partition(P), 0, 9))
    open_next(store)
    job = request()
    with pytest.raises(StreamClosed):
        opened(remembering, job)
    assert store.find_replay(job.order.task_id) is None


def test_a_replay_that_the_next_incarnation_cancels_leaves_no_carried_states(store: Store) -> None:
    store.commit_batch(commit(store.read_partition(P), 0, 9))
    job = request()
    opened(store, job)
    place = {"task_id": str(job.order.task_id), "partition_id": "0"}
    write(store.database, "a replay", "carry_states", **place, carried='[["key", 4, "{}"]]')
    assert store.database.ask("read_carried", **place, keys='[["key"]]') != []
    open_next(store)
    assert store.database.ask("read_carried", **place, keys='[["key"]]') == []
