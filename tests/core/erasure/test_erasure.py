"""Promises of every store about erasures: a subject is gone from all tables, the ledger stays provable, and nothing
brings the subject back."""

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Literal
from unicodedata import normalize

import msgspec
import pytest

from core.erasure.erasure import asked_of, erased_by, forms_of
from core.erasure.task import Subject
from core.errors import ErasureKeyMissing, ErasureWaits, EventKeyChanged, RequestRefused, TaskOverlap
from core.ingest.ingest import ingest_batch
from core.ledger.explain import Explanations, explain
from core.letters.listing import RedriveRange
from core.letters.redrive import RedriveAsked, redrive_request
from core.letters.retry import claim_due, retry_chunk
from core.model.events import Event, PartitionId, SequenceNumber, Span
from core.model.letters import LetterMove
from core.model.policies import SubjectKey
from core.model.property_values import Unread
from core.model.rows import References, Row, appended_to
from core.model.transforms import body_decoder
from core.replay.request import ReplayOrder
from core.replay.store import opened_key
from core.settle.partition_store import Partitions
from core.store.columns import instant_of
from core.store.database import read_time
from core.store.memory import Memory
from core.store.script import Outcome, Script, Step
from core.tasks.run import open_parts, work_on
from core.tasks.statuses import TaskMove
from core.tasks.task import TaskOrder
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.fakes.builders import STREAM, batch, event, partition
from tests.fakes.child_tries import ChildTries
from tests.fakes.engines import SqliteEngine
from tests.fakes.erasing import KEY, ErasingWorld, events_of
from tests.fakes.faulty_database import OverDatabase
from tests.fakes.kept import Engine
from tests.fakes.plain_transform import ROW_CLASSES, transform
from tests.fakes.replaying import changed, order, request_replay
from tests.fakes.store import Store, open_next

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
    ledger, before = engine.ledger(), world.faults()
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
    assert (engine.ledger(), world.faults()) == (ledger, before) and before == [], "numbers, outcomes and totals"


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


def test_no_audit_names_a_mark_or_a_place_of_an_erasure(world: ErasingWorld, engine: Engine) -> None:
    world.erase(GONE)
    place = "sequence_number = sequence_number + 100, ordinal = ordinal + 7, table_name = 'home_alert'"
    engine.by_hand(f"UPDATE retracted_row SET {place}")
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


def test_a_piece_has_few_large_bodies(world: ErasingWorld) -> None:
    """A search of a body for escapes within escapes takes seconds for some megabytes."""
    large = events_of(*[f"bug Zo\u00eb {'x' * 300_000}"] * 5, first=len(LOG))
    ingest_batch(batch(large, partition("0")), world.ingesting)
    for subject in ("Zo\u00eb", "\u00eb"):  # by a needle, and without one
        store, first, pieces = world.erasing.store, len(LOG), []
        while first < len(LOG) + 5:
            piece = store.find_piece(1, partition("0"), Span(N(first), N(len(LOG) + 4)), [subject])
            pieces.append(piece.span.length)
            first = piece.span.last + 1
        assert pieces == [1, 1, 1, 1, 1], subject


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
    """The letter does not name the subject. Only the rows that it becomes do."""
    world.erase(GONE)
    world.transform = changed(lambda event, references: [SensorReading(GONE, "s", "late", None, 1, event.enqueued_at)])
    world.retry()
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


def test_octets_of_a_body_that_is_no_text_and_names_of_properties_are_searched_for_a_subject(
    world: ErasingWorld, engine: Engine
) -> None:
    world.transform = changed(fails_with_its_name)
    bodies = [b"\xa1dhomefhome-7axax", b"\xa1dhomefhome-8axax"]
    avro = [msgspec.structs.replace(event(len(LOG) + at, "x"), body=body) for at, body in enumerate(bodies * 2)]
    world.hub.publish("0", avro)
    ingest_batch(batch(avro[:2], partition("0")), world.ingesting)
    world.erase(GONE)
    avro.append(msgspec.structs.replace(event(len(LOG) + 4, "x"), properties={GONE: "a"}))
    report = ingest_batch(batch(avro[2:], partition("0")), world.ingesting)
    assert (report.facts()["filtered"], report.facts()["dead_lettered"]) == (2, 1)
    assert [(one.sequence_number, one.body) for one in engine.letters() if one.sequence_number >= len(LOG)] == [
        (11, b""), (12, bodies[1]), (14, bodies[1]),
    ]  # fmt: skip


def test_an_event_whose_error_alone_names_an_erased_subject_leaves_no_letter(
    world: ErasingWorld, engine: Engine
) -> None:
    """Neither a new letter, nor an attempt at an old one: a rule of the room knows who belongs together."""
    world.erase(GONE)
    world.transform = changed(fails_as_a_neighbour)
    new = events_of("reading home-8", first=len(LOG))
    world.hub.publish("0", new)
    assert ingest_batch(batch(new, partition("0")), world.ingesting).facts()["filtered"] == 1
    world.retry()
    errors = [one.error for one in engine.letters()] + [one.error for one in engine.attempts()]
    assert [one for one in errors if GONE in str(one)] == []
    assert world.faults() == []


def test_an_event_of_an_erased_partition_key_makes_no_row_at_all(world: ErasingWorld, engine: Engine) -> None:
    """Not even one that names a different subject: the key is the subject of the event."""
    world.erase(GONE)
    world.transform = changed(lambda event, references: [SensorReading("odd", "s", "late", None, 1, event.enqueued_at)])
    world.replay(order(["0"]))
    assert [one.sequence_number for one in rows_of(engine, "odd")] == [1, 3, 6, 8, 10]  # type: ignore[attr-defined]
    erased = world.store.read_erased(world.store.read_partition(partition()))
    for key, own_key, is_gone in ((GONE, "d1", True), (None, GONE, True), (STAYS, GONE, True), (STAYS, "d1", False)):
        given = msgspec.structs.replace(event(0, "body", key=key), own_key=own_key)
        assert erased.around(world.transform).is_erased(given) is is_gone, (key, own_key)
    sent = msgspec.structs.replace(event(0, "body", key=None), annotations={"iothub-connection-device-id": GONE})
    assert erased.around(world.transform).mentions_erased(sent)
    for content, is_found in ((f'{{"home": "{GONE}", "deep": [', True), ('{"deep": [', False)):
        unread = msgspec.structs.replace(event(0, "body", key=None), properties=Unread("json", content))
        assert erased.around(world.transform).mentions_erased(unread) is is_found
    with pytest.raises(EventKeyChanged):  # events of the subject are known by the key that they had
        Partitions(world.store.database, event_key="kafka").open_stream(STREAM)


def fails_with_its_name(event: Event, references: References) -> list[Row]:
    raise ValueError(f"home {event.partition_key} is odd")


def fails_as_a_neighbour(event: Event, references: References) -> list[Row]:
    raise ValueError(f"home {GONE} is its neighbour")


def test_errors_of_earlier_attempts_are_blanked_too(world: ErasingWorld, engine: Engine) -> None:
    world.transform = changed(fails_with_its_name)
    world.retry()
    assert [one for one in engine.attempts() if f"home {GONE} is" in str(one.error)] != []
    world.erase(GONE)
    assert {one.error for one in engine.attempts()} == {"erased", f"home {STAYS} is odd"}
    assert world.faults() == []


def later_than(world: ErasingWorld, *bodies: str, first: int = len(LOG)) -> list[Event]:
    """Return events that reach the hub two minutes after now by the clock of the database."""
    at = read_time(world.store.database) + timedelta(minutes=2)
    return [msgspec.structs.replace(one, enqueued_at=at) for one in events_of(*bodies, first=first)]


def test_a_new_event_after_the_erasure_is_a_new_event_until_the_next_erasure(
    world: ErasingWorld, engine: Engine
) -> None:
    world.erase(GONE)
    later = later_than(world, f"reading {GONE}")
    world.hub.publish("0", later)
    ingest_batch(batch(later, partition("0")), world.ingesting)
    assert len(rows_of(engine, GONE)) == 1
    world.replay()
    assert len(rows_of(engine, GONE)) == 1
    world.erase(GONE)  # its event is ahead of the database's clock, and was committed: it is forgotten all the same
    assert rows_of(engine, GONE) == []
    world.replay()
    assert rows_of(engine, GONE) == []
    assert world.faults() == []


@pytest.mark.parametrize(
    ("hours", "said"), [(1, "the database's clock is 3,600 s fast"), (-1, "the database's clock is 3,600 s slow")]
)
def test_an_erasure_by_a_clock_that_is_wrong_is_refused_and_nothing_is_forgotten(
    world: ErasingWorld, hours: int, said: str
) -> None:
    """A clock an hour ahead would forget the events of the next hour, and a slow one would bring events back."""
    world.clock_ahead = timedelta(hours=hours)
    with pytest.raises(RequestRefused, match=re.escape(said)):
        world.erase(GONE)
    assert world.store.database.ask("read_erasure_keys") == []
    world.clock_ahead = timedelta(seconds=-5)
    before = read_time(world.store.database)
    world.erase(GONE)
    ((_, _, erased_at),) = world.store.database.ask("read_erasure_keys")
    assert timedelta(seconds=5) <= instant_of(erased_at) - before <= timedelta(seconds=9), "the later clock counts"


def test_events_in_the_hub_that_are_not_committed_yet_are_filtered(world: ErasingWorld, engine: Engine) -> None:
    later = events_of(f"double {GONE}", f"double {STAYS}", f"bug {GONE}", first=len(LOG))
    world.hub.publish("0", later)
    before = len(rows_of(engine, STAYS))
    assert world.erase(GONE).status == "done"
    report = ingest_batch(batch(later, partition("0")), world.ingesting)
    assert (report.facts()["written"], report.facts()["filtered"], report.facts()["dead_lettered"]) == (1, 2, 0)
    assert rows_of(engine, GONE) == []
    assert len(rows_of(engine, STAYS)) == before + 2
    assert world.faults() == []


def test_every_stream_and_the_next_incarnation_forget_too(world: ErasingWorld, engine: Engine) -> None:
    """A different consumer group has rows and a letter, and the next incarnation takes the events of the hub again."""
    other = partition("0", group="other")
    ingest_batch(batch(world.logs["0"], other), replace(world.ingesting))
    own = world.erasing.report(world.erase(GONE, dry_run=True), is_listed=False)["letters_found"]
    assert [(one.stream, one.partition_id, one.sequence_number) for one in own] == [
        *((None, "0", number) for number in ("4", "9")),
        (None, "1", "2"),
        *(("namespace/telemetry, other, incarnation 1", "0", number) for number in ("4", "9")),
    ]
    open_next(world.store)
    shown = world.erasing.report(world.erase(GONE, dry_run=True), is_listed=False)
    (of_former, *_) = {one.stream for one in shown["letters_found"]} - {own[-1].stream}
    assert of_former == "namespace/telemetry, hubledger, incarnation 1"
    assert {one.stream for one in shown["partitions"]} == {of_former, own[-1].stream}, "the new one has none yet"
    task = world.erase(GONE)
    assert rows_of(engine, GONE) == []
    figures = erased_by(task)
    assert (figures.row_count, figures.letters) == (11, 5), "the other stream's newer home took the place of the first"
    assert [one.name for one in task.parts] == ["1/0", "1/1", "2/0", "lake"]
    ingest_batch(batch(world.logs["0"]), world.ingesting)
    assert rows_of(engine, GONE) == []
    assert [one.partition_key for one in engine.letters() if one.stream_id == 3] == [STAYS]


def test_an_open_erasure_goes_on_in_the_next_incarnation(world: ErasingWorld, engine: Engine) -> None:
    """The task stores the subjects until it ends. An operator who cancels the task removes them at once."""
    task = world.ask_erasure(GONE)
    open_next(world.store)
    assert world.task(task).status == "planned"
    assert world.drive(task).status == "done"
    assert rows_of(engine, GONE) == []
    other = world.ask_erasure(STAYS)
    world.erasing.tasks.move(TaskMove(other.task_id, "cancel", "officer", "", world.clock.now()))
    assert [asked_of(world.task(one)).subjects for one in (task, other)] == [(), ()]
    assert len(rows_of(engine, STAYS)) > 0


class ErasesAtDiffs(OverDatabase):
    """A database in which something happens just before the first diffs are stored."""

    happens: Callable[[], object] | None = None

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        if self.happens is not None and any(step.statement == "add_replay_diffs" for step in script.steps):
            happens, self.happens = self.happens, None
            happens()
        return super().run(script, rehearse)


def test_a_dry_run_of_a_replay_keeps_nothing_of_it(world: ErasingWorld) -> None:
    """It keeps no event without rows and letters, no state that it carries, and no difference that it found before."""
    quiet, world.numbers = events_of("quiet", first=len(LOG)), 1
    world.hub.publish("0", quiet)
    ingest_batch(batch(quiet, partition("0")), world.ingesting)
    world.transform = changed(lambda event, references: [SensorReading(GONE, "s", "late", None, 1, event.enqueued_at)])
    before = world.replay(order(["0"], 11, 11, dry_run=True))
    carrying = world.ask(order(["1"], dry_run=True))
    row = json.dumps([["key", 3, json.dumps({"home_id": GONE})]])
    carried = {"task_id": str(carrying.task.task_id), "partition_id": "1", "carried": row}
    world.store.database.run(Script("a state", (Step("carry_states", carried),)))
    world.store.database = world.store._database = amid = ErasesAtDiffs(world.store.database)
    amid.happens = lambda: world.erase(GONE)
    found = world.replay(order(["0"], dry_run=True))
    assert amid.happens is None
    assert found.task.status == "done"
    diffs = [world.store.read_replay_diffs(one.task.task_id, None, 100) for one in (before, found)]
    assert [one.diff for kept in diffs for one in kept if f'"{GONE}"' in one.diff and '"added": [{' in one.diff] == []
    assert world.store.database.ask("read_states_to_search") == []


def test_a_plan_that_was_made_before_the_erasure_is_made_anew(world: ErasingWorld, engine: Engine) -> None:
    """A process that remembers the partition, and has planned its batch, commits after the erasure."""
    partitions, given = Partitions(world.store.database, Memory(timedelta()), KEY), None
    later = events_of(f"double {GONE}", f"double {STAYS}", first=len(LOG))

    def rows_and_erasure(event: Event, references: References) -> list[Row]:
        nonlocal given
        if given is None:
            given = world.erase(GONE)
        return list(transform(event, references))

    means = replace(world.ingesting, store=partitions, transform=changed(rows_and_erasure))
    means.store.read_partition(partition("0"))
    report = ingest_batch(batch(later, partition("0")), means)
    assert given is not None
    assert given.status == "done"
    assert rows_of(engine, GONE) == []
    assert (report.facts()["written"], report.facts()["filtered"]) == (1, 1)


def test_a_retry_and_a_replay_that_were_planned_before_the_erasure_are_planned_anew(
    world: ErasingWorld, engine: Engine
) -> None:
    """The letter does not name the subject. Only the rows that it becomes do."""
    world.clock.advance(3600)
    done: list[str] = []

    def rows_and_erasure(event: Event, references: References) -> list[Row]:
        if not done:
            done.append(world.erase(GONE).status)
        return [SensorReading(GONE, "s", "late", None, 1, event.enqueued_at)]

    world.letters = replace(world.letters, chunk=1)
    chunks = [one for one in claim_due(world.keeper) if one.sequence_numbers == (6,)]
    world.transform = changed(rows_and_erasure)
    for chunk in chunks:
        retry_chunk(chunk, world.keeper, "invocation-2")
    assert done == ["done"]
    assert rows_of(engine, GONE) == []
    assert world.faults() == []


@pytest.mark.parametrize(
    ("given", "refused"),
    [("", "1"), ("home\0", "U+0000"), ("home\ud800", "half of a character"), ("x" * 201, "200")],
)
def test_what_no_column_can_have_is_refused_and_nothing_is_stripped(
    world: ErasingWorld, given: str, refused: str
) -> None:
    with pytest.raises((RequestRefused, ValueError), match=re.escape(refused)):
        world.ask_erasure(msgspec.convert(given, Subject))
    world.ask_erasure(" home-7\u2028")  # a value of its own: it is looked for as it is


@dataclass(frozen=True, slots=True)
class Numbered:
    number: int


def test_a_number_is_one_subject_in_each_of_its_spellings() -> None:
    numbered = appended_to("numbered", subject="number")(Numbered)
    assert forms_of("007", (numbered,)) == ("007", "7")
    assert forms_of("-0", (numbered,)) == ("-0", "0")
    with pytest.raises(ValueError, match=r"numbered\.number has whole numbers"):
        forms_of("seven", (numbered,))


def test_a_dry_run_counts_and_changes_nothing(world: ErasingWorld, engine: Engine) -> None:
    engine.by_hand(f"UPDATE event_stream SET opened_why = 'for {GONE}'")

    def everything() -> tuple[object, ...]:
        return (*map(engine.rows, (SensorReading, HomeAlert, Home)), engine.letters(), engine.ledger())

    before = everything()
    task = world.erase(GONE, dry_run=True)
    assert world.store.database.ask("read_streams_to_search") == [(1, f"for {GONE}")]
    assert asked_of(task).subjects == ()
    assert task.status == "done"
    assert (erased_by(task).row_count, erased_by(task).letters) == (7, 3)
    assert everything() == before
    assert world.store.database.ask("read_erasure_keys") == []
    assert world.asked_of_lake == []


def test_an_unknown_subject_is_a_report_with_zeros_and_its_value_is_stored_while_the_task_is_open(
    world: ErasingWorld,
) -> None:
    task = world.ask_erasure("nobody")
    assert asked_of(task).subjects == ("nobody",)
    task = world.drive(task)
    assert (task.status, erased_by(task).row_count, erased_by(task).letters) == ("done", 0, 0)
    assert (asked_of(task).subjects, asked_of(task).count) == ((), 1)


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


OTHER_KEY = SubjectKey("another key of at least thirty-two octets")


def test_without_its_key_older_events_wait_and_newer_ones_are_taken(world: ErasingWorld, engine: Engine) -> None:
    """Without the key, nobody can tell which older events belong to an erased subject."""
    world.erase(GONE)
    world.key, known = OTHER_KEY, world.key
    job = world.ask()
    with pytest.raises(ErasureKeyMissing, match="ERASURE_KEY"):
        world.work(job)
    old, new = events_of(f"reading {GONE}", first=len(LOG)), later_than(world, f"bug {STAYS}", first=3)
    world.hub.publish("0", old)
    with pytest.raises(ErasureKeyMissing):
        ingest_batch(batch(old, partition("0")), world.ingesting)
    ingest_batch(batch(new, partition("1")), world.ingesting)
    stops = [
        (one.partition.partition_id, [each.reason for each in one.stops])
        for one in map(world.store.read_partition, map(partition, "01"))
    ]
    assert stops == [("0", ["erasure_key"]), ("1", [])]
    world.retry()
    tried = {(one.partition_id, one.sequence_number) for one in engine.letters() if one.attempts > 1}
    assert tried == {("1", 3)}
    world.key = known
    ingest_batch(batch(old, partition("0")), world.ingesting)
    assert world.store.read_partition(partition("0")).stops == ()
    assert world.work(job).task.status == "done"
    assert rows_of(engine, GONE) == []


def test_a_key_is_changed_with_both_given_until_every_subject_was_named_anew(
    world: ErasingWorld, engine: Engine
) -> None:
    world.erase(GONE)
    world.key, known = OTHER_KEY, world.key
    with pytest.raises(RequestRefused, match="ERASURE_KEY_BEFORE"):
        world.ask_erasure(STAYS)
    world.key = SubjectKey(OTHER_KEY.secret, known.secret)
    assert world.work(world.ask()).task.status == "done"
    assert rows_of(engine, GONE) == []
    world.erase(GONE)
    world.key = OTHER_KEY
    assert world.work(world.ask()).task.status == "done"
    assert rows_of(engine, GONE) == []
    assert [(name, count) for name, count, _ in world.store.database.ask("read_erasure_keys")] == [(OTHER_KEY.name, 1)]


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


def test_an_erasure_that_waits_for_a_run_says_so_and_asks_the_lake_again(world: ErasingWorld, engine: Engine) -> None:
    world.waits_of_lake = ["run 7 of a job began before it"]
    task = world.ask_erasure(GONE)
    with pytest.raises(ErasureWaits, match=r"the rows are erased, .* run 7"):
        world.drive(task)
    assert world.task(task).status == "running"
    assert rows_of(engine, GONE) == []
    task = world.drive(task)
    assert [one.subjects for one in world.asked_of_lake] == [(GONE,), (GONE,)]
    assert (task.status, erased_by(task).notes) == ("done", ("the lake was asked",))
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


def test_no_unkeyed_hash_of_an_erased_subject_stays(world: ErasingWorld, engine: Engine) -> None:
    """Whoever has the database could test a guess of an error, a filter or a key with such a hash."""
    world.transform = changed(fails_with_its_name)
    world.retry()
    asked, range = RedriveAsked("requeue", {"partition_key": GONE}), RedriveRange(PartitionId("0"), Span(N(4), N(9)), 2)
    redrive = redrive_request(TaskOrder(world.own.new_id(), 1, "ann", "again", world.clock.now()), asked, (range,))
    world.erasing.tasks.open(redrive)
    carrying = world.ask(order(["0"], dry_run=True))
    carried = json.dumps([[opened_key(one), 4, '"unknown"'] for one in (GONE, STAYS)])
    place = {"task_id": str(carrying.task.task_id), "partition_id": "0", "carried": carried}
    world.store.database.run(Script("a state", (Step("carry_states", place),)))
    causes = "SELECT DISTINCT cause FROM dead_letter_attempt WHERE sequence_number {} (4, 9, 2)"
    kept = engine.by_hand(causes.format("NOT IN"))
    world.erase(GONE)
    assert (engine.by_hand(causes.format("IN")), engine.by_hand(causes.format("NOT IN"))) == ([("erased",)], kept)
    assert engine.by_hand("SELECT DISTINCT cause, fingerprint FROM event_hub_dead_letter WHERE error = 'erased'") == [
        ("erased", "erased")
    ]
    assert [key for _, _, key, _ in world.store.database.ask("read_states_to_search")] == [opened_key(STAYS)]
    assert engine.by_hand(f"SELECT task_key FROM task WHERE task_key = '{redrive.key}'") == []


class Odd(msgspec.Struct):
    """A body of which each other field is unknown."""


def test_a_stop_of_a_plan_that_is_older_than_the_erasure_does_not_name_the_subject(world: ErasingWorld) -> None:
    def noted() -> list[str]:
        return [one.detail for one in world.store.read_partition(partition()).stops]

    before = world.store.read_partition(partition())
    world.erase(GONE)
    world.store.note_stop(before, "outage", f"home {GONE} is not registered", at := read_time(world.store.database))
    assert noted() == []  # the plan did not know the erasure
    for name, kept in (
        (GONE, "the detail names an erased subject, so it is left out"),
        (STAYS, f"{STAYS} is not known"),
    ):
        now = world.store.read_partition(partition())
        world.store.note_stop(now, "outage", f"{name} is not known", at)
        assert noted() == [kept]


def test_a_name_of_a_field_that_is_the_subject_is_counted_no_longer(world: ErasingWorld, engine: Engine) -> None:
    """The counts are of the time before and after the erasure, and in the memory of a different process."""
    decode, partitions = body_decoder(Odd), Partitions(world.store.database, Memory(timedelta()), KEY)

    def counts(event: Event, references: References) -> list[Row]:
        decode(event.body)
        return []

    means = replace(world.ingesting, store=partitions, transform=changed(counts))
    stored = []
    for first, body in ((0, "coupon"), (1, f"of {GONE}"), (2, GONE), (3, "gift")):
        given = [event(len(LOG) + first, json.dumps({body: 1}))]
        if first == 2:
            task = world.erase(GONE)
        ingest_batch(batch(given, partition("0")), means)
        stored += [json.loads(names) for _, _, names in world.store.database.ask("read_unknown_to_search")]
    assert task.status == "done"
    assert stored[1] == {"coupon": 1, f"of {GONE}": 1}
    assert stored[2:] == [{"coupon": 1, "of erased": 1}, {"coupon": 1, "of erased": 1, "gift": 1}]


def test_reasons_that_people_wrote_elsewhere_are_blanked_and_the_rest_of_them_stays(
    world: ErasingWorld, engine: Engine
) -> None:
    """Reasons of letters, of orders of a job and of an incarnation, the detail of a stop, and errors of runs."""
    now, asked = world.clock.now(), f"as {GONE} asked"  # of its own letter, and of a letter of the other
    world.store.move_letters(LetterMove("discard", partition(), (N(4), N(6)), "move-1", now, now, "somebody", asked))
    world.store.note_stop(world.store.read_partition(partition("1")), "outage", f"10 of 12 fail: no home {GONE}", now)
    history = json.dumps({"at": "2026-01-01T07:07:07Z", "move": "pause", "by": "ann", "why": f"for {GONE}"}) + "\n"
    engine.by_hand(f"UPDATE event_stream SET opened_why = 'for {GONE}!'")
    columns = "job, cut, run_number, paused_why, history"
    engine.by_hand(f"INSERT INTO aggregation_cut ({columns}) VALUES ('a', '{{}}', 0, '{GONE}', '{history}')")
    columns = "run_id, submit_number, attempt, failed_at, why, reason, log_tail"
    words = f"'a', 1, 1, '2026-01-01T00:00:00', 'it ended', 'no home {GONE}', '{f'{GONE} 7 ' * 400}'"
    engine.by_hand(
        "INSERT INTO aggregation_run (run_id, job, run_number, cut_from, cut_to, engine, attempt, submits,"
        " status, planned_at, intent_at, is_snapshot, failure) VALUES ('a', 'a', 1, '{}', '{}', 'none', 1, 1, 'failed',"
        f" '2026-01-01T00:00:00', '2026-01-01T00:00:00', 0, '{GONE}!')"
    )
    engine.by_hand(f"INSERT INTO aggregation_failure ({columns}) VALUES ({words})")
    task = world.erase(GONE, "7")
    assert world.store.database.ask("read_runs_to_search") == [("a", "erased!")]
    assert world.store.database.ask("read_failures_to_search") == [
        ("a", 1, "it ended", "no home erased", ("erased " * 800)[: 9 * 400])
    ], "no text outgrows its column"
    assert erased_by(task).reasons == 1
    assert [one.why for one in engine.attempts() if one.sequence_number in (4, 6)] == ["erased"] * 2
    assert [one.settled_why for one in engine.letters() if one.sequence_number in (4, 6)] == ["erased"] * 2
    ((job, _, _, told),) = world.store.database.ask("read_jobs_to_search")
    assert (job, json.loads(told)) == ("a", {**json.loads(history), "why": "for erased"})
    assert world.store.database.ask("read_streams_to_search") == [(1, "for erased!")]
    assert [row[-1] for row in world.store.database.ask("read_stops_to_search")] == ["10 of 12 fail: no home erased"]
    assert world.faults() == []


@pytest.mark.parametrize("body", ['{"q": "?home=home-7&x"}', "home%2D7", '"home\\u002d7"'])
def test_a_letter_that_mentions_the_subject_in_an_address_or_an_escape_is_blanked(
    world: ErasingWorld, engine: Engine, body: str
) -> None:
    later = [msgspec.structs.replace(one, body=body.encode()) for one in events_of("bug", first=len(LOG))]
    ingest_batch(batch(later, partition("0")), replace(world.ingesting, transform=changed(fails_with_its_name)))
    before = erased_by(world.erase("nobody"))
    task = world.erase(GONE)
    assert (before.letters, erased_by(task).letters) == (0, 4)
    assert [one.error for one in engine.letters() if one.sequence_number == len(LOG)] == ["erased"]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_subject_with_an_accent_is_one_subject_composed_and_decomposed(
    world: ErasingWorld, engine: Engine, form: Literal["NFC", "NFD"]
) -> None:
    """Rows, letters, and an event that fails after the erasure: only its body mentions the subject."""
    names = ["Zo\u00eb van der Berg Jos\u00e9", normalize("NFD", "Zo\u00eb van der Berg Jos\u00e9")]  # five words
    bodies = [*(json.dumps({"bug": name}, ensure_ascii=False) for name in names), *(f"row {name}" for name in names)]
    means, outcomes = replace(world.ingesting, transform=changed(rows_or_bugs)), []
    for first in (len(LOG), len(LOG) + 4):
        given = [event(first + place, body, key=None) for place, body in enumerate(bodies)]
        report = ingest_batch(batch(given, partition("0")), means).facts()
        outcomes.append([report[name] for name in ("rows", "dead_lettered", "filtered")])
        if first == len(LOG):
            task = world.erase(normalize(form, names[0]))
    assert outcomes == [[2, 2, 0], [0, 0, 4]]
    assert (erased_by(task).letters, erased_by(task).row_count) == (2, 2)
    assert world.faults() == []


def rows_or_bugs(event: Event, references: References) -> list[Row]:
    verb, _, name = event.body.decode().partition(" ")
    if verb != "row":
        raise ValueError("it fails")
    return [SensorReading(name, "s", "late", None, 1, event.enqueued_at)]


def test_an_event_that_the_database_refuses_leaves_no_letter_that_mentions_the_subject(
    world: ErasingWorld, engine: Engine
) -> None:
    """The row of the event has no subject, but its body mentions one, which the letter would quote."""
    world.erase(GONE)
    given = [event(len(LOG), f"huge odd {GONE}"), event(len(LOG) + 1, "huge odd other")]
    world.hub.publish("0", given)
    ingest_batch(batch(given, partition("0")), world.ingesting)
    assert [one.sequence_number for one in engine.letters() if one.sequence_number >= len(LOG)] == [len(LOG) + 1]
    world.replay()
    assert [one.sequence_number for one in engine.letters() if one.sequence_number >= len(LOG)] == [len(LOG) + 1]


def test_five_thousand_subjects_of_five_requests_stay_forgotten(tmp_path: Path) -> None:
    names, bodies = [f"home-{number}" for number in range(5_000)], ("double", "reading", "reading", "poison", "reading")
    log = [f"{bodies[place % 5]} {name}" for place, name in enumerate(names)]
    engine, keyless = SqliteEngine(tmp_path / "store.db"), 50  # letters that name nobody until they are retried
    world = ErasingWorld(engine.open(), {"0": events_of(*log, "reading other-1", *["bug"] * keyless)}, numbers=10_000)
    world.piece = 1_000
    done = [erased_by(world.erase(*names[first : first + 1_000])) for first in range(0, 5_000, 1_000)]
    assert [(one.row_count, one.letters) for one in done] == [(1_000, 200)] * 5
    later = events_of(*log, first=len(world.logs["0"]))
    world.hub.publish("0", later)
    for first in range(0, 5_000, 500):
        report = ingest_batch(batch(later[first : first + 500], partition("0")), world.ingesting).facts()
        assert (report["filtered"], report["rows"], report["dead_lettered"]) == (500, 0, 0)

    def homes() -> list[str]:
        return [one.row.home_id for each in (SensorReading, HomeAlert, Home) for one in engine.rows(each)]  # type: ignore[attr-defined]

    def of_gone(event: Event, references: References) -> list[Row]:
        return [SensorReading(names[event.sequence_number - 4_000], "s", "late", None, 1, event.enqueued_at)]

    world.transform = changed(of_gone)
    world.retry()
    assert len([one for one in engine.letters() if one.status == "resolved"]) == keyless
    assert homes() == ["other-1"]
    world.transform = changed(transform, "plain/1")
    job = world.replay()
    assert (job.task.status, job.counts.filtered) == ("done", 10_000)
    assert homes() == ["other-1"]
    assert [count for _, count, _ in world.store.database.ask("read_erasure_keys")] == [5_000]
    assert world.faults() == []
    world.store.close()
