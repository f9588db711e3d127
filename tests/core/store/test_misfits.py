"""migrations.py: columns that would change a value in silence are named when the store opens, and no others."""

import logging
import re
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any

import pytest

from core.errors import SchemaMismatch
from core.model.rows import Row, Text, appended_to, row_table, state_of
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
LINEAGE = "stream_id INTEGER, partition_id TEXT, sequence_number INTEGER, commit_number INTEGER"


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
    """Take the columns that each warning names."""
    found = [record.__dict__ for record in caplog.records if record.__dict__.get("action") == "check_columns"]
    caplog.clear()
    assert all(one["levelno"] == logging.WARNING for one in found)
    return [one["columns"] for one in found]


def faults_on_server(caplog: pytest.LogCaptureFixture, *columns: tuple[Any, ...]) -> list[str]:
    check_columns(lambda _: columns, (), misfit)
    return [fault for faults in named(caplog) for fault in faults]


def server_with(driver: FakeDriver, needed: type[Row]) -> SqlServerDatabase:
    return SqlServerDatabase("SERVER=host;UID=app;PWD=secret", access=Access(lambda: driver), needed=(needed,))


def assert_refuses(database: SqlServerDatabase | SqliteDatabase, fault: str) -> None:
    with pytest.raises(SchemaMismatch, match=f"do not fit the transform: {fault}; add a migration"):
        database.ask("read_commit_numbers")


# Of each column: the kinds that keep or refuse every value, and those that change one, with the fault.
KINDS: dict[str, tuple[str, str]] = {
    "sender": (
        "nvarchar varchar:Latin1_General_100_CI_AS_SC_UTF8",
        "varchar=nvarchar char=nvarchar nchar=nvarchar ntext=nvarchar uniqueidentifier=nvarchar",
    ),
    "weight": ("bigint tinyint decimal(9,2)", "real=bigint bit=bigint nvarchar=bigint"),
    "insured": ("bit int", "float=bit"),
    "length": ("float", "real=float decimal(38,10)=float"),
    "price": (
        "decimal(38,10) numeric(12,10) decimal(38,12)",
        "decimal(9,2)=decimal(38,10) money=decimal(38,10) float=decimal(38,10)",
    ),
    "sent_at": (
        "datetime2(27,7) datetime2(26,6)",
        "datetime2(19,0)=datetime2(7) datetime2(25,5)=datetime2(7) datetime=datetime2(7) smalldatetime=datetime2(7)"
        " datetimeoffset=datetime2(7) date=datetime2(7)",
    ),
    "on_day": ("date", "datetime=date"),
}


@pytest.mark.parametrize("name", KINDS)
def test_on_a_server_a_type_that_rounds_cuts_or_folds_is_named_with_one_that_does_not(
    caplog: pytest.LogCaptureFixture, name: str
) -> None:
    def faults_of(kind: str) -> list[str]:
        word, precision, scale, collation = re.fullmatch(r"(\w+)(?:\((\d+),(\d+)\))?(?::(\w+))?", kind).groups()  # type: ignore[union-attr]
        column = ("parcel", name, word, int(precision or 0), int(scale or 0), collation or COLLATION)
        return faults_on_server(caplog, column)

    fitting, changing = KINDS[name]
    for kind in fitting.split():
        assert faults_of(kind) == []
    for kind, _, better in (one.partition("=") for one in changing.split()):
        shown = re.sub(r"\(\d+,", "(", kind) if kind.startswith("datetime2") else kind.replace(",", ", ")
        assert faults_of(kind) == [f"parcel.{name} is {shown}: {better.replace(',', ', ')} holds every value"]


def test_on_a_server_a_key_whose_collation_folds_is_named_and_any_other_text_may_fold(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for collation in (COLLATION, "Latin1_General_100_CS_AS_SC"):
        columns = [("depot", name, "nvarchar", 0, 0, collation) for name in ("depot_id", "place")]
        fault = f"depot.depot_id has the collation {collation}: {BY_CODE_POINT} tells every two keys apart"
        assert faults_on_server(caplog, *columns) == [fault]
    for kind, binary in (("nvarchar", BY_CODE_POINT), ("varchar", f"{BY_CODE_POINT}_UTF8")):
        assert faults_on_server(caplog, ("depot", "depot_id", kind, 0, 0, binary)) == []
    with forgotten():
        fields = {name: Annotated[str, Text(8, ascii=name == "code")] for name in ("code", "word")}
        state("marked", ("code",), **fields)
        bytes_of = [("marked", name, "varchar", 0, 0, BY_CODE_POINT) for name in fields]
        assert faults_on_server(caplog, *bytes_of) == ["marked.word is varchar: nvarchar holds every value"]


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
    assert faults_on_server(caplog, *columns) == []


def test_a_server_is_looked_at_once_in_a_process(driver: FakeDriver, caplog: pytest.LogCaptureFixture) -> None:
    store = Store(SqlServerDatabase("SERVER=host;UID=app;PWD=secret", access=Access(lambda: driver)))
    driver.server.answers[FOUND] = [("parcel", "price", "decimal", 9, 2, None), ("parcel", "ours", "real", 24, 0, None)]
    for _ in range(2):
        store.read_partition(partition())
        store.close()
    assert named(caplog) == [["parcel.price is decimal(9, 2): decimal(38, 10) holds every value"]]
    ((_, (tables,)),) = [one for one in driver.server.executed if FOUND in one[0]]
    assert '["parcel"]' in tables


CHANGED = {"sender": "TEXT", "weight": "INTEGER", "insured": "INTEGER", "length": "REAL", "price": "TEXT"}


@pytest.mark.parametrize(
    ("kinds", "fits"),
    [
        (("DECIMAL(10, 2)", "REAL", "TEXT", "TEXT", "NUMERIC"), False),
        (("NVARCHAR(40)", "BIGINT", "BOOLEAN", "DOUBLE", "TEXT"), True),
    ],
)
def test_an_embedded_store_names_the_columns_that_make_numbers_of_texts(
    sqlite: SqliteEngine, caplog: pytest.LogCaptureFixture, kinds: tuple[str, ...], fits: bool
) -> None:
    columns = dict(zip(CHANGED, kinds, strict=True))
    sqlite.sql(f"CREATE TABLE parcel ({', '.join(map(' '.join, columns.items()))}, sent_at DATETIME, on_day DATE)")
    sqlite.sql("CREATE TABLE depot (depot_id VARCHAR(20) PRIMARY KEY, place BLOB)")
    sqlite.open().read_partition(partition())
    faults = [f"parcel.{name} is {columns[name]}: {better} holds every value" for name, better in CHANGED.items()]
    assert named(caplog) == ([] if fits else [faults])


def test_a_server_without_the_tables_of_the_transform_does_not_open_until_they_fit(driver: FakeDriver) -> None:
    database = server_with(driver, Depot)
    lineage = ("stream_id", "partition_id", "sequence_number", "commit_number")
    columns = [("depot", name, "nvarchar", 0, 0, BY_CODE_POINT, 1) for name in (*lineage, "DEPOT_ID", "place")]
    owner = ("depot", "owner", "int", 0, 0, None)
    for found, fault in (
        ([], "there is no table depot, or the app has no right on it"),
        (columns[1:-1], "depot has no column stream_id; depot has no column place"),
        ([*columns, (*owner, 1)], "depot.owner needs a value, and Depot has no such field"),
    ):
        driver.server.answers[FOUND] = found
        assert_refuses(database, fault)
    driver.server.answers[FOUND] = [*columns, (*owner, 0)]
    database.ask("read_commit_numbers")


@pytest.mark.parametrize(
    ("unique", "fits"),
    [
        ("PRIMARY KEY (place)", False),
        ("PRIMARY KEY (depot_id, place)", False),
        ("UNIQUE (place), UNIQUE (depot_id, stream_id)", False),
        ("PRIMARY KEY (depot_id)", True),
        ("PRIMARY KEY (place), UNIQUE (DEPOT_ID)", True),
        ("CHECK (place <> '')", True),  # as a view
    ],
)
def test_a_store_whose_table_has_a_different_key_than_its_class_does_not_open(
    sqlite: SqliteEngine, unique: str, fits: bool
) -> None:
    sqlite.sql(f"CREATE TABLE depot (depot_id TEXT, place TEXT, {LINEAGE}, {unique})")
    database = SqliteDatabase(sqlite.path, needed=(Depot,))
    if fits:
        database.ask("read_commit_numbers")
    else:
        assert_refuses(database, "depot is not unique by depot_id")
    database.close()


def test_a_server_whose_appended_table_is_not_unique_by_place_does_not_open(driver: FakeDriver) -> None:
    names = (*row_table(Parcel).lineage, *row_table(Parcel).columns)
    place = {"stream_id": "1", "partition_id": "1,2", "sequence_number": "1,2", "ordinal": "1"}
    columns = [("parcel", name, "nvarchar", 0, 0, BY_CODE_POINT, 0, place.get(name)) for name in names]
    driver.server.answers[FOUND] = columns
    server_with(driver, Parcel).ask("read_commit_numbers")
    driver.server.answers[FOUND] = [(*one[:-1], None if one[1] == "ordinal" else one[-1]) for one in columns]
    fault = "parcel is not unique by stream_id, partition_id, sequence_number, ordinal"
    assert_refuses(server_with(driver, Parcel), fault)


def test_a_number_that_sqlite_keeps_as_the_row_is_a_key(sqlite: SqliteEngine) -> None:
    with forgotten():
        counted = state("counted", ("number",), number=int, place=str)
        sqlite.sql(f"CREATE TABLE counted (number INTEGER PRIMARY KEY, place TEXT UNIQUE, {LINEAGE})")
        database = SqliteDatabase(sqlite.path, needed=(counted,))
        database.ask("read_commit_numbers")
        database.close()
