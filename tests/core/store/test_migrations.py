import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import pytest

from core.errors import SchemaMismatch, StoreUnavailable
from core.model.rows import Row, Text, appended_to, row_table, state_of
from core.store.migrations import check_columns, load_migrations, migrations_of
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlite.schema import migrate_sqlite, open_checked
from core.store.sqlserver.connections import Access
from core.store.sqlserver.database import SqlServerDatabase
from core.store.sqlserver.schema import misfit
from core.transforms.loading import Room
from tests.core.store.sqlite.test_schema import sql
from tests.fakes.builders import partition
from tests.fakes.declared import forgotten, state
from tests.fakes.engines import SqliteEngine
from tests.fakes.odbc_driver import FakeDriver
from tests.fakes.own_room import TEXTS, own_room
from tests.fakes.store import Store

OURS = list(load_migrations("sqlite"))
NEWEST = OURS[-1].version
SECOND = {**TEXTS, "0002_more.sql": "ALTER TABLE parcel ADD COLUMN weight INTEGER"}  # without the last semicolon


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def orders(tmp_path: Path, path: Path) -> Room:
    room = own_room(tmp_path / "a")
    migrate_sqlite(path, [room])
    return room


def opens(path: Path, *rooms: Room) -> None:
    open_checked(path, 5.0, rooms).close()


def migrates(path: Path, *rooms: Room) -> None:
    migrate_sqlite(path, rooms)


def assert_refused(
    path: Path, *rooms: Room, match: str, by: tuple[Callable[..., None], ...] = (opens, migrates)
) -> None:
    for attempt in by:
        with pytest.raises(SchemaMismatch, match=match) as caught:
            attempt(path, *rooms)
        assert "\n" not in str(caught.value)


def test_ours_run_first_then_those_of_each_room_in_its_order(tmp_path: Path, path: Path) -> None:
    orders, sales = own_room(tmp_path, SECOND), own_room(tmp_path, {"0001_orders.sql": "SELECT 1"}, "apps.sales")
    bare, told = Room("apps.bare", tmp_path / "bare"), list[str]()
    applied = migrate_sqlite(path, [orders, sales, bare], told.append)
    assert applied == [*OURS, *migrations_of(orders, "sqlite"), *migrations_of(sales, "sqlite")]
    titles = ("apps.orders 0001 orders", "apps.orders 0002 more", "apps.sales 0001 orders")
    assert told[-3:] == [f"applied {title}" for title in titles]
    listed = "SELECT version, name FROM schema_migration WHERE app = 'apps.orders' ORDER BY version"
    assert sql(path, listed) == [(1, "orders"), (2, "more")]
    assert sql(path, "SELECT weight FROM parcel") == []
    assert migrate_sqlite(path, [orders, sales, bare]) == []
    opens(path, orders, sales, bare)


def test_a_store_that_lacks_a_migration_of_a_room_is_not_opened(tmp_path: Path, path: Path, orders: Room) -> None:
    later = own_room(tmp_path, SECOND)
    missing = r"lacks migration apps\.orders 0002 more: run `python -m core\.store\.mi"
    assert_refused(path, later, match=missing, by=(opens,))
    opens(path)
    assert [one.title for one in migrate_sqlite(path, [later])] == ["apps.orders 0002 more"]
    for file in (later.folder / "migrations").rglob("*.sql"):  # the ends of lines do not count
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    opens(path, later)


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        ({**TEXTS, "0002_wrong.sql": "CREATE TABLE parcel (a TEXT);"}, "orders 0002 wrong failed, and nothing .*: "),
        *(
            ({"0001_orders.sql": f"CREATE TABLE parcel (a TEXT);\n{ending}\n"}, "orders 0001 orders .*: .*transaction")
            for ending in ("COMMIT;", "ROLLBACK;", "BEGIN;", "END TRANSACTION;")
        ),
    ],
    ids=["a table twice", "commit", "rollback", "begin", "end"],
)
def test_a_migration_that_fails_or_ends_the_transaction_is_named_and_leaves_nothing_of_the_run(
    tmp_path: Path, path: Path, texts: dict[str, str], why: str
) -> None:
    with pytest.raises(StoreUnavailable, match=rf"apps\.{why}"):
        migrate_sqlite(path, [own_room(tmp_path, texts)])
    assert sql(path, "SELECT name FROM sqlite_master WHERE type = 'table'") == []


def test_a_migration_that_its_owner_kept_in_our_folder_is_refused(path: Path) -> None:
    migrate_sqlite(path)
    sql(path, "UPDATE schema_migration SET name = 'theirs'")
    assert_refused(path, match=r"has migration 0001 theirs, .*yours belong to apps/NAME/migrations")
    sql(path, f"UPDATE schema_migration SET version = {NEWEST + 1}")  # while one of ours is missing
    named = rf"has migration {NEWEST + 1:04} theirs, which is not one of Hubledger"
    assert_refused(path, match=named, by=(migrates,))


def test_a_room_of_newer_code_is_refused_when_its_migration_breaks_this_code(path: Path, orders: Room) -> None:
    sql(path, "INSERT INTO schema_migration VALUES (99, 'more', '2027', 'apps.orders', '')")
    opens(path, orders)
    sql(path, "UPDATE schema_migration SET name = 'breaking_x' WHERE name = 'more'")
    assert_refused(path, orders, match=r"apps\.orders 0099 breaking_x, .* up to 0001 .*newer code")
    opens(path)  # for a different transform


def test_a_migration_of_ours_whose_text_was_changed_is_refused(path: Path) -> None:
    migrate_sqlite(path)
    sql(path, "UPDATE schema_migration SET text_hash = 'of an older text'")
    assert_refused(path, match=r"a different text of migration 0001 hubledger: .* the database anew")


def test_a_migration_of_a_room_whose_text_or_name_was_changed_is_refused_for_this_room(
    tmp_path: Path, path: Path, orders: Room
) -> None:
    changed = own_room(tmp_path / "b", {"0001_orders.sql": f"-- A comment.\n{TEXTS['0001_orders.sql']}"})
    assert_refused(path, changed, match=r"of migration apps\.orders 0001 orders: give the file its old text")
    renamed = own_room(tmp_path / "c", {"0001_parcels.sql": "SELECT 1;"})
    assert_refused(path, renamed, match=r"orders 0001 orders, but its file is named 0001_parcels\.sql: ")
    opens(path, orders)
    opens(path)


NO_NAME = r": a migration is a file NNNN_name\.sql"
FAULTS = {
    "a number twice": (["0001_a.sql", "0001_b.sql"], r"0001_b\.sql: a second migration 0001 beside a; "),
    "a gap": (["0001_a.sql", "0003_b.sql"], r"0003_b\.sql: migration 0002 is missing"),
    "no first": (["0099_a.sql"], r"0099_a\.sql: migration 0001 is missing"),
    "zero": (["0000_a.sql"], r"0000_a\.sql: migration 0001 is missing"),
    "no number": (["orders.sql"], rf"orders\.sql{NO_NAME}"),
    "few digits": (["001_a.sql"], rf"001_a\.sql{NO_NAME}"),
    "a blank": (["0001_a b.sql"], rf"0001_a b\.sql{NO_NAME}"),
    "a copy of an editor": (["0001_a.sql~"], rf"0001_a\.sql~{NO_NAME}"),
    "a long name": ([f"0001_{'a' * 101}.sql"], ".*its name has at most 100 characters"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_file_that_breaks_the_rules_is_named(tmp_path: Path, path: Path, case: str) -> None:
    files, why = FAULTS[case]
    assert_refused(path, own_room(tmp_path, dict.fromkeys(files, "")), match=rf"sqlite/{why}", by=(migrates,))


def test_both_engines_have_the_same_files_and_the_name_of_a_room_fits_its_column(tmp_path: Path, path: Path) -> None:
    alone = own_room(tmp_path / "a", engines=("sqlite",))
    assert_refused(path, alone, match="migrations has no folder sqlserver: write each migration", by=(migrates,))
    own_room(tmp_path / "b", SECOND, engines=("sqlserver",))
    uneven = own_room(tmp_path / "b", TEXTS, engines=("sqlite",))
    assert_refused(path, uneven, match=r"migrations has 0002_more\.sql for one engine only", by=(migrates,))
    folder = own_room(tmp_path).folder
    assert_refused(path, Room("apps." + "a" * 196, folder), match="has more than 200 characters", by=(migrates,))
    assert migrate_sqlite(path, [Room("apps." + "a" * 195, folder)])[-1].name == "orders"


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
        "datetime2(19,0)=datetime2(6) datetime2(25,5)=datetime2(6) datetime=datetime2(6) smalldatetime=datetime2(6)"
        " datetimeoffset=datetime2(6) date=datetime2(6)",
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


def test_on_a_server_a_key_whose_collation_folds_is_named_any_other_may_fold(caplog: pytest.LogCaptureFixture) -> None:
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
