"""Each room keeps the same promises: its samples, tables, rights and aggregates, and its rows on every engine.

Each event has one outcome for ever. The rows are those of the transform, once, whatever happens. Bad rows stand alone.
"""

import logging
import re
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.aggregation.runs import planned_run
from core.audit.audit import audit, recount_rows
from core.audit.store import AuditStore
from core.errors import InfrastructureFault, MissingReference, PoisonEvent, RowsRefused
from core.ingest.ingest import Ingestion, ingest_batch
from core.letters.retry import Keeper, claim_due, retry_chunk
from core.model.events import Event, PartitionId, SequenceNumber, Span
from core.model.letters import LetterPosition
from core.model.rows import References, Row, row_table
from core.model.transforms import Transform
from core.store.columns import fields_of
from core.store.database import OneStream
from core.store.migrations import migrations_of
from core.store.sqlite.database import SqliteDatabase
from core.transforms.loading import Room, check_transform, load_aggregates, rooms_of
from hubledger.cli.ddl.migration import next_migration, read_schema, scripts_of
from hubledger.cli.ddl.room import rights_text
from hubledger.testing import check_deterministic, check_replay_identity
from local.explain import rights_of_statements
from local.trials.outcomes import fault_of_rows, shown
from local.trials.replay_identity import memory_connection
from tests.fakes.aggregation_engines import AggregatingStore, AggregationEngine, aggregation_of, committed
from tests.fakes.builders import STREAM, batch, partition, stamps
from tests.fakes.faulty_database import Fault, FaultyStore, Killed
from tests.fakes.kept import Engine, PersistentEngine, assert_equals_one_pass
from tests.fakes.replaying import World, requeue
from tests.fakes.rollups import rolled, windows_of, with_levels
from tests.fakes.rooms import Rooms
from tests.fakes.runs import LATER, NOW, staged_result
from tests.fakes.store import MemoryStore, Store
from tests.rooms.found import PARTITIONS, known_after, lines_of, logs_of, outcomes_of, samples_of, transform_of
from tests.sql.gates import gates
from tests.sql.grants import grants_of


def test_a_sample_becomes_rows_nothing_or_a_letter_with_a_reason(room: Room) -> None:
    faults = []
    for line, found in zip(lines_of(room), outcomes_of(room), strict=True):
        where = f"events.jsonl:{line.line}: {shown(line.body)}"
        if found.error is not None and not isinstance(found.error, PoisonEvent | MissingReference):
            faults.append(f"{where} raised {found}: raise PoisonEvent for a bad event")
        elif fault := fault_of_rows(transform_of(room), found.rows):
            faults.append(f"{where}: {fault}")
    assert not faults, "\n".join(faults)


def test_some_sample_becomes_a_row_of_each_class(room: Room) -> None:
    written = {type(row) for found in outcomes_of(room) for row in found.rows}
    missing = [each.__name__ for each in transform_of(room).row_classes if each not in written]
    assert not missing, f"events.jsonl: no sample becomes a {', '.join(missing)}: add an event that does"


@pytest.mark.slow  # it starts three processes
def test_a_sample_has_one_outcome(room: Room) -> None:
    check_deterministic(room.name, samples_of(room), references=known_after(room))


def test_a_replay_of_the_samples_writes_the_same_rows(room: Room) -> None:
    check_replay_identity(room.name, samples_of(room))


def test_both_engines_have_the_same_migrations_from_0001_without_a_gap(room: Room) -> None:
    check_transform(room.name)
    server, embedded = ([one.title for one in migrations_of(room, engine)] for engine in ("sqlserver", "sqlite"))
    assert server == embedded


def test_the_tables_of_a_new_embedded_store_fit_the_classes(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    row_classes = transform_of(room).row_classes
    connection = memory_connection(rooms_of(row_classes))
    with (
        closing(SqliteDatabase(Path(":memory:"), connect=lambda: connection, needed=row_classes)) as database,
        caplog.at_level(logging.WARNING),
    ):
        database.ask("read_migrations")
    found = [vars(record)["columns"] for record in caplog.records if vars(record).get("action") == "check_columns"]
    assert not found, f"columns of migrations/sqlite change values that are sent to them: {found}"


def test_no_migration_is_missing(room: Room) -> None:
    row_classes = transform_of(room).row_classes
    for each in rooms_of(row_classes):
        found = next_migration(row_classes, load_aggregates(row_classes), each.folder)
        faults = [*found.cannot, *(f"migrations/{engine} lacks:\n{text}" for engine, text in found.texts.items())]
        assert not faults, "\n".join([f"{each.name}: its classes differ from its migrations", *faults])


def test_the_t_sql_names_each_table_and_column_that_sqlite_makes(room: Room) -> None:
    """No server runs here, so a type, a length and a key are not compared."""
    statements = ";".join(one.text.lower() for one in migrations_of(room, "sqlserver")).split(";")
    missing = []
    for name, table in read_schema(scripts_of(room.folder)).tables.items():
        changes = [one for one in statements if re.search(rf"(table|sp_rename)\W.*\b{name}\b", one)]
        words = set(re.findall(r"\w+", " ".join(changes)))
        missing += [f"{name}.{column}" for column in table.columns if column not in words]
    assert not missing, f"migrations/sqlserver lack {', '.join(missing)}"


@pytest.mark.slow  # a parser of T-SQL starts slowly
def test_the_t_sql_parses(room: Room) -> None:
    if not gates():
        pytest.skip("no T-SQL parser is installed: make scriptdom, or pip install sqlfluff")
    texts = {f"migrations/sqlserver: {one.title}": one.text for one in migrations_of(room, "sqlserver")}
    texts |= {path.name: path.read_text(encoding="utf-8") for path in room.folder.glob("permissions.sql")}
    faults = [f"{name}: {fault}" for gate in gates().values() for name, found in gate(texts).items() for fault in found]
    assert not faults, "\n".join(faults)


def test_the_roles_are_granted_what_they_need(room: Room) -> None:
    row_classes = transform_of(room).row_classes
    scripts = [each.folder / "permissions.sql" for each in rooms_of(row_classes)]
    script = "\n".join(path.read_text(encoding="utf-8") for path in scripts if path.exists())
    of_jobs = grants_of(rights_text(row_classes, load_aggregates(row_classes)), "hubledger_job")
    own = {use.table for use in of_jobs}  # they read every table of a room
    of_app = {use for use in rights_of_statements(row_classes) if use.table in own}
    faults = [
        f"permissions.sql: add GRANT {use.verb} ON hubledger.{use.table} TO {role};"
        for role, uses in (("hubledger_app", of_app), ("hubledger_job", of_jobs))
        for use in sorted(uses - grants_of(script, role))
    ]
    assert not faults, "\n".join(faults)


def ingested(room: Room, store: Store, transform: Transform | None = None) -> World:
    return World(store, {id: list(log) for id, log in logs_of(room).items()}, transform or transform_of(room))


def assert_books_have_no_fault(world: World) -> None:
    """Check that an audit, which counts and sums up every row of every table, finds nothing."""
    audits = AuditStore(OneStream(world.store.database, STREAM), world.transform.row_classes)
    done, whole = audit(audits, None), Span(SequenceNumber(0), SequenceNumber(10**6))
    recounted = [fault for one in done.partitions for fault in recount_rows(one, whole, audits).faults]
    assert [str(fault) for fault in (*done.faults, *recounted)] == []


def test_rows_are_those_of_the_transform_once_after_a_redelivery_a_replay_and_retries_too(
    room: Room, store: Store, engine: Engine
) -> None:
    """A letter whose reference was missing, and is stored since, is resolved. Other letters keep their outcome."""
    world, classes = ingested(room, store), transform_of(room).row_classes

    def everything() -> tuple[object, ...]:
        return (*(engine.rows(each) for each in classes), engine.letters(), engine.ledger(), engine.gaps())

    def written() -> list[tuple[object, ...]]:
        """Return the rows with their places, without the commits that wrote them."""
        return [
            (each, one.partition_id, one.sequence_number, one.ordinal, one.row)
            for each in classes
            for one in engine.rows(each)
        ]

    assert_equals_one_pass(engine, world.logs, transform=world.transform)
    before, rows, letters = everything(), written(), engine.letters()
    assert rows
    for id, log in world.logs.items():
        ingest_batch(batch(log, world.partition(id)), world.ingesting)
    assert everything() == before, "a redelivery changes nothing"
    counts = world.replay().counts
    assert written() == rows
    names = attrgetter("partition_id", "sequence_number", "error")
    assert list(map(names, engine.letters())) == list(map(names, letters))
    assert counts.events == sum(map(len, world.logs.values()))
    assert counts.rows_written == sum(one.rows_written for one in engine.ledger())
    assert counts.rows_retracted >= len(rows)
    assert_books_have_no_fault(world)
    letters = engine.letters()
    keeper = Keeper(STREAM, world.store, world.transform, world.hub.find_event, world.own)
    places = [LetterPosition(PartitionId(one.partition_id), SequenceNumber(one.sequence_number)) for one in letters]
    requeue(places, keeper, why="the same code was deployed again")
    world.clock.advance(3_600)
    for chunk in claim_due(keeper):
        retry_chunk(chunk, keeper, "retry-1")
    for old, new in zip(letters, engine.letters(), strict=True):
        resolved = (old.error_class, new.status) == ("reference", "resolved")
        assert resolved or (new.error_class, new.error, new.status) == (old.error_class, old.error, old.status), new
        assert new.attempts > 0
    assert_books_have_no_fault(world)


def refused(row: Row) -> Row | None:
    """Return the row with None in a text that no column takes without a value, or else with a value of no type.

    None when the class has no field besides its key.
    """
    table = row_table(type(row))
    texts = sorted((name for name, hint in fields_of(type(row)) if hint is str), key=lambda name: name in table.key)
    others = [name for name, _ in fields_of(type(row)) if name not in table.key]
    chosen = {texts[0]: None} if texts else dict.fromkeys(others[:1], 1j)
    return cast(Row, replace(cast(Any, row), **chosen)) if chosen else None


def test_a_row_that_a_column_refuses_is_a_letter_and_no_other_is(room: Room, store: Store, engine: Engine) -> None:
    samples = zip(samples_of(room), outcomes_of(room), strict=True)
    refusable = [event.body for event, outcome in samples if any(map(refused, outcome.rows))]
    assert refusable, "no sample becomes a row with a field besides its key, so no row can be refused"
    transform, bad = transform_of(room), refusable[-1]

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
    assert_books_have_no_fault(world)


@pytest.fixture
def database(engine: PersistentEngine) -> AggregationEngine:
    return aggregation_of(engine)


def test_every_level_has_the_windows_of_the_samples(room: Room, database: AggregationEngine) -> None:
    store, ever = database.open(), (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
    assert isinstance(store, AggregatingStore)
    ingested(room, store)
    for one in load_aggregates(transform_of(room).row_classes):
        rows = [row for found in outcomes_of(room) for row in found.rows if type(row) is one.source]
        windows = windows_of(rows, one)
        assert windows, f"no sample becomes a row of {one.source.__name__}, so {one.name} has no window"
        run = planned_run(one.name, store.read_standing(one.name), "local", NOW)
        assert run is not None
        assert store.open_run(run)
        assert committed(store, run, staged_result(store, database, run, with_levels(windows)), LATER)
        for level in one.levels:
            values, of = sorted({getattr(each, level.key[0]) for each in windows}), cast(type[Any], level.of)
            found = [each for value in values for each in store.read_windows(of, value, *ever)]
            assert sorted(found, key=attrgetter(*level.key)) == rolled(windows, level), level.name
    store.close()


FAULTS = [None, None, Fault.NOT_REACHED, Fault.UNANSWERED, Fault.LOST, Fault.RIVAL, Fault.KILLED, Fault.KILLED_AFTER]


@dataclass(frozen=True)
class Delivery:
    """Events of one partition: the first lies `back` events before the end of those that are committed."""

    place: int
    back: int
    length: int


DELIVERIES = st.lists(
    st.builds(Delivery, st.integers(0, PARTITIONS - 1), st.integers(0, 12), st.integers(1, 40)), max_size=30
)


@pytest.mark.slow
@given(deliveries=DELIVERIES, faults=st.lists(st.sampled_from(FAULTS), max_size=30))
def test_any_delivery_with_any_crash_ends_as_one_pass_would(
    room: Room, rooms: Rooms, deliveries: list[Delivery], faults: list[Fault | None]
) -> None:
    transform, store, logs = transform_of(room), MemoryStore(rooms=rooms), logs_of(room)
    faulty, own = FaultyStore(store, on_commit=faults), stamps()
    whole = [Delivery(place, 0, 1_000) for place in range(PARTITIONS)] * (len(faults) + 1)
    for one in [*deliveries, *whole]:
        log, of = logs.get(str(one.place), []), partition(str(one.place))
        checkpoint = store.read_partition(of).checkpoint
        first = max(0, (checkpoint.sequence_number + 1 if checkpoint else 0) - one.back)
        if not log[first : first + one.length]:
            continue
        try:
            ingest_batch(batch(log[first : first + one.length], of), Ingestion(faulty, transform, own))
        except (InfrastructureFault, Killed):
            continue  # the host delivers the events again
    assert_equals_one_pass(store, logs, transform=transform)
    assert [books.balanced for books in store.read_ledgers()] == [True] * len(logs)
