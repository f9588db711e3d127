"""Locks of letters and gaps on the T-SQL server of MSSQL_CONNECTION: which transactions wait."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import count
from uuid import uuid4

import pytest

from core.audit.task import AuditAsked, audit_request
from core.errors import CheckpointConflict, CommitOutcomeUnknown, StoreUnavailable
from core.model.commits import SequenceGap
from core.model.events import SequenceNumber, Span
from core.store.columns import instant_text
from core.store.script import Script, Step
from core.store.sqlserver.batch import run_batch
from core.store.sqlserver.connections import Deadlines, Session, connect
from core.store.sqlserver.database import SqlServerDatabase
from core.store.sqlserver.schema import in_schema, open_session
from core.tasks.task import TaskOrder
from tests.core.letters.test_store import resolved, retry
from tests.core.replay.test_open import request
from tests.fakes.builders import EPOCH, NOON, PATIENCE, STREAM, claim, commit, hold, keep_letters, partition, settled
from tests.fakes.engines import CONNECTION
from tests.fakes.kept import Engine
from tests.fakes.replaying import opened
from tests.fakes.server_engine import SqlServerEngine
from tests.fakes.server_schema import shared_schema
from tests.fakes.store import Store

pytestmark = pytest.mark.server

SOON = Deadlines(statement=timedelta(seconds=5))  # a statement that waits for a lock ends with an error


@pytest.fixture
def engine() -> Engine:
    """The process's own schema, emptied."""
    return SqlServerEngine.on(CONNECTION)


@pytest.fixture
def hasty(engine: Engine) -> Iterator[Store]:
    """A store that waits for no lock longer than its deadline."""
    store = Store(SqlServerDatabase(CONNECTION, SOON, schema=shared_schema(CONNECTION)))
    yield store
    store.close()


@contextmanager
def locked(*numbers: int) -> Iterator[Session]:
    """Letters whose rows another transaction has locked and changed: a retry that is under way."""
    session, schema = connect(CONNECTION), shared_schema(CONNECTION)
    try:
        session.run("SET NOCOUNT ON; BEGIN TRANSACTION;")
        for number in numbers:
            session.run(
                f"SET NOCOUNT ON; UPDATE {schema}.event_hub_dead_letter SET due_at = DATEADD(second, 1, due_at)"
                f" WHERE sequence_number = {number};"
            )
        yield session
    finally:
        session.run("SET NOCOUNT ON; IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;")
        session.close()


def test_a_session_keeps_its_wait_for_locks_and_loses_the_priority_of_a_batch_with_values() -> None:
    session = connect(CONNECTION)
    try:
        open_session(session)
        inside = "SELECT s.deadlock_priority FROM sys.dm_exec_sessions AS s WHERE s.session_id = @@SPID"
        given = session.run(f"SET NOCOUNT ON; SET DEADLOCK_PRIORITY LOW; DECLARE @a int = ?; {inside};", [1])
        after = session.run(f"SET NOCOUNT ON; {inside}; SELECT @@LOCK_TIMEOUT;")
    finally:
        session.close()
    assert (given, after) == ([[(-5,)]], [[(0,)], [(10_000,)]])


def claimed(store: Store, by: str = "claim-1", most: int = 1_000) -> list[int]:
    return sorted(one.position.sequence_number for one in store.claim_letters(claim(by, most=most)))


def test_a_keeper_passes_over_letters_that_are_locked_and_waits_for_none(hasty: Store) -> None:
    keep_letters(hasty, dict.fromkeys(range(10), "a"))
    with locked(0, 1, 5):
        assert claimed(hasty) == [2, 3, 4, 6, 7, 8, 9]
    assert claimed(hasty, "claim-2") == [0, 1, 5]


def test_a_keeper_gets_its_whole_number_beyond_letters_that_are_locked(hasty: Store) -> None:
    keep_letters(hasty, dict.fromkeys(range(10), "a"))
    with locked(0, 1, 2):
        assert len(claimed(hasty, most=5)) == 5


def test_a_claim_that_is_sent_again_while_others_are_locked_gets_its_own(hasty: Store) -> None:
    keep_letters(hasty, dict.fromkeys(range(6), "a"))
    first = claimed(hasty, most=3)
    with locked(*sorted({*range(6)} - {*first})):
        assert claimed(hasty, most=3) == first


def test_a_retry_does_not_wait_for_the_letters_of_a_different_partition_that_are_retried(hasty: Store) -> None:
    keep_letters(hasty, {0: "a", 1: "a"})
    keep_letters(hasty, {10: "a", 11: "a"}, "1")
    assert len(claimed(hasty)) == 4
    with locked(10, 11):
        hasty.commit_retry(retry(hasty, [resolved(0), resolved(1)]))


def test_held_letters_that_are_locked_are_freed_later(hasty: Store) -> None:
    keep_letters(hasty, {0: "a"}, status="held")
    keep_letters(hasty, {1: "a"}, status="held")
    with locked(0, 1):
        hasty.free_letters(STREAM, "claim-1", NOON)
    hasty.free_letters(STREAM, "claim-1", NOON)
    assert len(claimed(hasty)) == 1


def test_a_freeing_keeps_no_letter_that_stays_held(hasty: Store) -> None:
    """The first letter of the key is freed, and the second was looked at: a retry or a move need not wait for it."""
    keep_letters(hasty, {0: "a", 1: "a"}, status="held")
    values = {"stream_id": hasty.open_stream(STREAM), "freed_by": "f", "freed_at": instant_text(NOON), "most": 9}
    text, given = run_batch(Script("freeing", (Step("free_without_order", values),)), rehearse=False)
    session, schema = connect(CONNECTION), shared_schema(CONNECTION)
    try:
        session.run("SET NOCOUNT ON; BEGIN TRANSACTION;")
        session.run(in_schema(text, schema), given)
        with locked(1):
            assert claimed(hasty) == []  # the freed letter is passed over
    finally:
        session.run("SET NOCOUNT ON; IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;")
        session.close()


def test_keepers_side_by_side_hold_each_letter_once_while_others_are_retried(engine: Engine) -> None:
    """Any deadlock that is left is retried: no call fails, and every letter is settled once."""
    stores = [engine.open().patient(PATIENCE) for _ in range(4)]
    keep_letters(stores[0], dict.fromkeys(range(400), "a"))
    turns = count()

    def keep(store: Store) -> list[int]:
        settled_here: list[int] = []
        for turn in turns:
            by = f"claim-{turn}"
            numbers = claimed(store, by, most=20)
            if not numbers:
                return settled_here
            for number in numbers:
                store.commit_retry(retry(store, [resolved(number)], by=by))
            settled_here += numbers
        return settled_here

    with ThreadPoolExecutor(4) as pool:
        kept = [number for numbers in pool.map(keep, stores) for number in numbers]
    assert sorted(kept) == list(range(400))
    assert {one.status for one in engine.letters()} == {"resolved"}
    for store in stores:
        store.close()


def test_a_gap_is_noted_after_the_commit_that_is_under_way_and_not_at_all_when_that_settled_it(
    hasty: Store, engine: Engine
) -> None:
    """A note waits for the checkpoint's lock, which a commit takes first: afterwards the numbers are committed."""
    hasty.commit_batch(commit(hasty.read_partition(partition()), 0, 4))
    state = hasty.read_partition(partition())
    schema, gap = shared_schema(CONNECTION), Span(SequenceNumber(5), SequenceNumber(9))
    session = connect(CONNECTION)
    session.run(f"SET NOCOUNT ON; BEGIN TRANSACTION; UPDATE {schema}.event_hub_checkpoint SET sequence_number = 9;")
    with pytest.raises(StoreUnavailable):
        hasty.note_gap(state, gap, EPOCH)
    session.run("SET NOCOUNT ON; ROLLBACK TRANSACTION;")
    session.close()
    absent = replace(commit(state, 5, 9, settled({})), absent=5, gaps=[SequenceGap(gap.first, gap.last, "absent")])
    hasty.commit_batch(absent)
    with pytest.raises(CheckpointConflict):
        hasty.note_gap(state, gap, EPOCH)
    assert [(kept.first, kept.last, kept.status) for kept in engine.gaps()] == [(5, 9, "absent")]


def test_a_replay_is_opened_after_the_opening_that_is_under_way_and_commits_do_not_wait_for_either(
    hasty: Store, engine: Engine
) -> None:
    hasty.commit_batch(commit(hasty.read_partition(partition()), 0, 9))
    session, schema = connect(CONNECTION), shared_schema(CONNECTION)
    session.run(f"SET NOCOUNT ON; BEGIN TRANSACTION; SELECT stream_id FROM {schema}.event_stream WITH (UPDLOCK);")
    with pytest.raises(StoreUnavailable):
        opened(hasty, request(1, partition_id="1"))
    hasty.commit_batch(commit(hasty.read_partition(partition()), 10, 19))
    hasty.commit_batch(commit(hasty.read_partition(partition("1")), 0, 9))
    session.run("SET NOCOUNT ON; ROLLBACK TRANSACTION;")
    session.close()
    opened(hasty, request(1, partition_id="1"))


@contextmanager
def stream_locked(how: str) -> Iterator[Session]:
    """A transaction that holds the row of the stream; `how` is a statement with a place for the name of its table."""
    session = connect(CONNECTION)
    try:
        session.run(f"SET NOCOUNT ON; BEGIN TRANSACTION; {how.format(f'{shared_schema(CONNECTION)}.event_stream')};")
        yield session
    finally:
        session.run("SET NOCOUNT ON; IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;")
        session.close()


def test_a_commit_waits_while_its_stream_is_closed_and_is_refused_afterwards(hasty: Store) -> None:
    """A commit that reads a version of the row would not wait, and would land in the closed stream."""
    hasty.commit_batch(commit(hasty.read_partition(partition()), 0, 4))
    state = hasty.read_partition(partition())
    with stream_locked("UPDATE {} SET closed_at = SYSUTCDATETIME()") as closing:
        with pytest.raises((StoreUnavailable, CommitOutcomeUnknown)):
            hasty.commit_batch(commit(state, 5, 9))
        closing.run("SET NOCOUNT ON; COMMIT TRANSACTION;")
    with pytest.raises(CheckpointConflict):
        hasty.commit_batch(commit(state, 5, 9))


def test_commits_share_the_row_of_their_stream_with_each_other_and_with_an_opening(hasty: Store) -> None:
    hasty.commit_batch(commit(hasty.read_partition(partition()), 0, 4))
    for how in ("SELECT stream_id FROM {} WITH (REPEATABLEREAD)", "SELECT stream_id FROM {} WITH (UPDLOCK)"):
        with stream_locked(how):
            state = hasty.read_partition(partition())
            hasty.commit_batch(commit(state, state.next_number, state.next_number + 4))


def test_an_audit_is_opened_after_the_piece_of_a_purge_that_is_under_way(hasty: Store) -> None:
    hasty.commit_batch(commit(hasty.read_partition(partition()), 0, 4))
    order = TaskOrder(uuid4(), hasty.open_stream(STREAM), "ann", "", NOON)
    asked = audit_request(order, AuditAsked(), (partition().partition_id,))
    with stream_locked("SELECT stream_id FROM {} WITH (UPDLOCK)"), pytest.raises(StoreUnavailable):
        hasty.tasks.open(asked)
    hasty.tasks.open(asked)
    assert hasty.tasks.find(order.task_id) is not None


def test_each_process_that_stops_a_partition_is_counted(engine: Engine) -> None:
    """Also where an update passes over the row that another process is inserting."""
    stores = [engine.open().patient(PATIENCE) for _ in range(4)]
    for at in range(10):
        state = stores[0].read_partition(partition(str(at)))
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda store, of=state: store.note_stop(of, "outage", "all fail", NOON), stores))
        assert [one.attempts for one in stores[0].read_partition(partition(str(at))).stops] == [4]
    for store in stores:
        store.close()


def test_a_letter_that_is_held_is_begun_by_one_chunk(engine: Engine) -> None:
    stores = [engine.open().patient(PATIENCE) for _ in range(4)]
    keep_letters(stores[0], dict.fromkeys(range(50), "a"))
    claimed(stores[0])
    with ThreadPoolExecutor(4) as pool:
        begun = pool.map(lambda at: len(stores[at].begin_chunk(hold(stores[at], range(50)), f"run-{at}")), range(4))
        assert sorted(begun) == [0, 0, 0, 50]
    for store in stores:
        store.close()
