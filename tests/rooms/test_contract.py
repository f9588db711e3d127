"""The samples of a room on every engine: the rows of the transform, once, also after a replay; bad rows stand alone."""

from collections.abc import Iterable
from dataclasses import replace

from core.errors import RowsRefused
from core.ingest.ingest import ingest_batch
from core.model.events import Event
from core.model.rows import References, Row
from core.model.transforms import Transform
from core.transforms.loading import Room
from tests.fakes.builders import batch
from tests.fakes.kept import Engine
from tests.fakes.one_pass import assert_equals_one_pass
from tests.fakes.store import Store
from tests.rooms.found import outcomes_of, samples_of, transform_of
from tests.rooms.world import faults_of_books, ingested, refused, retry_all, written


def everything(engine: Engine, transform: Transform) -> tuple[object, ...]:
    return (*(engine.rows(each) for each in transform.row_classes), engine.letters(), engine.ledger(), engine.gaps())


def test_rows_come_back_as_the_transform_made_them_and_each_event_is_counted_once(
    room: Room, store: Store, engine: Engine
) -> None:
    world = ingested(room, store)
    assert_equals_one_pass(engine, world.logs, transform=world.transform)
    assert sum(map(len, written(engine, world.transform).values())) > 0
    assert faults_of_books(world) == []


def test_a_redelivery_changes_nothing(room: Room, store: Store, engine: Engine) -> None:
    world = ingested(room, store)
    before = everything(engine, world.transform)
    for id, log in world.logs.items():
        ingest_batch(batch(log, world.partition(id)), world.ingesting)
    assert everything(engine, world.transform) == before


def test_a_replay_retracts_the_rows_and_writes_the_same(room: Room, store: Store, engine: Engine) -> None:
    world = ingested(room, store)
    before = written(engine, world.transform)
    letters = [(one.partition_id, one.sequence_number, one.error) for one in engine.letters()]
    job = world.replay()
    assert written(engine, world.transform) == before
    assert [(one.partition_id, one.sequence_number, one.error) for one in engine.letters()] == letters
    assert job.counts.events == sum(map(len, world.logs.values()))
    assert job.counts.rows_written == sum(one.rows_written for one in engine.ledger())
    assert job.counts.rows_retracted >= sum(len(engine.rows(each)) for each in transform_of(room).row_classes)
    assert faults_of_books(world) == []


def test_a_letter_that_the_same_code_tries_again_keeps_its_outcome(room: Room, store: Store, engine: Engine) -> None:
    """A letter whose reference is there by now is resolved."""
    world = ingested(room, store)
    before = engine.letters()
    retry_all(world, before)
    for old, new in zip(before, engine.letters(), strict=True):
        resolved = (old.error_class, new.status) == ("reference", "resolved")
        assert resolved or (new.error_class, new.error, new.status) == (old.error_class, old.error, old.status), new
        assert new.attempts > 0
    assert faults_of_books(world) == []


def test_a_row_that_a_column_refuses_is_a_letter_and_no_other_event_is(
    room: Room, store: Store, engine: Engine
) -> None:
    transform, bad = transform_of(room), a_refusable_sample(room)

    def damaging(event: Event, references: References) -> list[Row]:
        rows = transform.rows_of(event, references)
        return [(refused(row) or row) if event.body == bad else row for row in rows]

    def standing(event: Event, references: References) -> Iterable[Row]:
        if event.body == bad:
            raise RowsRefused("no column takes None")
        return transform.rows_of(event, references)

    world = ingested(room, store, replace(transform, rows_of=damaging))
    assert {one.body for one in engine.letters() if one.error_class == "refused"} == {bad}
    assert_equals_one_pass(engine, world.logs, transform=replace(transform, rows_of=standing))
    assert faults_of_books(world) == []


def a_refusable_sample(room: Room) -> bytes:
    """Return the last sample with a row that can be damaged."""
    samples = zip(samples_of(room), outcomes_of(room), strict=True)
    found = [body for body, outcome in samples if any(map(refused, outcome.rows))]
    assert found, "no sample becomes a row with a field besides its key, so no row can be refused"
    return found[-1]
