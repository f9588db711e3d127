"""Locks on the T-SQL server of MSSQL_CONNECTION: which transactions wait, and for which rows."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import replace
from uuid import uuid4

import pytest

from core.audit.task import AuditAsked, audit_request
from core.errors import CheckpointConflict, CommitOutcomeUnknown, StoreUnavailable
from core.letters.listing import LetterChoice
from core.letters.redrive import piece_script
from core.model.commits import ROWS_AT_ONCE, SequenceGap
from core.model.events import Partition, PartitionId, SequenceNumber, Span
from core.model.rows import PlacedRow
from core.store.columns import instant_text, numbers_json, place_of
from core.store.script import Script, Step
from core.store.sqlserver.batch import run_batch
from core.store.sqlserver.connections import LongText, Session, connect
from core.store.sqlserver.schema import in_schema, open_session
from core.tasks.task import TaskOrder
from examples.home_security.transform import Home
from tests.core.letters.test_store import resolved, retry
from tests.core.replay.test_task import JOB, request
from tests.fakes.builders import (
    EPOCH,
    NOON,
    PATIENCE,
    STREAM,
    claim,
    commit,
    event,
    hold,
    keep_letters,
    letter,
    partition,
    settled,
)
from tests.fakes.engines import CONNECTION, SqlServerEngine, shared_schema, under_way
from tests.fakes.kept import Engine
from tests.fakes.replaying import Redriving, opened
from tests.fakes.store import Store
from tests.sql.statements import commit_with
from tests.sql.test_on_server import RETRACTED

pytestmark = pytest.mark.server


@pytest.fixture
def engine() -> Engine:
    """The process's own schema, emptied."""
    return SqlServerEngine.on(CONNECTION)


@pytest.fixture
def stores(engine: Engine) -> Iterator[list[Store]]:
    """The stores of four processes."""
    with ExitStack() as opened:
        yield [opened.enter_context(closing(engine.open().patient(PATIENCE))) for _ in range(4)]


def locked(*numbers: int) -> AbstractContextManager[Session]:
    """Letters whose rows another transaction has locked and changed: a retry that is under way."""
    changed = (
        "UPDATE hubledger.event_hub_dead_letter SET due_at = DATEADD(second, 1, due_at) WHERE sequence_number = {};"
    )
    return under_way(*(changed.format(number) for number in numbers))


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


def test_a_keeper_waits_for_no_locked_letter_and_gets_its_whole_number_beyond_them(hasty: Store) -> None:
    keep_letters(hasty, dict.fromkeys(range(10), "a"))
    with locked(0, 1, 5):
        first = claimed(hasty, most=5)
        assert len(first) == 5 and not {*first} & {0, 1, 5}
        assert claimed(hasty, most=5) == first, "a claim that is sent again gets its own"
        assert sorted([*first, *claimed(hasty, "claim-2")]) == [2, 3, 4, 6, 7, 8, 9]
    assert claimed(hasty, "claim-3") == [0, 1, 5]


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
    with under_way(text, values=given), locked(1):
        assert claimed(hasty) == []  # the freed letter is passed over


def test_a_gap_is_noted_after_the_commit_that_is_under_way_and_not_at_all_when_that_settled_it(
    hasty: Store, engine: Engine
) -> None:
    """A note waits for the checkpoint's lock, which a commit takes first: afterwards the numbers are committed."""
    hasty.commit_batch(commit(hasty.read_partition(partition()), 0, 4))
    state = hasty.read_partition(partition())
    gap = Span(SequenceNumber(5), SequenceNumber(9))
    with under_way("UPDATE hubledger.event_hub_checkpoint SET sequence_number = 9;"), pytest.raises(StoreUnavailable):
        hasty.note_gap(state, gap, EPOCH)
    absent = replace(commit(state, 5, 9, settled({})), absent=5, gaps=[SequenceGap(gap.first, gap.last, "absent")])
    hasty.commit_batch(absent)
    with pytest.raises(CheckpointConflict):
        hasty.note_gap(state, gap, EPOCH)
    assert [(kept.first, kept.last, kept.status) for kept in engine.gaps()] == [(5, 9, "absent")]


OPENING = "SELECT stream_id FROM hubledger.event_stream WITH (UPDLOCK);"


def test_a_replay_is_opened_after_the_opening_that_is_under_way_and_commits_do_not_wait_for_either(
    hasty: Store, engine: Engine
) -> None:
    hasty.commit_batch(commit(hasty.read_partition(partition()), 0, 9))
    with under_way(OPENING):
        with pytest.raises(StoreUnavailable):
            opened(hasty, request(JOB, ids=("1",), dry_run=True))
        hasty.commit_batch(commit(hasty.read_partition(partition()), 10, 19))
        hasty.commit_batch(commit(hasty.read_partition(partition("1")), 0, 9))
    opened(hasty, request(JOB, ids=("1",), dry_run=True))


def test_a_commit_waits_while_its_stream_is_closed_and_is_refused_afterwards(hasty: Store) -> None:
    """A commit that reads a version of the row would not wait, and would land in the closed stream."""
    hasty.commit_batch(commit(hasty.read_partition(partition()), 0, 4))
    state = hasty.read_partition(partition())
    with under_way("UPDATE hubledger.event_stream SET closed_at = SYSUTCDATETIME();") as closing:
        with pytest.raises((StoreUnavailable, CommitOutcomeUnknown)):
            hasty.commit_batch(commit(state, 5, 9))
        closing.run("SET NOCOUNT ON; COMMIT TRANSACTION;")
    with pytest.raises(CheckpointConflict):
        hasty.commit_batch(commit(state, 5, 9))


def test_commits_share_the_row_of_their_stream_with_each_other_and_with_an_opening(hasty: Store) -> None:
    hasty.commit_batch(commit(hasty.read_partition(partition()), 0, 4))
    for how in (OPENING, OPENING.replace("UPDLOCK", "REPEATABLEREAD")):
        with under_way(how):
            state = hasty.read_partition(partition())
            hasty.commit_batch(commit(state, state.next_number, state.next_number + 4))


def test_an_audit_is_opened_after_the_piece_of_a_purge_that_is_under_way(hasty: Store) -> None:
    hasty.commit_batch(commit(hasty.read_partition(partition()), 0, 4))
    order = TaskOrder(uuid4(), hasty.open_stream(STREAM), "ann", "", NOON)
    asked = audit_request(order, AuditAsked(), (partition().partition_id,))
    with under_way(OPENING), pytest.raises(StoreUnavailable):
        hasty.tasks.open(asked)
    hasty.tasks.open(asked)
    assert hasty.tasks.find(order.task_id) is not None


def test_each_process_that_stops_a_partition_is_counted(stores: list[Store]) -> None:
    """Also where an update passes over the row that another process is inserting."""
    for at in range(10):
        state = stores[0].read_partition(partition(str(at)))
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda store, of=state: store.note_stop(of, "outage", "all fail", NOON), stores))
        assert [one.attempts for one in stores[0].read_partition(partition(str(at))).stops] == [4]


def test_a_letter_that_is_held_is_begun_by_one_chunk(stores: list[Store]) -> None:
    keep_letters(stores[0], dict.fromkeys(range(50), "a"))
    claimed(stores[0])
    with ThreadPoolExecutor(4) as pool:
        begun = pool.map(lambda at: len(stores[at].begin_chunk(hold(stores[at], range(50)), f"run-{at}")), range(4))
        assert sorted(begun) == [0, 0, 0, 50]


ATTEMPTS = """
DECLARE @stream_id int = ?, @partition_id varchar(40) = ?, @letters nvarchar(max) = ?;
INSERT INTO hubledger.dead_letter_attempt (stream_id, partition_id, sequence_number, attempt, touched_by, kind, status,
       error, transform_version, done_by, done_at)
SELECT @stream_id, @partition_id, l.sequence_number, a.attempt, N'a claim', 'retry', 'waiting', REPLICATE(N'x', 2000),
       N'test/1', N'test', SYSUTCDATETIME()
  FROM OPENJSON(@letters) WITH (sequence_number bigint '$') AS l
 CROSS JOIN (VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS a (attempt);
"""


def running(script: Script) -> AbstractContextManager[Session]:
    """A transaction that has run all steps of a script, and has not ended."""
    text, given = run_batch(script, rehearse=False)
    return under_way(text, values=given)


def test_a_batch_a_walk_and_a_keeper_do_not_wait_for_a_piece_of_a_redrive(hasty: Store) -> None:
    """Six exhausted letters of partition 0 are retried in pieces of three."""
    keep_letters(hasty, dict.fromkeys(range(6), "a"), status="exhausted", due_at=None)
    desk = Redriving(hasty)
    desk.clock.advance(3_600)
    job = desk.ask(6, LetterChoice(status="exhausted"), rate=6)
    desk.move(job, "begin")
    job = desk.now(job)
    walked = hasty.walk(job)
    assert walked is not None
    keep_letters(hasty, {10: "a"})
    with running(piece_script(job, walked, desk.clock.now())):
        assert [one.position.sequence_number for one in hasty.claim_letters(claim())] == [10]
        failed = settled({}, letters=[letter(event(11))])
        hasty.commit_batch(commit(hasty.read_partition(partition()), 11, 11, failed))
        again = hasty.walk(job)
        assert again is not None and again.numbers == (0, 1, 2)
    assert desk.slice(job).is_over
    assert (desk.now(job).task.status, desk.now(job).moved, desk.now(job).unmoved) == ("done", 6, 0)


def test_a_whole_piece_of_a_purge_locks_its_rows_and_not_their_table(hasty: Store, server_session: Session) -> None:
    text = in_schema(f"SET LOCK_TIMEOUT 2000; {RETRACTED}", shared_schema())
    places = [place_of(hasty.read_partition(partition(id))) for id in "01"]
    server_session.run(text, [*places[0].values(), LongText(json.dumps([*range(ROWS_AT_ONCE)]))])
    piece = {**places[0], "last_commit": 2, "most": ROWS_AT_ONCE}
    with running(Script("a purge", (Step("delete_retracted", piece, expect=ROWS_AT_ONCE),))):
        server_session.run(text, [*places[1].values(), LongText("[0]")])


def test_the_attempts_of_a_whole_piece_of_letters_are_locked_and_not_their_table(
    hasty: Store, server_session: Session
) -> None:
    """Each attempt has an error so long that its page holds no second one."""
    text = in_schema(f"SET NOCOUNT ON; SET LOCK_TIMEOUT 2000; {ATTEMPTS}", shared_schema())
    places = [place_of(hasty.read_partition(partition(id))) for id in "01"]
    numbers = [*range(ROWS_AT_ONCE // 9)]
    server_session.run(text, [*places[0].values(), LongText(json.dumps(numbers))])
    letters = {**places[0], "sequence_numbers": numbers_json([SequenceNumber(number) for number in numbers])}
    with running(Script("a purge", (Step("delete_attempts", letters, counts="attempts"),))):
        server_session.run(text, [*places[1].values(), LongText("[0]")])


COMPRESSED = """
SELECT OBJECT_NAME(p.object_id) FROM sys.partitions AS p
 WHERE OBJECT_SCHEMA_NAME(p.object_id) = ? AND p.index_id = 1 AND p.data_compression_desc = 'PAGE'
 ORDER BY 1;
"""


def commit_homes(store: Store, partition_id: str, *home_ids: str) -> None:
    """Write these homes as the first commit of a partition."""
    homes: list[PlacedRow] = [(7, place, Home(home_id, "Etc/UTC", True)) for place, home_id in enumerate(home_ids)]
    partition = Partition("namespace/telemetry", "hubledger", PartitionId(partition_id))
    store.commit_batch(replace(commit_with({Home: homes}), state=store.read_partition(partition)))


def test_the_appended_tables_and_the_ledger_are_compressed_by_page(server_session: Session) -> None:
    ((*found,),) = server_session.run(COMPRESSED, [shared_schema()])
    assert [name for (name,) in found] == ["batch_ledger", "flight_change", "home_alert", "sensor_reading"]


@pytest.mark.parametrize("home_ids", [("home-99",), ("home-5", "home-7")], ids=["new", "changed"])
def test_a_state_of_a_small_table_waits_for_no_state_of_a_different_partition(
    hasty: Store, home_ids: tuple[str, ...]
) -> None:
    commit_homes(hasty, "0", *(f"home-{number}" for number in range(20)))
    with under_way("UPDATE hubledger.home SET armed = armed WHERE home_id = N'home-3';"):
        commit_homes(hasty, "1", *home_ids)
