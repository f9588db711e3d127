"""Promises of every store about erasures: a subject is gone from all tables, the ledger stays provable, and nothing
brings the subject back."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from core.erasure.erasure import asked_of, erased_by
from core.errors import TaskOverlap
from core.ingest.ingest import ingest_batch
from core.ledger.explain import Explanations, explain
from core.letters.retry import claim_due, retry_chunk
from core.model.events import Event, PartitionId, SequenceNumber
from core.model.letters import LetterMove
from core.model.policies import SubjectKey
from core.model.rows import References, Row
from core.replay.request import ReplayOrder
from core.settle.erased_subjects import ErasureKeyMissing
from core.tasks.run import open_parts, work_on
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.fakes.builders import batch, partition
from tests.fakes.child_tries import ChildTries
from tests.fakes.engines import SqliteEngine
from tests.fakes.erasing import ErasingWorld, events_of
from tests.fakes.kept import Engine
from tests.fakes.plain_transform import ROW_CLASSES, transform
from tests.fakes.replaying import changed, order, request_replay
from tests.fakes.store import Store

N = SequenceNumber
GONE, STAYS = "home-7", "home-70"  # the second name begins with the first
LOG = (
    f"home {GONE} 1", f"home {STAYS} 0", f"double {GONE}", f"reading {STAYS}", f"poison {GONE}", f"look {GONE}",
    f"bug {STAYS}", f"reading {GONE}", f"look {STAYS}", f"bug {GONE}", f"double {STAYS}",
)  # fmt: skip


@pytest.fixture
def world(store: Store) -> ErasingWorld:
    logs = {"0": events_of(*LOG), "1": events_of(f"reading {STAYS}", f"double {GONE}", f"bug {GONE}")}
    return ErasingWorld(store, logs)


def rows_of(engine: Engine, name: str) -> list[object]:
    kept = [one for each in (SensorReading, HomeAlert, Home) for one in engine.rows(each)]
    return [one for one in kept if one.row.home_id == name]  # type: ignore[attr-defined]


def bytes_of(place: Path) -> bytes:
    """Return the whole database as bytes, without pages that it no longer uses."""
    with closing(sqlite3.connect(place, isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("VACUUM")
    return place.read_bytes()


def test_a_subject_is_gone_from_every_table_and_the_others_stay(world: ErasingWorld, engine: Engine) -> None:
    others, letters = rows_of(engine, STAYS), [one for one in engine.letters() if one.partition_key == STAYS]
    task = world.erase(GONE)
    assert (task.status, task.fault) == ("done", None)
    assert rows_of(engine, GONE) == []
    assert rows_of(engine, STAYS) == others
    assert [one for one in engine.letters() if one.partition_key == STAYS] == letters
    blanked = [one for one in engine.letters() if one.error == "erased"]
    assert [(one.partition_id, one.sequence_number, one.status, one.body, one.settled_why) for one in blanked] == [
        ("0", 4, "discarded", b"", "erased"),
        ("0", 9, "discarded", b"", "erased"),
        ("1", 2, "discarded", b"", "erased"),
    ]
    assert {(one.partition_key, *one.properties) for one in blanked} == {(None,)}
    figures = erased_by(task)
    assert dict(figures.rows) == {"home": 1, "sensor_reading": 4, "home_alert": 2}
    assert (figures.letters, figures.row_count) == (3, 7)


def test_the_store_has_none_of_its_bytes(tmp_path: Path) -> None:
    """The whole file is searched, after a checkpoint and VACUUM."""
    engine = SqliteEngine(tmp_path / "store.db")
    log = [body.replace(STAYS, "other").replace(GONE, "erased-person") for body in LOG]
    world = ErasingWorld(engine.open(), {"0": events_of(*log)})
    world.transform = changed(transform)
    world.replay(order(["0"], dry_run=True))
    world.replay(order(["0"]))
    assert bytes_of(engine.path).count(b"erased-person") > 20
    world.erase("erased-person")
    assert world.faults() == []
    world.store.close()
    assert b"erased-person" not in bytes_of(engine.path)
    assert b"other" in bytes_of(engine.path)


def test_the_ledger_stays_balanced(world: ErasingWorld, engine: Engine) -> None:
    before = engine.ledger()
    world.numbers = 100
    assert world.faults() == []
    world.erase(GONE)
    assert world.faults() == []
    assert engine.ledger() == before  # numbers, outcomes and totals


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE retracted_row SET sequence_number = sequence_number + 100, ordinal = ordinal + 7,"
        " table_name = 'home_alert'"
    ],
)
def test_no_audit_names_a_mark_or_a_place_of_an_erasure(world: ErasingWorld, engine: Engine, statement: str) -> None:
    world.erase(GONE)
    engine.by_hand(statement)
    assert world.faults() == []


@pytest.mark.parametrize("version", ["plain/1", "plain/2"])
def test_a_full_replay_brings_nothing_back(world: ErasingWorld, engine: Engine, version: str) -> None:
    world.erase(GONE)
    others = [one.row for one in rows_of(engine, STAYS)]  # type: ignore[attr-defined]
    world.transform = changed(transform, version)
    job = world.replay()
    assert job.task.status == "done"
    assert rows_of(engine, GONE) == []
    assert [one.row for one in rows_of(engine, STAYS)] == others  # type: ignore[attr-defined]
    assert (job.counts.filtered, job.counts.dead_lettered) == (8, 1)
    assert world.faults() == []


def test_the_ledger_says_what_became_of_an_erased_number(world: ErasingWorld) -> None:
    world.erase(GONE)
    world.replay()
    store = Explanations(world.stream, ROW_CLASSES)
    told = {number: explain(PartitionId("0"), N(number), store) for number in (2, 3, 4)}
    outcomes = {number: one and one.outcome for number, one in told.items()}
    assert outcomes == {2: "erased", 3: "written", 4: "erased"}
    assert "An erasure took away 2 rows of it" in str(told[2])


def test_a_dry_run_of_a_replay_shows_nothing_of_it(world: ErasingWorld) -> None:
    world.erase(GONE)
    job = world.replay(order(dry_run=True))
    diffs = world.store.read_replay_diffs(job.task.task_id, None, 100)
    assert [one.diff for one in diffs if GONE in one.diff.replace(STAYS, "")] == []


def test_what_replays_took_away_is_blanked_too(world: ErasingWorld, engine: Engine) -> None:
    world.transform = changed(transform)
    world.replay()
    task = world.erase(GONE)
    assert erased_by(task).retracted == 7
    assert world.faults() == []
    job = world.replay()
    assert job.task.status == "done"
    assert world.faults() == []


def test_a_letter_that_is_being_retried_is_taken_from_its_keeper(world: ErasingWorld, engine: Engine) -> None:
    world.clock.advance(3600)
    chunks = claim_due(world.keeper)
    assert chunks
    world.transform = changed(lambda event, references: [SensorReading(GONE, "s", "late", None, 1, event.enqueued_at)])
    world.erase(GONE)
    for chunk in chunks:
        retry_chunk(chunk, world.keeper, "invocation-2")
    assert rows_of(engine, GONE) == []
    assert world.faults() == []


def test_a_retry_makes_no_row_of_an_erased_subject(world: ErasingWorld, engine: Engine) -> None:
    """The letter does not name the subject; only the rows that it becomes do."""
    world.erase(GONE)
    world.clock.advance(3600)
    world.transform = changed(lambda event, references: [SensorReading(GONE, "s", "late", None, 1, event.enqueued_at)])
    for chunk in claim_due(world.keeper):
        retry_chunk(chunk, world.keeper, "invocation-2")
    (resolved,) = [one for one in engine.letters() if one.status == "resolved"]
    assert resolved.sequence_number == 6
    assert rows_of(engine, GONE) == []


def test_a_retry_in_a_child_makes_no_row_of_an_erased_subject_either(world: ErasingWorld, engine: Engine) -> None:
    world.erase(GONE)
    world.transform = changed(lambda event, references: [SensorReading(GONE, "s", "late", None, 1, event.enqueued_at)])
    children = ChildTries()
    for _ in range(2):  # the first claim is lost
        world.clock.advance(3600)
        chunks = claim_due(world.keeper)
    keeper = replace(world.keeper, journal=children.journal(world.store, world.own))
    for chunk in chunks:
        retry_chunk(chunk, keeper, "invocation-2")
    assert [6] in children.tried
    assert 6 in [one.sequence_number for one in engine.letters() if one.status == "resolved"]
    assert rows_of(engine, GONE) == []


def test_an_event_of_an_erased_partition_key_makes_no_row_at_all(world: ErasingWorld, engine: Engine) -> None:
    """Not even one that names a different subject: the key is the subject of the event."""
    world.erase(GONE)
    world.transform = changed(lambda event, references: [SensorReading("odd", "s", "late", None, 1, event.enqueued_at)])
    world.replay(order(["0"]))
    assert [one.sequence_number for one in rows_of(engine, "odd")] == [1, 3, 6, 8, 10]  # type: ignore[attr-defined]


def fails_with_its_name(event: Event, references: References) -> list[Row]:
    raise ValueError(f"home {event.partition_key} is odd")


def test_errors_of_earlier_attempts_are_blanked_too(world: ErasingWorld, engine: Engine) -> None:
    world.clock.advance(3600)
    world.transform = changed(fails_with_its_name)
    for chunk in claim_due(world.keeper):
        retry_chunk(chunk, world.keeper, "invocation-2")
    assert [one for one in engine.attempts() if f"home {GONE} is" in str(one.error)] != []
    world.erase(GONE)
    assert {one.error for one in engine.attempts()} == {"erased", f"home {STAYS} is odd"}
    assert world.faults() == []


def test_why_people_moved_its_letters_is_blanked_too(world: ErasingWorld, engine: Engine) -> None:
    now = world.clock.now()
    world.store.move_letters(
        LetterMove("discard", partition(), (N(4),), "move-1", now, now, "somebody", f"{GONE} asked for it")
    )
    world.erase(GONE)
    told = [str(one.why) for one in engine.attempts()] + [str(one.settled_why) for one in engine.letters()]
    assert "erased" in told
    assert [why for why in told if GONE in why] == []


def test_a_new_event_after_the_erasure_is_a_new_event(world: ErasingWorld, engine: Engine) -> None:
    world.erase(GONE)
    later = events_of(f"reading {GONE}", first=len(LOG))
    world.hub.publish("0", later)
    ingest_batch(batch(later, partition("0")), world.ingesting)
    assert len(rows_of(engine, GONE)) == 1
    world.replay()
    assert len(rows_of(engine, GONE)) == 1
    world.erase(GONE)
    assert rows_of(engine, GONE) == []


def test_the_last_events_of_the_hub_are_waited_for(world: ErasingWorld, engine: Engine) -> None:
    later = events_of(f"double {GONE}", f"double {STAYS}", first=len(LOG))
    world.hub.publish("0", later)
    task = world.drive(world.ask_erasure(GONE), rounds=2)
    assert task.status == "running"
    ingest_batch(batch(later, partition("0")), world.ingesting)
    assert world.drive(task).status == "done"
    assert rows_of(engine, GONE) == []
    assert world.faults() == []


def test_a_dry_run_counts_and_changes_nothing(world: ErasingWorld, engine: Engine) -> None:
    before = [engine.rows(each) for each in (SensorReading, HomeAlert, Home)], engine.letters(), engine.ledger()
    task = world.erase(GONE, dry_run=True)
    assert task.status == "done"
    assert (erased_by(task).row_count, erased_by(task).letters) == (7, 3)
    assert before == (
        [engine.rows(each) for each in (SensorReading, HomeAlert, Home)],
        engine.letters(),
        engine.ledger(),
    )
    assert world.store.database.ask("read_erased_subjects", stream_id=1, partition_id="0") == []
    assert world.asked_of_lake == []


def test_an_unknown_subject_is_a_report_with_zeros(world: ErasingWorld) -> None:
    task = world.erase("nobody")
    assert (task.status, erased_by(task).row_count, erased_by(task).letters) == ("done", 0, 0)


def test_the_values_are_stored_no_longer_than_the_task_is_open(world: ErasingWorld) -> None:
    task = world.ask_erasure(GONE)
    assert asked_of(task).subjects == (GONE,)
    assert (asked_of(world.drive(task)).subjects, asked_of(world.task(task)).count) == ((), 1)


def test_more_rows_than_expected_end_the_task(world: ErasingWorld, engine: Engine) -> None:
    task = world.erase(GONE, most_rows=3)
    assert task.status == "failed"
    assert "most_rows is 3" in str(task.fault)
    assert len(rows_of(engine, GONE)) >= 4
    assert asked_of(task).subjects == ()
    assert world.faults() == []


def test_an_erasure_and_a_replay_of_the_same_numbers_keep_each_other_out(world: ErasingWorld) -> None:
    replay = world.ask(order(["0"]))
    with pytest.raises(TaskOverlap, match=str(replay.task.task_id)):
        world.ask_erasure(GONE)
    world.work(replay)
    task = world.ask_erasure(GONE)
    with pytest.raises(TaskOverlap, match=f"erasure {task.task_id}"):
        world.ask(ReplayOrder(None, None, None, "{}", False))


def test_without_its_key_nothing_is_retried_or_replayed(world: ErasingWorld) -> None:
    """Nobody could tell then which events are to be forgotten."""
    world.erase(GONE)
    world.key = SubjectKey("another key of at least thirty-two octets")
    job = world.ask()
    with pytest.raises(ErasureKeyMissing, match="ERASURE_KEY"):
        world.work(job)


def test_an_erasure_that_stops_anywhere_goes_on_where_it_was(world: ErasingWorld, engine: Engine) -> None:
    task = world.ask_erasure(GONE)
    world.numbers = 1
    for _ in range(40):
        found = world.task(task)
        if found.status == "done":
            break
        if open_parts(task.task_id, world.erasing):
            work_on(task.task_id, None, world.erasing, world.clock.now() - timedelta(seconds=1))  # one piece
    assert found.status == "done"
    assert erased_by(found).row_count == 7
    assert rows_of(engine, GONE) == []
    assert world.faults() == []


def test_the_lake_is_asked_until_it_has_answered(world: ErasingWorld) -> None:
    world.answers_of_lake = [None, ("lake: 3 rows were deleted",)]
    task = world.erase(GONE)
    assert [one.subjects for one in world.asked_of_lake] == [(GONE,), (GONE,)]
    assert erased_by(task).notes == ("lake: 3 rows were deleted",)
    (days,) = set(world.asked_of_lake[0].days.values())
    assert str(days[0]) == "2026-01-01"


def test_other_tasks_that_name_the_subject_are_reworded_and_lose_the_digest_of_their_request(
    world: ErasingWorld, engine: Engine
) -> None:
    asked = ReplayOrder(None, None, None, '{"keys": ["home-7", "home-70"]}', True)
    job = world.work(request_replay(asked, world.means, 1_000, f"for {GONE}, please"))
    engine.by_hand("UPDATE task SET request_digest = 'a'")
    world.erase(GONE)
    found = world.store.find_replay(job.task.task_id)
    assert found is not None
    assert (found.task.reason, found.asked.asked) == ("for erased, please", '{"keys": ["erased", "home-70"]}')
    assert found.task.request_digest == ""
