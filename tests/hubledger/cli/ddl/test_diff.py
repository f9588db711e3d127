import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pytest

from core.errors import InvalidTransform
from core.model.aggregates import Aggregate, Count, Kept, Key, Sum
from core.model.rows import Text
from core.store.migrations import load_migrations
from hubledger.cli.ddl.migration import NextMigration, next_migration
from hubledger.cli.ddl.room import rights_text, room_text
from hubledger.cli.ddl.tables import ENGINES, PREFIX
from tests.fakes.declared import appended, every_type, forgotten, state, windows

NAME = Annotated[str, Text(20)]


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    with forgotten():
        yield


def sales_of(line: type, **more: Any) -> Aggregate:
    key = {"order_id": Annotated[str, Key(20)], "window_start": datetime, "lines": Annotated[int, Count()]}
    return windows(line, "sales", "at", **{**key, **more})


def by_hand(room: Path, text: str) -> None:
    (room / "migrations" / "sqlite" / "0002_by_hand.sql").write_bytes(text.encode("utf-8"))


def follow(room: Path, *classes: type, aggregates: Sequence[Aggregate] = ()) -> NextMigration:
    made, number = next_migration(classes, aggregates, room), len([*room.glob("migrations/sqlite/*.sql")]) + 1
    assert made.cannot == ()
    for engine, text in made.texts.items():
        folder = room / "migrations" / engine
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:04}_{made.name_hint}.sql").write_text(text, encoding="utf-8")
    if made.permissions is not None:
        (room / "permissions.sql").write_text(made.permissions, encoding="utf-8")
    left = next_migration(classes, aggregates, room)
    assert (left.texts, left.cannot, left.permissions) == ({}, (), None), left
    with closing(sqlite3.connect(":memory:")) as connection:
        for ours in load_migrations("sqlite"):
            connection.executescript(ours.text)
        for path in sorted((room / "migrations" / "sqlite").glob("*.sql")):
            connection.executescript(path.read_text(encoding="utf-8-sig"))
    return made


def test_the_first_migration_of_a_room_makes_its_tables_and_rights(tmp_path: Path) -> None:
    from examples.home_security.transform import Home

    classes = every_type()
    first = follow(tmp_path, *classes, Home)
    assert first.name_hint == tmp_path.name.lower().replace("-", "_").strip("_")[:60]
    assert all(first.texts[engine].endswith(room_text(classes, (), engine)) for engine in ENGINES)
    assert first.permissions == rights_text(classes, ())
    assert "hubledger.home" not in "".join(path.read_text("utf-8") for path in tmp_path.rglob("*.sql"))


def test_new_tables_come_with_the_index_of_the_source_and_before_a_changed_table_then_locked(tmp_path: Path) -> None:
    follow(tmp_path, appended("line", order_id=NAME, amount=int, at=datetime))
    line = appended("line", order_id=NAME, amount=int, at=datetime, note=str | None)
    sales = sales_of(line, amount=Annotated[int, Sum("amount")])
    following = follow(tmp_path, line, state("customer", ("name",), name=NAME), aggregates=[sales])
    assert following.name_hint == "add_customer_and_sales"
    assert "CREATE INDEX ix_sales_source" in following.texts["sqlite"]
    assert "WITH (ONLINE = ON, DATA_COMPRESSION = PAGE)" in following.texts["sqlserver"]
    assert following.permissions is not None and "hubledger.sales_staged" in following.permissions
    for text in following.texts.values():
        assert text.index("CREATE INDEX") < text.index("ALTER TABLE")


def test_a_new_rollup_is_filled_from_the_finer_level_and_missing_indexes_and_staged_windows_are_made_again(
    tmp_path: Path,
) -> None:
    line = appended("line", order_id=NAME, at=datetime)
    follow(tmp_path, line, aggregates=[sales_of(line, window=timedelta(hours=1))])
    by_hand(tmp_path, "DROP TABLE sales_staged;\n")
    kept, rollups = Kept(timedelta(hours=1), timedelta(days=9)), {"day": timedelta(days=1)}
    following = follow(tmp_path, line, aggregates=[sales_of(line, window=kept, rollups=rollups)])
    assert following.name_hint == "add_sales_day_and_sales_staged"
    assert "INSERT INTO hubledger.sales_day" in following.texts["sqlserver"]
    assert "CREATE TABLE hubledger.sales_staged" in following.texts["sqlserver"]
    assert "ix_sales_window_start ON hubledger.sales (window_start) WITH (ONLINE = ON);" in following.texts["sqlserver"]


def test_a_table_of_states_has_an_index_by_place_and_an_older_table_gets_it(tmp_path: Path) -> None:
    customer = state("customer", ("name",), name=NAME)
    first = follow(tmp_path, customer)
    by_hand(tmp_path, "DROP INDEX ix_customer_place;")
    following = follow(tmp_path, customer)
    place = "CREATE INDEX ix_customer_place\n    ON {}customer (stream_id, partition_id, sequence_number"
    for engine, end in zip(ENGINES, (", commit_number);", ") INCLUDE (commit_number)"), strict=True):
        for text in (first.texts[engine], following.texts[engine]):
            assert f"{place.format(PREFIX[engine])}{end}" in text
    assert "WITH (ONLINE = ON);" in following.texts["sqlserver"]


def test_a_new_field_that_may_be_none_is_added_and_one_that_may_not_is_named_with_the_reason(tmp_path: Path) -> None:
    follow(tmp_path, appended("line", order_id=NAME))
    may_be_none: dict[str, Any] = {"order_id": NAME, "price": Decimal | None, "order": NAME | None}
    found = next_migration((appended("line", **may_be_none, amount=int),), (), tmp_path)
    assert found.cannot == (
        "Line.amount is new and never None, but existing rows have no value: allow None, or write the migration by"
        " hand",
    )
    following = follow(tmp_path, appended("line", **may_be_none))
    assert (following.texts, following.name_hint) == (found.texts, "add_line_price_and_line_order")
    server, embedded = following.texts["sqlserver"], following.texts["sqlite"]
    assert "ALTER TABLE hubledger.line ADD price decimal(38, 10);" in server
    assert "ALTER TABLE hubledger.line ADD [order] nvarchar(20) COLLATE Latin1_General_100_BIN2;" in server
    assert "ALTER TABLE line ADD COLUMN [order] TEXT;" in embedded


CANNOT: dict[str, tuple[dict[str, Any], str]] = {
    "a changed type": ({"amount": NAME}, "amount changed: its column is INTEGER: TEXT holds every value"),
    "a narrower number": ({"share": int}, "share changed: its column is REAL: INTEGER holds every value"),
    "a field that is never None now": ({"kind": NAME}, "kind is never None, but its column takes NULL"),
}


@pytest.mark.parametrize("change", CANNOT)
def test_a_change_that_needs_a_person_is_named_with_its_class_and_field(tmp_path: Path, change: str) -> None:
    fields: dict[str, Any] = {"name": NAME, "amount": int, "kind": NAME | None, "share": float}
    follow(tmp_path, appended("line", **fields))
    changed, reason = CANNOT[change]
    found = next_migration((appended("line", **{**fields, **changed}),), (), tmp_path)
    assert found.texts == {}
    assert all(line.startswith("Line") for line in found.cannot)
    assert any(re.search(reason, line) for line in found.cannot)


WIDER_SERVER = """\
ALTER TABLE hubledger.line ALTER COLUMN amount float NOT NULL;
ALTER TABLE hubledger.line ALTER COLUMN [order] decimal(38, 10) NULL;
ALTER TABLE hubledger.line ALTER COLUMN name nvarchar(40) COLLATE Latin1_General_100_BIN2 NULL;
"""


def test_a_column_takes_fractions_or_no_value_on_both_engines_and_the_rows_and_indexes_stay(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"amount": int, "order": int, "name": NAME, "at": datetime}
    follow(tmp_path, appended("line", **fields))
    by_hand(tmp_path, "ALTER TABLE line ADD COLUMN kept INTEGER NOT NULL DEFAULT 7; CREATE INDEX ix_at ON line (at);")
    line = appended(
        "line", amount=float, order=Decimal | None, name=Annotated[str | None, Text(40)], at=datetime, new=int | None
    )
    following = follow(tmp_path, line)
    assert [one.partition(",")[0] for one in following.later] == ["Line.amount becomes a float"]
    assert following.name_hint == "add_line_amount_line_order_line_name_and_line_new"
    assert WIDER_SERVER in following.texts["sqlserver"]
    with closing(sqlite3.connect(":memory:")) as connection:
        for path in sorted((tmp_path / "migrations" / "sqlite").glob("*.sql")):
            if path.name.startswith("0003"):
                connection.execute(
                    "INSERT INTO line (stream_id, partition_id, sequence_number, ordinal, commit_number, amount,"
                    " [order], name, at) VALUES (1, '0', 5, 0, 9, 21, 9007199254740993, 'a', 'now')"
                )
            connection.executescript(path.read_text(encoding="utf-8"))
        chosen = "sequence_number, ordinal, commit_number, amount, typeof(amount), [order], name, at, new, kept"
        assert connection.execute(f"SELECT {chosen} FROM line").fetchall() == [
            (5, 0, 9, 21.0, "real", "9007199254740993", "a", "now", None, 7)
        ]
        assert connection.execute("SELECT name FROM sqlite_master WHERE name = 'ix_at'").fetchall() == [("ix_at",)]
        assert connection.execute("SELECT strict, wr FROM pragma_table_list('line')").fetchall() == [(1, 1)]
        connection.execute("UPDATE line SET amount = 21.5, [order] = NULL, name = NULL")


def test_an_index_of_the_same_migration_is_not_lost_with_the_table_that_is_copied(tmp_path: Path) -> None:
    follow(tmp_path, appended("line", order_id=NAME, amount=int, at=datetime))
    line = appended("line", order_id=NAME, amount=float, at=datetime)
    follow(tmp_path, line, aggregates=[sales_of(line)])


REMOVED_SERVER = """\
DECLARE @wider_line nvarchar(max) = (
    SELECT STRING_AGG(CONVERT(nvarchar(max), CONCAT(
        N'ALTER TABLE hubledger.line ALTER COLUMN ', QUOTENAME(name), N' ', system_type_name,
        N' COLLATE ' + collation_name, N' NULL;')), N' ')
      FROM sys.dm_exec_describe_first_result_set(
        N'SELECT [kind], [at] FROM hubledger.line', NULL, 0));
EXEC(@wider_line);
"""


def test_a_removed_field_takes_no_value_from_then_on_and_its_column_is_left_for_later(tmp_path: Path) -> None:
    follow(tmp_path, appended("line", name=NAME, kind=NAME, at=datetime))
    line = appended("line", name=NAME)
    following = follow(tmp_path, line)
    assert following.later == tuple(
        f"Line has no field {name}, but line has the column: older code writes it; deploy, and then drop it by a later"
        " migration whose name begins with breaking_"
        for name in ("kind", "at")
    )
    assert following.texts["sqlserver"].endswith(REMOVED_SERVER)
    assert following.name_hint == "widen_line_kind_line_at"


def test_an_aggregate_follows_a_wider_source_without_its_sum_or_with_one_that_may_be_none(tmp_path: Path) -> None:
    line = appended("line", order_id=NAME, amount=int, more=int, at=datetime)
    sums = {"amount": Annotated[int, Sum("amount")], "more": Annotated[int, Sum("more")]}
    follow(tmp_path, line, aggregates=[sales_of(line, **sums)])
    line = appended("line", order_id=NAME, amount=float | None, more=int | None, at=datetime)
    sales = sales_of(line, more=Annotated[int | None, Sum("more")])
    following = follow(tmp_path, line, aggregates=[sales])
    assert len(following.later) == 3
    assert "ALTER TABLE hubledger.sales ALTER COLUMN more bigint NULL;" in following.texts["sqlserver"]
    assert "N'SELECT [amount] FROM hubledger.sales'" in following.texts["sqlserver"]
    assert following.texts["sqlite"].count("CREATE INDEX ix_sales_source") == 1  # it went with the table that is copied


@pytest.mark.parametrize(
    "hinders",
    [
        "CREATE VIEW seen AS SELECT amount FROM line;",
        "CREATE TRIGGER t AFTER INSERT ON line BEGIN SELECT 1; END;",
        "ALTER TABLE line ADD COLUMN twice INTEGER AS (2 * amount);",
    ],
)
def test_a_table_that_a_copy_would_harm_is_widened_on_no_engine(tmp_path: Path, hinders: str) -> None:
    follow(tmp_path, appended("line", amount=int, other=int))
    by_hand(tmp_path, hinders)
    found = next_migration((appended("line", amount=float, other=int, note=int | None),), (), tmp_path)
    (reason,) = found.cannot
    assert reason.startswith("Line.amount takes more than its column, and SQLite changes no column: the table line has")
    assert "amount" not in found.texts["sqlserver"] + found.texts["sqlite"]
    assert found.name_hint == "add_line_note"


def test_a_changed_key_and_a_removed_class_are_left_to_a_person(tmp_path: Path) -> None:
    before = state("customer", ("name",), name=NAME, city=NAME), appended("line", amount=int)
    follow(tmp_path, *before)
    other = next_migration((state("customer", ("name", "city"), name=NAME, city=NAME),), (), tmp_path)
    key, removed = other.cannot
    assert key == "Customer: the key of customer is (name, city), and was (name): copy the rows by hand"
    assert removed.startswith("no class has the table line: a replay may still retract its rows")
    assert other.texts == {}


def test_a_new_measure_needs_a_new_aggregate(tmp_path: Path) -> None:
    line = appended("line", order_id=NAME, amount=int, at=datetime)
    follow(tmp_path, line, aggregates=[sales_of(line)])
    found = next_migration((line,), (sales_of(line, amount=Annotated[int, Sum("amount")]),), tmp_path)
    assert found.texts == {}
    assert found.cannot == ("Sales.amount is new, and stored windows lack its values: declare a new aggregate",)


HAND = """\
-- A comment with 'a quote, and more.\r
ALTER TABLE line ADD COLUMN note TEXT;\r
CREATE INDEX ix_line_note ON line (note) WHERE note = 'x';\r
CREATE TABLE settings ([order] INTEGER PRIMARY KEY);\r
"""


HANDS: dict[str, tuple[Callable[[], type], str, Callable[[], type]]] = {
    "texts, comments and the line ends of Windows": (
        partial(appended, "line", amount=int),
        f"\ufeff{HAND}",
        partial(appended, "line", amount=int, note=NAME | None),
    ),
    "renamed columns": (
        partial(state, "line", ("code",), code=NAME, amount=int),
        "ALTER TABLE line RENAME COLUMN amount TO total;\nALTER TABLE line RENAME COLUMN code TO name;\n",
        partial(state, "line", ("name",), name=NAME, total=int),
    ),
    "a column with a default that no class has": (
        partial(appended, "line", amount=int),
        "ALTER TABLE line ADD COLUMN loaded_at TEXT NOT NULL DEFAULT '';",
        partial(appended, "line", amount=int),
    ),
    "nothing, because SQLite takes a longer text": (
        partial(appended, "line", name=NAME),
        "",
        partial(appended, "line", name=Annotated[str, Text(40)]),
    ),
}


@pytest.mark.parametrize("written", HANDS)
def test_a_migration_by_hand_counts(tmp_path: Path, written: str) -> None:
    before, script, after = HANDS[written]
    follow(tmp_path, before())
    by_hand(tmp_path, script)
    assert follow(tmp_path, after()).texts == {}


def test_a_script_that_sqlite_refuses_is_named_and_the_tables_of_its_words_are_not_compared(tmp_path: Path) -> None:
    follow(tmp_path, appended("line", amount=int), appended("other", amount=int))
    by_hand(tmp_path, "ALTER TABLE missing ADD COLUMN x; ALTER TABLE line ADD COLUMN y;")
    line, other = appended("line", sum=int, note=int | None), appended("other", amount=int, note=int | None)
    found = next_migration((line, other), (), tmp_path)
    (reason,) = found.cannot
    assert reason.startswith("sqlite/0002_by_hand.sql: SQLite refuses it: no such table")
    assert not any("line" in text for text in found.texts.values())
    assert "ALTER TABLE hubledger.other ADD note bigint;" in found.texts["sqlserver"]


def test_lines_of_permissions_that_a_person_wrote_stay(tmp_path: Path) -> None:
    line = appended("line", amount=int)
    follow(tmp_path, line)
    yours, path = "GRANT SELECT ON hubledger.line TO analysts;", tmp_path / "permissions.sql"
    path.write_text(f"{path.read_text('utf-8')}\n{yours}\n", encoding="utf-8")
    assert next_migration((line,), (), tmp_path).permissions is None
    more = [line, appended("other", amount=int)]
    text = follow(tmp_path, *more).permissions or ""
    assert text.startswith(rights_text(more, ())) and text.endswith(f"{yours}\n")
    text = follow(tmp_path, *more, appended("third", amount=int)).permissions or ""
    assert (text.count(yours), text.count("Lines that no declared class needs")) == (1, 1)


def test_classes_without_tables_are_refused_all_at_once(tmp_path: Path) -> None:
    classes = (
        state("customer", ("name", "at"), name=str, at=datetime),
        state("parcel", ("code", "at"), code=Annotated[str, Text(447)], at=datetime),
        appended("Line", amount=int),
        appended("line", amount=int),
    )
    with pytest.raises(InvalidTransform) as refused:
        next_migration(classes, (), tmp_path)
    shared, key, size = refused.value.faults
    assert shared == "Line and Line have one table, line: name one differently"
    assert key.startswith("Customer.name is in the key and has no length: write name: Annotated[str, Text(40)]")
    assert size.startswith("Parcel: its key has up to 902 bytes, and a key of SQL Server has at most 900")
    for text in (Text(450), Text(900, ascii=True)):  # a character has two bytes unless it is of ASCII
        parcel = state("parcel", ("code",), code=Annotated[str, text])
        assert f"({text.length})" in room_text((parcel,), (), "sqlserver")


def test_a_text_in_the_key_of_an_aggregate_has_a_length_and_the_key_holds_it(tmp_path: Path) -> None:
    fields = {"window_start": datetime, "lines": Annotated[int, Count()]}
    line = appended("line", name=NAME, free=str, at=datetime)
    endless = windows(line, "endless", "at", free=Annotated[str, Key(20)], **fields)
    short = windows(line, "short", "at", name=Annotated[str, Key(19)], **fields)
    folding = windows(line, "folding", "at", name=Annotated[str, Key(20, ascii=True)], **fields)
    with pytest.raises(InvalidTransform) as refused:
        next_migration((line,), (endless, short, folding), tmp_path)
    free, *others = refused.value.faults
    assert free.startswith("Line.free is in the key of Endless and has no length: write free: Annotated[str, Text(20)]")
    but = "but Line.name is Text(20): a run could not store every window, so declare both alike"
    assert others == [f"Short.name is Key(19), {but}", f"Folding.name is Key(20, ascii=True), {but}"]
