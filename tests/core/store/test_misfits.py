"""migrations.py: columns that would change a value in silence are named when the store opens, and no others."""

import logging
import re
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any

import pytest

from core.errors import SchemaMismatch
from core.model.rows import Text, appended_to, row_table, state_of
from core.store.columns import fields_of
from core.store.migrations import check_columns
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlserver.connections import Access
from core.store.sqlserver.database import SqlServerDatabase
from core.store.sqlserver.schema import misfit
from tests.fakes.builders import partition
from tests.fakes.declared import forgotten, state
from tests.fakes.engines import SqliteEngine
from tests.fakes.odbc_driver import FakeDriver
from tests.fakes.rooms import all_migrations
from tests.fakes.store import Store
from tests.sql.values import ROW_CLASSES

COLLATION = "SQL_Latin1_General_CP1_CI_AS"
BY_CODE_POINT = "Latin1_General_100_BIN2"
FOUND = "FROM OPENJSON(@tables)"


@appended_to("parcel")
@dataclass(frozen=True, slots=True)
class Parcel:
    sender: str | None
    weight: int
    insured: bool | None
    length: float
    price: Decimal | None
    sent_at: datetime
    on_day: date | None


@state_of("depot", key=("depot_id",))
@dataclass(frozen=True, slots=True)
class Depot:
    depot_id: str
    place: str


def named(caplog: pytest.LogCaptureFixture) -> list[list[str]]:
    """The columns that each warning names."""
    found = [record.__dict__ for record in caplog.records if record.__dict__.get("action") == "check_columns"]
    assert all(one["levelno"] == logging.WARNING for one in found)
    return [one["columns"] for one in found]


def faults_on_server(caplog: pytest.LogCaptureFixture, *columns: tuple[Any, ...]) -> list[str]:
    caplog.clear()
    check_columns(lambda _: columns, (), misfit)
    return [fault for faults in named(caplog) for fault in faults]


FITTING: dict[str, list[tuple[str, int, int, str | None]]] = {
    "sender": [("nvarchar", 0, 0, COLLATION), ("varchar", 0, 0, "Latin1_General_100_CI_AS_SC_UTF8")],
    "weight": [("bigint", 19, 0, None), ("tinyint", 3, 0, None), ("decimal", 9, 2, None)],
    "insured": [("bit", 1, 0, None), ("int", 10, 0, None)],
    "length": [("float", 53, 0, None)],
    "price": [("decimal", 38, 10, None), ("numeric", 12, 10, None), ("decimal", 38, 12, None)],
    "sent_at": [("datetime2", 27, 7, None), ("datetime2", 26, 6, None)],
    "on_day": [("date", 10, 0, None)],
}
CHANGING: dict[str, list[tuple[str, int, int, str]]] = {
    "sender": [
        (kind, 0, 0, f"is {kind}: nvarchar") for kind in ("varchar", "char", "nchar", "ntext", "uniqueidentifier")
    ],
    "weight": [("real", 24, 0, "is real: bigint"), ("bit", 1, 0, "is bit: bigint"), ("nvarchar", 0, 0, "is nvarchar:")],
    "insured": [("float", 53, 0, "is float: bit")],
    "length": [("real", 24, 0, "is real: float"), ("decimal", 38, 10, "is decimal(38, 10): float")],
    "price": [
        ("decimal", 9, 2, "is decimal(9, 2): decimal(38, 10)"), ("money", 19, 4, "is money: decimal(38, 10)"),
        ("float", 53, 0, "is float: decimal(38, 10)"),
    ],
    "sent_at": [
        ("datetime2", 19, 0, "is datetime2(0): datetime2(7)"), ("datetime2", 25, 5, "is datetime2(5): datetime2(7)"),
        ("datetime", 23, 3, "is datetime: datetime2(7)"), ("smalldatetime", 16, 0, "is smalldatetime: datetime2(7)"),
        ("datetimeoffset", 34, 7, "is datetimeoffset: datetime2(7)"),
        ("date", 10, 0, "is date: datetime2(7)"),
    ],
    "on_day": [("datetime", 23, 3, "is datetime: date")],
}  # fmt: skip


@pytest.mark.parametrize("name", FITTING)
def test_on_a_server_a_type_that_keeps_or_refuses_every_value_is_not_named(
    caplog: pytest.LogCaptureFixture, name: str
) -> None:
    for kind, precision, scale, collation in FITTING[name]:
        assert faults_on_server(caplog, ("parcel", name, kind, precision, scale, collation)) == []


@pytest.mark.parametrize("name", CHANGING)
def test_on_a_server_a_type_that_rounds_cuts_or_folds_is_named_with_one_that_does_not(
    caplog: pytest.LogCaptureFixture, name: str
) -> None:
    for kind, precision, scale, fault in CHANGING[name]:
        (found,) = faults_on_server(caplog, ("parcel", name, kind, precision, scale, COLLATION))
        assert found.startswith(f"parcel.{name} {fault}")
        assert found.endswith(" holds every value")


@pytest.mark.parametrize("collation", [COLLATION, "Latin1_General_100_CS_AS_SC"])
def test_on_a_server_a_key_whose_collation_folds_is_named_and_any_other_text_may_fold(
    caplog: pytest.LogCaptureFixture, collation: str
) -> None:
    columns = [("depot", name, "nvarchar", 0, 0, collation) for name in ("depot_id", "place")]
    assert faults_on_server(caplog, *columns) == [
        f"depot.depot_id has the collation {collation}: {BY_CODE_POINT} tells every two keys apart"
    ]
    for kind, binary in (("nvarchar", BY_CODE_POINT), ("varchar", f"{BY_CODE_POINT}_UTF8")):
        assert faults_on_server(caplog, ("depot", "depot_id", kind, 0, 0, binary)) == []


def test_on_a_server_our_own_tables_have_no_such_column(caplog: pytest.LogCaptureFixture) -> None:
    made = " ".join(migration.text for migration in all_migrations("sqlserver"))
    columns = []
    for row_class in ROW_CLASSES:
        table = row_table(row_class).name
        (body,) = re.findall(rf"CREATE TABLE hubledger\.{table} \((.*?)^\)", made, re.S | re.M)
        for name, kind, scale, collation in re.findall(r"^ +(\w+) +(\w+)(?:\((\d+)\))?(?: COLLATE (\w+))?", body, re.M):
            columns.append((table, name, kind, 0, int(scale or 0), collation or COLLATION))
    assert {(one[0], one[1]) for one in columns} >= {
        (row_table(each).name, name) for each in ROW_CLASSES for name, _ in fields_of(each)
    }
    check_columns(lambda _: columns, (), misfit)
    assert named(caplog) == []


def test_a_server_is_looked_at_once_in_a_process(driver: FakeDriver, caplog: pytest.LogCaptureFixture) -> None:
    store = Store(SqlServerDatabase("SERVER=host;UID=app;PWD=secret", access=Access(lambda: driver)))
    driver.server.answers[FOUND] = [("parcel", "price", "decimal", 9, 2, None), ("parcel", "ours", "real", 24, 0, None)]
    for _ in range(2):
        store.read_partition(partition())
        store.close()
    assert named(caplog) == [["parcel.price is decimal(9, 2): decimal(38, 10) holds every value"]]
    ((_, (tables,)),) = [one for one in driver.server.executed if FOUND in one[0]]
    assert '["parcel"]' in tables


def test_an_embedded_store_names_the_columns_that_make_numbers_of_texts(
    sqlite: SqliteEngine, caplog: pytest.LogCaptureFixture
) -> None:
    sqlite.sql(
        "CREATE TABLE parcel (sender DECIMAL(10, 2), weight REAL, insured TEXT, length TEXT, price NUMERIC,"
        " sent_at DATETIME, on_day DATE)"
    )
    sqlite.sql("CREATE TABLE depot (depot_id VARCHAR(20) PRIMARY KEY, place BLOB)")
    for _ in range(2):
        sqlite.open().read_partition(partition())
    assert named(caplog)[0] == [
        "parcel.sender is DECIMAL(10, 2): TEXT holds every value",
        "parcel.weight is REAL: INTEGER holds every value",
        "parcel.insured is TEXT: INTEGER holds every value",
        "parcel.length is TEXT: REAL holds every value",
        "parcel.price is NUMERIC: TEXT holds every value",
    ]


def test_an_embedded_store_whose_columns_fit_names_none(sqlite: SqliteEngine, caplog: pytest.LogCaptureFixture) -> None:
    sqlite.sql(
        "CREATE TABLE parcel (sender NVARCHAR(40), weight BIGINT, insured BOOLEAN, length DOUBLE, price TEXT,"
        " sent_at DATETIME, on_day DATE)"
    )
    sqlite.open().read_partition(partition())
    assert named(caplog) == []


def test_a_server_without_the_tables_of_the_transform_does_not_open_until_they_fit(driver: FakeDriver) -> None:
    database = SqlServerDatabase("SERVER=host;UID=app;PWD=secret", access=Access(lambda: driver), needed=(Depot,))
    lineage = ("stream_id", "partition_id", "sequence_number", "commit_number")
    columns = [("depot", name, "nvarchar", 0, 0, BY_CODE_POINT, 1) for name in (*lineage, "DEPOT_ID", "place")]
    for found, fault in (
        ([], "there is no table depot, or the app has no right on it"),
        (columns[1:-1], "depot has no column stream_id; depot has no column place"),
        (
            [*columns, ("depot", "owner", "int", 0, 0, None, 1)],
            "depot.owner needs a value, and Depot has no such field",
        ),
    ):
        driver.server.answers[FOUND] = found
        with pytest.raises(SchemaMismatch, match=f"do not fit the transform: {fault}; add a migration"):
            database.ask("read_commit_numbers")
    driver.server.answers[FOUND] = [*columns, ("depot", "owner", "int", 0, 0, None, 0)]
    database.ask("read_commit_numbers")
    database.close()


def test_on_a_server_a_text_that_is_declared_as_ascii_fits_a_column_of_bytes(caplog: pytest.LogCaptureFixture) -> None:
    with forgotten():
        fields = {name: Annotated[str, Text(8, ascii=name == "code")] for name in ("code", "word")}
        state("marked", ("code",), **fields)
        columns = [("marked", name, "varchar", 0, 0, BY_CODE_POINT) for name in fields]
        check_columns(lambda _: columns, (), misfit)
    assert named(caplog) == [["marked.word is varchar: nvarchar holds every value"]]


@pytest.mark.parametrize(
    ("unique", "fault"),
    [
        ("PRIMARY KEY (place)", "depot is not unique by depot_id"),
        ("PRIMARY KEY (depot_id, place)", "depot is not unique by depot_id"),
        ("UNIQUE (place), UNIQUE (depot_id, stream_id)", "depot is not unique by depot_id"),
        ("PRIMARY KEY (depot_id)", None),
        ("PRIMARY KEY (place), UNIQUE (DEPOT_ID)", None),
        ("CHECK (place <> '')", None),  # as a view
    ],
)
def test_a_store_whose_table_has_a_different_key_than_its_class_does_not_open(
    sqlite: SqliteEngine, unique: str, fault: str | None
) -> None:
    lineage = "stream_id INTEGER, partition_id TEXT, sequence_number INTEGER, commit_number INTEGER"
    sqlite.sql(f"CREATE TABLE depot (depot_id TEXT, place TEXT, {lineage}, {unique})")
    database = SqliteDatabase(sqlite.path, needed=(Depot,))
    if fault is None:
        database.ask("read_commit_numbers")
    else:
        with pytest.raises(SchemaMismatch, match=f"do not fit the transform: {fault}; add a migration"):
            database.ask("read_commit_numbers")
    database.close()


def test_a_server_whose_appended_table_is_not_unique_by_place_does_not_open(driver: FakeDriver) -> None:
    database = SqlServerDatabase("SERVER=host;UID=app;PWD=secret", access=Access(lambda: driver), needed=(Parcel,))
    names = (*row_table(Parcel).lineage, *row_table(Parcel).columns)
    place = {"stream_id": "1", "partition_id": "1,2", "sequence_number": "1,2", "ordinal": "1"}
    columns = [("parcel", name, "nvarchar", 0, 0, BY_CODE_POINT, 0, place.get(name)) for name in names]
    driver.server.answers[FOUND] = columns
    database.ask("read_commit_numbers")
    database.close()
    driver.server.answers[FOUND] = [(*one[:-1], None if one[1] == "ordinal" else one[-1]) for one in columns]
    other = SqlServerDatabase("SERVER=host;UID=app;PWD=secret", access=Access(lambda: driver), needed=(Parcel,))
    with pytest.raises(
        SchemaMismatch, match="parcel is not unique by stream_id, partition_id, sequence_number, ordinal"
    ):
        other.ask("read_commit_numbers")
    other.close()


def test_a_number_that_sqlite_keeps_as_the_row_is_a_key(sqlite: SqliteEngine) -> None:
    with forgotten():
        counted = state("counted", ("number",), number=int, place=str)
        lineage = "stream_id INTEGER, partition_id TEXT, sequence_number INTEGER, commit_number INTEGER"
        sqlite.sql(f"CREATE TABLE counted (number INTEGER PRIMARY KEY, place TEXT UNIQUE, {lineage})")
        database = SqliteDatabase(sqlite.path, needed=(counted,))
        database.ask("read_commit_numbers")
        database.close()
