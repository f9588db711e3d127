"""Values, keys and faults on the T-SQL server of MSSQL_CONNECTION, in tables of the tests.

The values that the server takes, refuses and returns, equal keys of a collation, races, and events that a check, a
trigger, XML or a clash of types refuses, which become letters.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from threading import Barrier
from typing import Annotated, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.ingest.ingest import Ingestion, ingest_batch
from core.model.events import Event
from core.model.rows import ReferenceKey, References, Row, Text, row_table
from core.model.transforms import Transform
from core.store.columns import row_of_json
from core.store.script import Script, Step, of_rows
from core.store.sqlserver.connections import Session
from core.store.sqlserver.database import SqlServerDatabase
from tests.fakes.builders import PATIENCE, batch, commit, event, letter, partition, settled, stamps
from tests.fakes.declared import appended, state
from tests.fakes.engines import CONNECTION, shared_schema
from tests.fakes.store import Store
from tests.sql.values import DECIMALS, EPOCH, LARGEST_DECIMAL, ROW_CLASSES, awkward_row_of, row_of

pytestmark = pytest.mark.server

EVENTS, PLACE = 20, 13


Measurement: Any = appended(
    "measurement", volts=int | None, site=str, order=Decimal | None, ratio=float, on_day=date, at=datetime | None
)
Device: Any = state("device", ("site", "number"), site=str, number=int, user=str | None, on=bool)
# Columns that change what is sent, one of them in a view, and a key that folds case.
appended("rounded", price=Decimal, note=str, at=datetime, ratio=float, fits=str)
state("folded", ("name",), name=str)
appended("looked_at", note=str)
# A table that a trigger guards, one with XML, and one whose column takes no number.
Guarded: Any = appended("guarded", note=str)
Document: Any = appended("document", text=str)
Clashing: Any = appended("clashing", day=int)
# The collation of a key folds case and its constraint has a name of its own, or it folds nothing but spaces at the end,
# or it has a byte for each letter.
Folding: Any = state("folding", ("name",), name=str, note=int)
Telling: Any = state("telling", ("name",), name=str, note=int)
Narrow: Any = state("narrow", ("name",), name=Annotated[str, Text(40, ascii=True)], note=int)
STATE = """stream_id int NOT NULL, partition_id varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number bigint NOT NULL, commit_number bigint NOT NULL"""
ROW, BY_CODE_POINT = f"{STATE}, ordinal smallint NOT NULL", "COLLATE Latin1_General_100_BIN2 NOT NULL"
TABLES = {
    "measurement": f"""{ROW}, volts int NOT NULL, site nvarchar(20) {BY_CODE_POINT}, [order] decimal(38, 10),
    ratio float NOT NULL, on_day date NOT NULL, [at] datetime2(6),
    CONSTRAINT pk_measurement PRIMARY KEY (stream_id, partition_id, sequence_number, ordinal),
    CONSTRAINT ck_measurement_volts CHECK (volts < 1000),
    CONSTRAINT uq_measurement_site UNIQUE (site),
    CONSTRAINT fk_measurement_stream FOREIGN KEY (stream_id) REFERENCES {{schema}}.event_stream (stream_id)""",
    "device": f"""site nvarchar(20) {BY_CODE_POINT}, number bigint NOT NULL, [user] nvarchar(200),
    [on] bit NOT NULL, {STATE}, CONSTRAINT pk_device PRIMARY KEY (site, number)""",
    "guarded": f"{ROW}, note nvarchar(20) NOT NULL",
    "document": f"{ROW}, text xml NOT NULL",
    "clashing": f"{ROW}, day date NOT NULL",
    "narrow": f"name varchar(40) {BY_CODE_POINT} CONSTRAINT pk_narrow PRIMARY KEY, note int NOT NULL, {STATE}",
    "folding": "name nvarchar(40) COLLATE Latin1_General_100_CI_AS NOT NULL CONSTRAINT key_of_folding PRIMARY KEY,"
    f" note int NOT NULL, {STATE}",
    "telling": f"name nvarchar(40) {BY_CODE_POINT} CONSTRAINT pk_telling PRIMARY KEY, note int NOT NULL, {STATE}",
}
TRIGGER = """CREATE TRIGGER {schema}.tr_guarded ON {schema}.guarded AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    IF EXISTS (SELECT 1 FROM inserted AS i WHERE i.note = N'throw') THROW 51100, 'this note is not admitted', 1;
    IF EXISTS (SELECT 1 FROM inserted AS i WHERE i.note = N'roll back')
    BEGIN
        RAISERROR('this note is not admitted', 16, 1);
        ROLLBACK TRANSACTION;
    END;
    IF EXISTS (SELECT 1 FROM inserted AS i WHERE i.note = N'raise') RAISERROR('this note is not admitted', 16, 1);
END;"""


@pytest.fixture
def own_tables(server_session: Session) -> Iterator[Session]:
    """Return the session, with the tables of these row classes in the process's own schema."""
    schema = shared_schema()
    for table, columns in TABLES.items():
        server_session.run(f"SET NOCOUNT ON; CREATE TABLE {schema}.{table} ({columns.format(schema=schema)});")
    trigger = TRIGGER.format(schema=schema).replace("'", "''")
    server_session.run(f"SET NOCOUNT ON; EXEC(N'{trigger}');")
    yield server_session
    for table in TABLES:
        server_session.run(f"SET NOCOUNT ON; DROP TABLE {schema}.{table};")


def ingest(
    store: Store, row_of: Callable[[int], Row], first: int = 0, place: str = "0", seed: int = 0, events: int = EVENTS
) -> None:
    """Ingest a batch of events, each with this row of its number."""

    def rows_of(given: Event, references: References) -> list[Row]:
        return [row_of(given.sequence_number)]

    means = Ingestion(store, Transform("test/1", rows_of), stamps(seed))
    ingest_batch(batch((event(first + number) for number in range(events)), partition(place)), means)


def written(session: Session, table: str) -> list[int]:
    text = f"SELECT t.sequence_number FROM {shared_schema()}.{table} AS t ORDER BY t.sequence_number;"
    return [number for (number,) in session.run(text)[-1]]


def refused(session: Session) -> list[tuple[int, str]]:
    text = "SELECT d.sequence_number, d.error_class, d.error FROM {}.event_hub_dead_letter AS d"
    found = session.run(f"{text.format(shared_schema())} ORDER BY d.sequence_number;")[-1]
    assert all(error for _, _, error in found)
    return [(number, error_class) for number, error_class, _ in found]


def states(session: Session, table: str) -> dict[str, int]:
    return dict(session.run(f"SELECT t.name, t.note FROM {shared_schema()}.{table} AS t;")[-1])


def balanced(store: Store) -> list[bool]:
    return [books.balanced for books in store.read_ledgers()]


def measured(number: int, **changed: object) -> Any:
    usual = Measurement(5, f"site-{number}", Decimal("1.5"), 0.5, date(2026, 1, 2), EPOCH)
    return replace(usual, **changed)


REFUSED: dict[str, dict[str, object]] = {
    "a check": {"volts": 1_000},
    "nothing": {"volts": None},
    "a value that is taken": {"site": "site-2"},
    "a number of 33 bits": {"volts": 2**32},
    "a number of 65 bits": {"volts": 2**63},
    "a text too long": {"site": "x" * 21},
    "a text far too long": {"site": "x" * 5_000},
    "a number too large": {"order": Decimal(10) ** 30},
    "a number too fine": {"order": Decimal("0.00000000001")},
    "no number": {"order": Decimal("NaN")},
    "a number whose text fills the memory": {"order": Decimal("1E-4000")},
    "no number in a text": {"site": float("nan")},
    "a text for a number": {"volts": "many"},
}


@pytest.mark.parametrize("place", [3, 20, 39])
@pytest.mark.parametrize("case", REFUSED)
def test_a_row_that_the_server_refuses_becomes_a_letter_and_no_other(
    server_store: Store, own_tables: Session, case: str, place: int
) -> None:
    ingest(server_store, lambda number: measured(number, **(REFUSED[case] if number == place else {})), events=40)
    assert refused(own_tables) == [(place, "refused")]
    assert written(own_tables, "measurement") == [number for number in range(40) if number != place]
    assert balanced(server_store) == [True]


@pytest.mark.parametrize("how", ["throw", "roll back"])
def test_an_event_that_a_trigger_refuses_is_a_letter_and_no_other(
    server_store: Store, own_tables: Session, how: str
) -> None:
    ingest(server_store, lambda number: Guarded(how if number == PLACE else "fine"))
    assert refused(own_tables) == [(PLACE, "refused")]
    assert written(own_tables, "guarded") == [number for number in range(EVENTS) if number != PLACE]
    assert balanced(server_store) == [True]


def test_an_error_that_a_trigger_raises_without_a_rollback_leaves_each_event_accounted_for_once(
    server_store: Store, own_tables: Session
) -> None:
    """RAISERROR does not honor XACT_ABORT: the commit stands, unless the driver cancels the batch before its end."""
    ingest(server_store, lambda number: Guarded("raise" if number == PLACE else "fine"))
    letters = [number for number, _ in refused(own_tables)]
    assert sorted([*letters, *written(own_tables, "guarded")]) == list(range(EVENTS))
    assert letters in ([], [PLACE])
    assert balanced(server_store) == [True]


def test_a_text_that_is_no_xml_is_a_letter(server_store: Store, own_tables: Session) -> None:
    texts = {3: "<a", 7: "<a></b>", 11: "<\x01/>", PLACE: "<a>&nbsp;</a>"}
    ingest(server_store, lambda number: Document(texts.get(number, "<a/>")))
    assert refused(own_tables) == [(number, "refused") for number in texts]
    assert written(own_tables, "document") == [number for number in range(EVENTS) if number not in texts]


def test_a_type_that_the_column_does_not_take_refuses_the_events_and_holds_no_partition(
    server_store: Store, own_tables: Session
) -> None:
    ingest(server_store, Clashing, events=3)
    assert refused(own_tables) == [(number, "refused") for number in range(3)]
    assert balanced(server_store) == [True]


def test_keys_that_a_collation_takes_for_one_end_as_letters_and_stop_no_partition(
    server_store: Store, own_tables: Session
) -> None:
    """Within one batch, and against a key that stands since the batch before."""
    ingest(server_store, lambda number: Folding("A" if number == 7 else "a", number))
    assert refused(own_tables) == [(7, "refused")]
    ingest(server_store, lambda number: Folding("A" if number == 33 else f"b{number}", number), first=EVENTS)
    assert refused(own_tables) == [(7, "refused"), (33, "refused")]
    kept = {f"b{number}": number for number in range(20, 40) if number != 33}
    assert states(own_tables, "folding") == {"a": 19, **kept}
    assert balanced(server_store) == [True]


def test_a_key_that_ends_with_a_space_is_a_letter_before_the_server_sees_it(
    server_store: Store, own_tables: Session
) -> None:
    ingest(server_store, lambda number: Telling("a " if number == 7 else "a", number))
    assert refused(own_tables) == [(7, "refused")]
    assert states(own_tables, "telling") == {"a": 19}


def test_a_key_that_is_not_of_ascii_finds_no_state_of_similar_letters(server_store: Store, own_tables: Session) -> None:
    """A varchar takes the wide letter for the plain one."""
    ingest(server_store, lambda number: Narrow("a", number))
    with closing(SqlServerDatabase(CONNECTION, schema=shared_schema())) as database:
        for keys, found in (('[["a"]]', [("a", 19)]), ('[["\uff41"], ["\u00e4"]]', [])):
            assert [tuple(row) for row in database.ask(of_rows("select_states", Narrow), keys=keys)] == found


@pytest.mark.parametrize("row_class", [Folding, Telling])
def test_partitions_that_make_the_same_states_at_once_commit_all_of_them_without_a_letter(
    own_tables: Session,
    server_store: Store,
    row_class: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Every second partition has them in the opposite order: locks are taken by the keys, so none of them cross."""
    schema, ready = shared_schema(), Barrier(4)
    stores = [Store(SqlServerDatabase(CONNECTION, schema=schema)).patient(PATIENCE) for _ in range(4)]
    server_store.read_partition(partition())

    def make(at: int) -> None:
        for turn in range(5):
            ready.wait()
            first = turn * EVENTS
            sign, start = (1, 0) if at % 2 else (-1, 2 * first + EVENTS - 1)
            names = {number: str(start + sign * number) for number in range(first, first + EVENTS)}

            def row_of_name(number: int, of: dict[int, str] = names) -> Row:
                made: Row = row_class(of[number], number)
                return made

            ingest(stores[at], row_of_name, first, str(at), at * 10 + turn)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(make, range(4)))
    assert refused(own_tables) == []
    assert len(states(own_tables, row_table(row_class).name)) == 5 * EVENTS
    assert balanced(server_store) == [True] * 4
    assert "locks crossed" not in caplog.text
    for store in stores:
        store.close()


@given(
    DECIMALS,
    st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False, min_value=-1e300, max_value=1e300),
    st.dates(),
    st.datetimes(timezones=st.just(UTC)),
)
@example(LARGEST_DECIMAL, 0.1, date.min, datetime.max.replace(tzinfo=UTC))
@example(LARGEST_DECIMAL.copy_negate(), 1e-300, date.max, datetime.min.replace(tzinfo=UTC))
@settings(max_examples=25)
def test_values_of_every_type_are_read_back_equal(
    server_store: Store, own_tables: Session, order: Decimal, ratio: float, on_day: date, at: datetime
) -> None:
    state = server_store.read_partition(partition())
    number = 0 if state.checkpoint is None else state.checkpoint.sequence_number + 1
    row = measured(number, order=order, ratio=ratio, on_day=on_day, at=at)
    server_store.commit_batch(commit(state, number, number, settled({number: [row]})))
    ((kept_order, kept_ratio, kept_day, kept_at),) = own_tables.run(
        f"SELECT m.[order], m.ratio, m.on_day, m.[at] FROM {shared_schema()}.measurement AS m"
        f" WHERE m.sequence_number = {number};"
    )[-1]
    assert (kept_order, kept_ratio, kept_day, kept_at) == (order, ratio, on_day, at.replace(tzinfo=None))


FLOATS = (0.1 + 0.2, 1 / 3, 2.2250738585072014e-308, -1.7976931348623157e308, 123456789.12345679, 1e22, 3.0, 0.0)


def test_a_number_that_a_replay_retracts_is_exact(server_store: Store, own_tables: Session) -> None:
    order = LARGEST_DECIMAL.copy_negate()
    rows = {number: [measured(number, ratio=ratio, order=order)] for number, ratio in enumerate(FLOATS)}
    state = server_store.read_partition(partition())
    server_store.commit_batch(commit(state, 0, len(FLOATS) - 1, settled(rows)))
    place = {"stream_id": state.stream_id, "partition_id": "0", "commit_number": 2}
    numbers = "[" + ", ".join(f"[{number}]" for number in rows) + "]"
    retract = Step(of_rows("retract", Measurement), {**place, "sequence_numbers": numbers})
    server_store.database.run(Script("a test", (retract,)))
    documents = own_tables.run(f"SELECT r.row FROM {shared_schema()}.retracted_row AS r ORDER BY r.sequence_number;")[
        -1
    ]
    assert [[row_of_json(Measurement, text)] for (text,) in documents] == list(rows.values())


CHANGING_TABLES = """
CREATE TABLE {schema}.rounded (
    price decimal(9, 2) NOT NULL, note varchar(20) COLLATE Latin1_General_100_CI_AS NOT NULL,
    [at] datetime2(0) NOT NULL, ratio real NOT NULL, fits varchar(20) COLLATE Latin1_General_100_CI_AS_SC_UTF8 NOT NULL
);
CREATE TABLE {schema}.folded (name nvarchar(20) COLLATE Latin1_General_100_CI_AS NOT NULL PRIMARY KEY);
EXEC(N'CREATE VIEW {schema}.looked_at AS SELECT r.note FROM {schema}.rounded AS r;');
"""


def test_columns_that_change_what_is_sent_are_named_when_the_store_opens(
    server_session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    schema = shared_schema()
    server_session.run(f"SET NOCOUNT ON; {CHANGING_TABLES.format(schema=schema)}")
    opened = Store(SqlServerDatabase(CONNECTION, schema=schema))
    try:
        opened.read_partition(partition())
    finally:
        opened.close()
        server_session.run(
            f"SET NOCOUNT ON; DROP VIEW {schema}.looked_at; DROP TABLE {schema}.rounded; DROP TABLE {schema}.folded;"
        )
    (record,) = [one for one in caplog.records if one.__dict__.get("action") == "check_columns"]
    assert record.__dict__["columns"] == [
        "rounded.price is decimal(9, 2): decimal(38, 10) holds every value",
        "rounded.note is varchar: nvarchar holds every value",
        "rounded.at is datetime2(0): datetime2(6) holds every value",
        "rounded.ratio is real: float holds every value",
        "folded.name has the collation Latin1_General_100_CI_AS: Latin1_General_100_BIN2 tells every two keys apart",
        "looked_at.note is varchar: nvarchar holds every value",
    ]


def test_a_state_of_two_columns_and_awkward_names_is_found(server_store: Store, own_tables: Session) -> None:
    devices = [Device("a", 1, 'say "no"', True), Device("a", 2, None, False), Device('"\\', -(2**63), "b\n", True)]
    for number, rows in enumerate([devices, [replace(devices[0], user="\x01", on=False)]]):
        outcome = settled({number: rows})
        server_store.commit_batch(commit(server_store.read_partition(partition()), number, number, outcome))
    wanted = [ReferenceKey.of(one) for one in (*devices, Device("A", 1, None, True), Device("a", 3, None, True))]
    found = server_store.read_references(wanted)
    assert set(found.values()) == {replace(devices[0], user="\x01", on=False), *devices[1:]}


@pytest.mark.parametrize("row_class", ROW_CLASSES)
def test_rows_with_quotes_and_escapes_are_taken_as_they_are(
    server_store: Store, server_session: Session, row_class: type
) -> None:
    outcome = settled({0: [row_of(row_class)], 1: [awkward_row_of(row_class)]})
    assert server_store.commit_batch(commit(server_store.read_partition(partition()), 0, 1, outcome)) == 1
    table = row_table(row_class)
    kept = server_session.run(
        f"SELECT t.[{table.columns[0]}] FROM {shared_schema()}.{table.name} AS t ORDER BY t.sequence_number;"
    )[-1]
    assert [value for (value,) in map(tuple, kept)] == [
        getattr(row, table.columns[0]) for row in (row_of(row_class), awkward_row_of(row_class))
    ]


AWKWARD = (
    *("", "x" * 5_000, '"' * 5_000, "\\" * 5_000, "a\x00b\x1f", "\ufdd0\ufffe\uffff"),
    *("👩‍👩‍👧" * 2_000, "\r\n\t\u2028"),
)


def test_texts_and_bodies_of_many_letters_are_each_kept_whole(server_store: Store, server_session: Session) -> None:
    keys = [*AWKWARD, *("a key" for _ in range(192))]
    bodies = [bytes([number % 256]) * 3_000 for number in range(200)]
    letters = [
        replace(letter(event(number, bodies[number], key=text)), error=text[:1_000]) for number, text in enumerate(keys)
    ]
    server_store.commit_batch(commit(server_store.read_partition(partition()), 0, 199, settled({}, letters=letters)))
    columns = "d.partition_key, d.error, d.body, d.properties"
    kept = server_session.run(
        f"SELECT {columns} FROM {shared_schema()}.event_hub_dead_letter AS d ORDER BY d.sequence_number;"
    )[-1]
    wanted = [(text, text[:1_000], body, "{}") for text, body in zip(keys, bodies, strict=True)]
    assert [(key, error, bytes(body), properties) for key, error, body, properties in kept] == wanted
