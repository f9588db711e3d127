"""Redrives and purges on the T-SQL server of MSSQL_CONNECTION: what waits while one of their pieces is under way."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from core.letters.listing import LetterChoice
from core.letters.redrive import Redrive, piece_script
from core.model.commits import ROWS_AT_ONCE
from core.model.events import SequenceNumber
from core.store.columns import numbers_json, place_of
from core.store.script import Script, Step
from core.store.sqlserver.batch import run_batch
from core.store.sqlserver.connections import Deadlines, LongText, Session, connect
from core.store.sqlserver.database import SqlServerDatabase
from core.store.sqlserver.schema import in_schema
from tests.fakes.builders import claim, commit, event, keep_letters, letter, partition, settled
from tests.fakes.engines import CONNECTION
from tests.fakes.redriving import Redriving
from tests.fakes.server_schema import shared_schema
from tests.fakes.store import Store
from tests.sql.test_on_server import RETRACTED

pytestmark = pytest.mark.server

SOON = Deadlines(statement=timedelta(seconds=5))  # a statement that waits for a lock ends with an error


ATTEMPTS = """
DECLARE @stream_id int = ?, @partition_id varchar(40) = ?, @letters nvarchar(max) = ?;
INSERT INTO hubledger.dead_letter_attempt (stream_id, partition_id, sequence_number, attempt, touched_by, kind, status,
       error, transform_version, done_by, done_at)
SELECT @stream_id, @partition_id, l.sequence_number, a.attempt, N'a claim', 'retry', 'waiting', REPLICATE(N'x', 2000),
       N'test/1', N'test', SYSUTCDATETIME()
  FROM OPENJSON(@letters) WITH (sequence_number bigint '$') AS l
 CROSS JOIN (VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS a (attempt);
"""


@pytest.fixture
def hasty(server_session: Session) -> Iterator[Store]:
    """A store that waits for no lock longer than its deadline."""
    store = Store(SqlServerDatabase(CONNECTION, SOON, schema=shared_schema(CONNECTION)))
    yield store
    store.close()


@contextmanager
def under_way(script: Script) -> Iterator[None]:
    """A transaction that has run all its steps and has not ended; it is rolled back."""
    session = connect(CONNECTION)
    text, given = run_batch(script, rehearse=False)
    try:
        session.run("SET NOCOUNT ON; BEGIN TRANSACTION;")  # the batch commits into this one
        session.run(in_schema(text, shared_schema(CONNECTION)), given)
        yield
    finally:
        session.run("SET NOCOUNT ON; IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;")
        session.close()


@pytest.fixture
def desk(hasty: Store) -> Redriving:
    """Six exhausted letters of partition 0."""
    keep_letters(hasty, dict.fromkeys(range(6), "a"), status="exhausted", due_at=None)
    made = Redriving(hasty)
    made.clock.advance(3_600)
    return made


def begun(desk: Redriving) -> Redrive:
    """Return a running retry of the six letters, in pieces of three."""
    job = desk.ask(6, LetterChoice(status="exhausted"), rate=6)
    desk.move(job, "begin")
    return desk.now(job)


def first_piece(desk: Redriving, job: Redrive) -> Script:
    walked = desk.store.walk(job)
    assert walked is not None
    return piece_script(job, walked, desk.clock.now())


def test_a_batch_and_a_walk_do_not_wait_for_a_piece_of_a_redrive(desk: Redriving) -> None:
    job = begun(desk)
    with under_way(first_piece(desk, job)):
        failed = settled({}, letters=[letter(event(6))])
        desk.store.commit_batch(commit(desk.store.read_partition(partition()), 6, 6, failed))
        walked = desk.store.walk(job)
        assert walked is not None
        assert walked.numbers == (0, 1, 2)
    assert desk.slice(job).is_over
    assert (desk.now(job).task.status, desk.now(job).moved, desk.now(job).unmoved) == ("done", 6, 0)


def test_a_keeper_passes_over_the_letters_of_a_piece_that_is_under_way(desk: Redriving) -> None:
    job = begun(desk)
    keep_letters(desk.store, {10: "a"})
    with under_way(first_piece(desk, job)):
        assert [one.position.sequence_number for one in desk.store.claim_letters(claim())] == [10]


def test_a_whole_piece_of_a_purge_locks_its_rows_and_not_their_table(hasty: Store, server_session: Session) -> None:
    text = in_schema(f"SET LOCK_TIMEOUT 2000; {RETRACTED}", shared_schema(CONNECTION))
    places = [place_of(hasty.read_partition(partition(id))) for id in "01"]
    server_session.run(text, [*places[0].values(), LongText(json.dumps([*range(ROWS_AT_ONCE)]))])
    piece = {**places[0], "last_commit": 2, "most": ROWS_AT_ONCE}
    with under_way(Script("a purge", (Step("delete_retracted", piece, expect=ROWS_AT_ONCE),))):
        server_session.run(text, [*places[1].values(), LongText("[0]")])


def test_the_attempts_of_a_whole_piece_of_letters_are_locked_and_not_their_table(
    hasty: Store, server_session: Session
) -> None:
    """Each attempt has an error so long that its page holds no second one."""
    text = in_schema(f"SET NOCOUNT ON; SET LOCK_TIMEOUT 2000; {ATTEMPTS}", shared_schema(CONNECTION))
    places = [place_of(hasty.read_partition(partition(id))) for id in "01"]
    numbers = [*range(ROWS_AT_ONCE // 9)]
    server_session.run(text, [*places[0].values(), LongText(json.dumps(numbers))])
    letters = {**places[0], "sequence_numbers": numbers_json([SequenceNumber(number) for number in numbers])}
    with under_way(Script("a purge", (Step("delete_attempts", letters, counts="attempts"),))):
        server_session.run(text, [*places[1].values(), LongText("[0]")])
