"""Values that a T-SQL server takes, refuses and gives back, in tables of the tests; MSSQL_CONNECTION names it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.ingest.ingest import Ingestion, ingest_batch
from core.model.rows import ReferenceKey, Row, appended_to, row_table, state_of
from core.model.transforms import Transform
from core.store.columns import row_of_json
from core.store.script import Script, Step, of_rows
from core.store.sqlserver.connections import Session
from core.store.sqlserver.database import SqlServerDatabase
from tests.fakes.builders import batch, commit, event, letter, partition, settled, stamps
from tests.fakes.server_engine import CONNECTION, shared_schema
from tests.fakes.store import Store
from tests.sql.values import DECIMALS, EPOCH, LARGEST_DECIMAL, ROW_CLASSES, awkward_row_of, row_of

pytestmark = pytest.mark.server


@appended_to("measurement")
@dataclass(frozen=True, slots=True)
class Measurement:
    """A row of a table of one's own, with a field that is named as a keyword is."""

    volts: int | None
    site: str
    order: Decimal | None
    ratio: float
    on_day: date
    at: datetime | None


@state_of("device", key=("site", "number"))
@dataclass(frozen=True, slots=True)
class Device:
    """A state of a key of two columns."""

    site: str
    number: int
    user: str | None
    on: bool


@appended_to("rounded")
@dataclass(frozen=True, slots=True)
class Rounded:
    """A row whose columns change what is sent."""

    price: Decimal
    note: str
    at: datetime
    ratio: float
    fits: str


@state_of("folded", key=("name",))
@dataclass(frozen=True, slots=True)
class Folded:
    """A state whose key folds case."""

    name: str


@appended_to("looked_at")
@dataclass(frozen=True, slots=True)
class LookedAt:
    """A row of a view."""

    note: str


OWN_TABLES = """
CREATE TABLE {schema}.measurement (
    stream_id int NOT NULL, partition_id varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number bigint NOT NULL, ordinal smallint NOT NULL, commit_number bigint NOT NULL,
    volts int NOT NULL, site nvarchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL, [order] decimal(38, 10),
    ratio float NOT NULL, on_day date NOT NULL, [at] datetime2(7),
    CONSTRAINT pk_measurement PRIMARY KEY (stream_id, partition_id, sequence_number, ordinal),
    CONSTRAINT ck_measurement_volts CHECK (volts < 1000),
    CONSTRAINT uq_measurement_site UNIQUE (site),
    CONSTRAINT fk_measurement_stream FOREIGN KEY (stream_id) REFERENCES {schema}.event_stream (stream_id)
);
CREATE TABLE {schema}.device (
    site nvarchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL, number bigint NOT NULL, [user] nvarchar(200),
    [on] bit NOT NULL, stream_id int NOT NULL, partition_id varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number bigint NOT NULL, commit_number bigint NOT NULL,
    CONSTRAINT pk_device PRIMARY KEY (site, number)
);
"""


@pytest.fixture
def own_tables(server_session: Session) -> Iterator[Session]:
    """Return the session, with the tables of these row classes."""
    schema = shared_schema()
    server_session.run(f"SET NOCOUNT ON; {OWN_TABLES.format(schema=schema)}")
    yield server_session
    server_session.run(f"SET NOCOUNT ON; DROP TABLE {schema}.measurement; DROP TABLE {schema}.device;")


def measured(number: int, **changed: object) -> Measurement:
    usual = Measurement(5, f"site-{number}", Decimal("1.5"), 0.5, date(2026, 1, 2), EPOCH)
    return replace(usual, **changed)  # type: ignore[arg-type]


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
    def rows_of(given: object, _: object) -> list[Row]:
        number: int = given.sequence_number  # type: ignore[attr-defined]
        return [measured(number, **(REFUSED[case] if number == place else {}))]

    ingest_batch(
        batch(event(number) for number in range(40)), Ingestion(server_store, Transform("test/1", rows_of), stamps())
    )
    schema = shared_schema()
    (refused,) = own_tables.run(
        f"SELECT d.sequence_number, d.error_class, d.error FROM {schema}.event_hub_dead_letter AS d;"
    )[-1]
    assert (refused[0], refused[1], bool(refused[2])) == (place, "refused", True)
    rows = own_tables.run(f"SELECT m.sequence_number FROM {schema}.measurement AS m ORDER BY m.sequence_number;")[-1]
    assert [row[0] for row in rows] == [number for number in range(40) if number != place]
    assert [books.balanced for books in server_store.read_ledgers()] == [True]


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
        "rounded.at is datetime2(0): datetime2(7) holds every value",
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


AWKWARD = [
    "",
    "x" * 5_000,
    '"' * 5_000,
    "\\" * 5_000,
    "a\x00b\x1f",
    "\ufdd0\ufffe\uffff",
    "👩‍👩‍👧" * 2_000,
    "\r\n\t\u2028",
]


def test_a_text_that_a_column_can_hold_is_kept_as_it_was(server_store: Store, server_session: Session) -> None:
    given = [replace(letter(event(number, key=text)), error=text[:1_000]) for number, text in enumerate(AWKWARD)]
    last = len(AWKWARD) - 1
    server_store.commit_batch(commit(server_store.read_partition(partition()), 0, last, settled({}, letters=given)))
    kept = server_session.run(
        f"SELECT d.partition_key, d.error FROM {shared_schema()}.event_hub_dead_letter AS d ORDER BY d.sequence_number;"
    )[-1]
    assert kept == [(text, text[:1_000]) for text in AWKWARD]


def test_times_of_seven_digits_are_read_to_the_microsecond(server_store: Store, server_session: Session) -> None:
    """We write six digits, as Python has; what others write into our tables is read without the seventh."""
    server_store.commit_batch(commit(server_store.read_partition(partition()), 0, 0))
    server_session.run(
        f"UPDATE {shared_schema()}.event_hub_checkpoint"
        " SET enqueued_at = CONVERT(datetime2(7), '2026-01-01T00:00:00.1234569', 126);"
    )
    checkpoint = server_store.read_partition(partition()).checkpoint
    assert checkpoint is not None
    assert checkpoint.enqueued_at == datetime(2026, 1, 1, 0, 0, 0, 123_456, tzinfo=UTC)


def test_many_letters_with_long_texts_are_each_kept_whole(server_store: Store, server_session: Session) -> None:
    letters = [letter(event(number, bytes([number % 256]) * 3_000)) for number in range(200)]
    server_store.commit_batch(commit(server_store.read_partition(partition()), 0, 199, settled({}, letters=letters)))
    kept = server_session.run(
        f"SELECT d.body, d.properties FROM {shared_schema()}.event_hub_dead_letter AS d ORDER BY d.sequence_number;"
    )[-1]
    assert [(bytes(body), text) for body, text in kept] == [(one.event.body, "{}") for one in letters]
