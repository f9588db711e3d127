import sqlite3
from contextlib import closing

import pytest

from core.errors import InvalidTransform
from core.model import aggregates as declarations
from core.model.aggregates import ADDED
from core.transforms.contract import LONGEST_COLUMN, LONGEST_TABLE, fault_of_column, fault_of_table
from core.transforms.loading import check_transform, load_transform
from examples.home_security import aggregates
from tests.fakes.written_modules import ROOM, WrittenModules

HEAD = """from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, NewType, Optional, Union
from core.model.rows import Text, appended_to, state_of
VERSION = 'form/1'
def transform(event, references): return ()
"""
ROW = "@dataclass(frozen=True, slots=True)\n"
LINE = HEAD.count("\n") + 4  # of the first field
APPENDED, STATE, OF_A = "appended_to('thing')", "state_of('thing', key={})", "state_of('thing', key=('a',))"
NEWEST = "state_of('thing', key=('a',), newest_by='{}')"
COLUMN = "a column holds str, int, bool, float, Decimal, datetime or date, or None beside it"
KEY = "is in the key: a key holds str, int, bool, datetime or date"
NEWER = "and is newest_by: the newest row is found by datetime, date or int, and each row has it"
LENGTH = "no length of a text: write Text(1) to Text(4000)"
OTHER_TYPES = (
    "list[str]; Any; int | str; None; NewType('Name', str); type; bytes; dict[str, int]; tuple[int, None]; "
    "Union[int, float, None]; Literal['a']"
)
FITTING = [
    (APPENDED, "a: str; b: int; c: bool; d: float; e: Decimal; f: datetime; g: date"),
    (APPENDED, "a: str | None; b: Optional[int]; c: None | date"),
    (APPENDED, "a: Annotated[str, Text(1)]; b: Annotated[str | None, Text(4000)]; c: Annotated[str, Text(9)] | None"),
    (APPENDED, "a: Annotated[str, 'a word', Text(8, ascii=True)]; b: str"),
    (STATE.format("('ordinal',)"), "ordinal: int"),
    (STATE.format("('a', 'b')"), "a: str; b: int"),
    (STATE.format("('a', 'b', 'c')"), "a: bool; b: date; c: datetime"),
    *((NEWEST.format("b"), f"a: str; b: {hint}") for hint in ("datetime", "date", "int")),
]
# How a class is declared, its fields, the place of the fault from its first field, and the fault (... for any part).
WRONG: list[tuple[str, str, int, str]] = [
    *((APPENDED, f"fits: int; wrong: {hint}", 1, f".wrong is ...{COLUMN}") for hint in OTHER_TYPES.split("; ")),
    (APPENDED, "wrong: 'Nobody'", -1, ": its annotations cannot be read: NameError: name 'Nobody' is not defined"),
    *(
        (APPENDED, f"{name}: int", 0, f".{name}: the store adds a column of this name to the table thing")
        for name in ("stream_id", "partition_id", "commit_number", "sequence_number", "Ordinal")
    ),
    (STATE.format("('a', 'no')"), "a: str", -1, ": the key of thing names no, which is not a field of the class"),
    (STATE.format("('a', 'a')"), "a: str", -1, ": the key of thing names a twice"),
    (STATE.format("('a')"), "a: str", -1, ": the key of thing is a text: write key=('a',)"),
    (STATE.format("()"), "a: str", -3, ": the key of thing names no field"),
    (OF_A, "a: str | None", 0, ".a may be None and is in the key: no two rows without a value have the same key"),
    *((OF_A, f"a: {kind}", 0, f".a is {kind} and {KEY}") for kind in ("float", "Decimal")),
    *(
        (NEWEST.format("b"), f"a: str; b: {hint}", 1, f".b is ...{NEWER}")
        for hint in ("str", "float", "Decimal", "bool", "datetime | None", "int | None")
    ),
    (NEWEST.format("c"), "a: str", -1, ": newest_by of thing is 'c', which is not a field of the class"),
    (NEWEST.format("a"), "a: int", 0, ".a is in the key and is newest_by: rows of one key do not differ in it"),
    *(
        (APPENDED, f"fits: str; wrong: Annotated[str, Text({length})]", 1, f".wrong: ...{LENGTH}")
        for length in ("0", "-1", "4001", "True and 1.5", "'8'", "None")
    ),
    (APPENDED, "a: Annotated[str | None, Text]", 0, f".a: Text is {LENGTH}"),
    (APPENDED, "a: Annotated[int, Text(8)] | None", 0, ".a: Text is the length of a str, and the field holds int"),
    (APPENDED, "a: Annotated[str, Text(8), Text(9)]", 0, ".a: it has two lengths: annotate it with one Text"),
]


def faults_of(modules: WrittenModules, text: str) -> list[str]:
    """Return the faults of a module, without the name of its file."""
    name = modules.write(text)
    try:
        load_transform(name)
    except InvalidTransform as refused:
        assert str(refused).startswith(f"TRANSFORM={name}: {name}.py:")
        assert all(fault.startswith(f"{name}.py:") for fault in refused.faults)
        return [fault.removeprefix(f"{name}.py:") for fault in refused.faults]
    return []


def faults_of_row(modules: WrittenModules, how: str, fields: str) -> list[str]:
    lines = "".join(f"    {line}\n" for line in fields.split("; "))
    return faults_of(modules, f"{HEAD}@{how}\n{ROW}class Thing:\n{lines}")


def test_fields_keys_and_lengths_that_both_engines_hold_have_no_fault(modules: WrittenModules) -> None:
    assert [one for one in FITTING if faults_of_row(modules, *one)] == []


@pytest.mark.parametrize(("how", "fields", "place", "fault"), WRONG)
def test_a_field_a_key_or_a_length_that_an_engine_does_not_hold_is_a_fault_with_its_line(
    modules: WrittenModules, how: str, fields: str, place: int, fault: str
) -> None:
    (found,) = faults_of_row(modules, how, fields)
    begins, _, ends = fault.partition("...")
    assert found.startswith(f"{LINE + place}: Thing{begins}")
    assert found.endswith(ends or begins)


def test_fields_that_differ_only_in_case_are_both_at_fault(modules: WrittenModules) -> None:
    assert faults_of_row(modules, APPENDED, "order: int; Order: int") == [
        f"{LINE + at}: Thing.{name}: a second field differs only in case, and SQL has one column for both"
        for at, name in enumerate(("order", "Order"))
    ]
    text = f"{HEAD}{ROW}class Base:\n    wrong: bytes\n@appended_to('thing')\n{ROW}class Thing(Base):\n    right: int\n"
    (fault,) = faults_of(modules, text)
    assert fault.startswith(f"{LINE - 1}: Thing.wrong is bytes")


def test_a_class_that_can_change_or_is_declared_below_its_fields_is_a_fault(modules: WrittenModules) -> None:
    remedy = "declare it with @dataclass(frozen=True, slots=True)"
    assert faults_of(modules, f"{HEAD}@appended_to('thing')\n@dataclass\nclass Thing:\n    a: int\n") == [
        f"{LINE - 1}: Thing can change after transform() returned it: {remedy}"
    ]
    remedy = "write @appended_to or @state_of above @dataclass(frozen=True, slots=True)"
    for text in (
        f"{ROW}@appended_to('thing')\nclass Thing:\n    a: int\n",
        "@appended_to('thing')\nclass Thing: pass\n",
    ):
        (fault,) = faults_of(modules, f"{HEAD}{text}")
        assert fault.endswith(f"Thing has no fields: {remedy}")


def test_two_classes_of_one_table_are_a_fault_and_two_names_of_one_class_are_none(modules: WrittenModules) -> None:
    first = f"{HEAD}@appended_to('thing')\n{ROW}class Thing:\n    a: int\n"
    assert faults_of(modules, f"{first}@appended_to('Thing')\n{ROW}class Other:\n    a: int\n") == [
        f"{LINE + 3}: Other and Thing are both rows of the table Thing: one class a table"
    ]
    twice = load_transform(modules.write(f"{first}Other = Thing\n"))
    assert [each.__name__ for each in twice.row_classes] == ["Thing"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("async def transform(event, references): return ()", "transform() is async: write it with def"),
        ("async def transform(event, references): yield 1", "transform() is async: write it with def"),
        ("def transform(event): return ()", "transform() is called as transform(event, references), but has"),
        ("def transform(event, *, references): return ()", "transform() is called as transform(event, references)"),
        ("def references(event, more): return ()", "references() is called as references(event), but has"),
        ("references = 5", "the module needs a function references(event)"),
        ("transform = 5", "the module needs a function transform(event, references)"),
        ("VERSION = 5", "the module needs VERSION, a text"),
        ("VERSION = '\\ud800'", "VERSION has half of a surrogate pair"),
    ],
)
def test_a_part_that_cannot_be_called_or_stored_is_a_fault_with_its_line(
    modules: WrittenModules, text: str, fault: str
) -> None:
    (found,) = faults_of(modules, f"{HEAD}\n{text}\n")
    assert found.startswith(f"{HEAD.count(chr(10)) + 2}: {fault}")


def test_every_fault_is_reported_at_once_in_the_order_of_lines(modules: WrittenModules) -> None:
    found = faults_of(modules, f"{HEAD}@appended_to('a b')\n{ROW}class A:\n    a: bytes\nasync def references(): ...\n")
    assert [fault.split(":")[0] for fault in found] == ["10", "11", "12"]
    assert faults_of(modules, f"{HEAD}def references(*given, deep=False): return ()\n") == []  # more has a default


def test_a_row_class_of_a_different_module_has_its_own_file(modules: WrittenModules) -> None:
    modules.write(f"{HEAD}@appended_to('thing')\n{ROW}class Thing:\n    a: bytes\n", "own_app.tables")
    modules.write("from own_app.tables import Thing\nVERSION = '1'\ndef transform(a, b): return ()\n", "own_app.things")
    with pytest.raises(InvalidTransform, match=rf"^TRANSFORM=own_app\.things: own_app/tables\.py:{LINE}: Thing\.a is"):
        load_transform("own_app.things")


SQLITE_WORDS = """
ADD ALL ALTER AND AS AUTOINCREMENT BETWEEN CASE CAST CHECK COLLATE COMMIT CONSTRAINT CREATE DEFAULT DEFERRABLE DELETE
DISTINCT DROP ELSE ESCAPE EXCEPT EXISTS FOREIGN FROM GROUP HAVING IN INDEX INSERT INTERSECT INTO IS ISNULL JOIN LIMIT
NOT NOTHING NOTNULL NULL ON OR ORDER PRIMARY RAISE REFERENCES RETURNING SELECT SET TABLE THEN TO TRANSACTION UNION
UNIQUE UPDATE USING VALUES WHEN WHERE reading word action matched window rows
"""
T_SQL_WORDS = ("user", "plan", "key", "file", "percent", "public", "proc", "schema", "view", "right", "merge", "backup")


def test_a_word_that_sqlite_or_t_sql_refuses_as_a_table_is_refused() -> None:
    refused = []
    with closing(sqlite3.connect(":memory:")) as connection:
        for word in SQLITE_WORDS.split():
            try:
                connection.execute(f"CREATE TABLE {word} (x)")
            except sqlite3.OperationalError:
                refused.append(word)
    assert len(refused) > 50
    assert [word for word in refused if fault_of_table(word) is None] == []
    assert [word for word in ("reading", "word", "action", "matched", "rows") if fault_of_table(word)] == []
    assert [word for word in (*T_SQL_WORDS, "User") if "is a word of SQL" not in (fault_of_table(word) or "")] == []


def test_a_name_of_other_characters_or_too_long_or_of_sqlites_own_is_refused() -> None:
    wrong = ["", "a b", "1st", "a-b", "dbo.a", "a]", "häuser", "a;DROP TABLE home", "a\n"]
    wrong += ["sqlite_master", "Excluded", "json_each", "hubledger_purged", "a" * (LONGEST_TABLE + 1)]
    assert [name for name in wrong if not fault_of_table(name)] == []
    assert fault_of_table("a" * LONGEST_TABLE) is None
    assert fault_of_column("order") is fault_of_column("a" * LONGEST_COLUMN) is None
    assert fault_of_column("a" * (LONGEST_COLUMN + 1))
    assert fault_of_column("hubledger_taken") == fault_of_column("Hubledger_taken") is not None


AGGREGATE = """from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated
from core.model.aggregates import Count, Key, Most, Sum, aggregate_of
from examples.home_security.transform import HomeAlert
@aggregate_of(HomeAlert, "NAME", at="observed_at", window=timedelta(days=1))
@dataclass(frozen=True, slots=True)
class Planted:
"""

COUNTED = "    home_id: Annotated[str, Key(32)]\n    window_start: datetime\n    alerts: Annotated[int, Count()]\n"


@pytest.fixture
def planted(modules: WrittenModules, monkeypatch: pytest.MonkeyPatch) -> WrittenModules:
    folder = modules.folder / "planted_aggregates"
    folder.mkdir()
    monkeypatch.setattr(aggregates, "__path__", [*aggregates.__path__, str(folder)])
    for table in ("_AGGREGATES", "_ROLLUPS"):
        monkeypatch.setattr(declarations, table, dict(getattr(declarations, table)))
    return WrittenModules(folder)


def refused(name: str = "examples.home_security") -> tuple[str, ...]:
    with pytest.raises(InvalidTransform) as found:
        check_transform(name)
    return tuple(found.value.faults)


def test_every_fault_of_an_aggregate_is_reported_with_the_line_of_its_declaration(planted: WrittenModules) -> None:
    fields = (
        "    window_start: datetime\n    most: Annotated[str, Most('ppm')]\n    sum: Annotated[int, Sum('nothing')]\n"
    )
    planted.write(AGGREGATE.replace("NAME", "planted") + fields, "planted")
    assert [fault.rpartition("/")[2] for fault in refused()] == [
        "planted.py:6: Planted.most: write int | None as its type, because that is the type of ppm",
        "planted.py:6: Planted.sum: the source has no column nothing",
    ]


ONE_TABLE = "have one table, {}: name the aggregate differently"
ONLY_IN_CASE = "a second field differs only in case, and SQL has one column for both"
NAMES = [  # of an aggregate and of a column of it, with the fault
    ("home_alert", "", f"Planted and HomeAlert {ONE_TABLE.format('home_alert')}"),
    ("Home_Activity", "", f"HomeActivity and Planted {ONE_TABLE.format('home_activity')}"),
    ("task", "", f"Planted and Hubledger {ONE_TABLE.format('task')}"),
    ("a b", "", "Planted: the table name 'a b' has other characters"),
    *(
        (word, "", f"Planted: the table name {word} is a word of SQL: use a different one")
        for word in ("order", "user")
    ),
    ("a" * 113, "", f"Planted: the table name {'a' * 113}_staged is longer than 119 characters"),
    *(
        ("planted", name, "the store and the lake add a column of this name to planted")
        for name in (*ADDED, "Run_Number")
    ),
    *(("planted", name, ONLY_IN_CASE) for name in ("ALERTS", "Home_id")),
    ("planted", "a" * (LONGEST_COLUMN + 1), f"the name is longer than {LONGEST_COLUMN} characters"),
    ("planted", "hubledger_level", "the names of columns of Hubledger begin with hubledger_"),
]


@pytest.mark.parametrize(("name", "column", "fault"), NAMES)
def test_an_aggregate_and_its_columns_have_names_of_their_own_that_sql_can_hold(
    planted: WrittenModules, name: str, column: str, fault: str
) -> None:
    field = f"    {column}: Annotated[datetime, Most('observed_at')]\n" if column else ""
    planted.write(AGGREGATE.replace("NAME", name) + COUNTED + field, "planted")
    found = "\n".join(refused())
    assert (f"Planted.{column}: {fault}" if column else fault) in found
    assert not column or "planted.py:12: " in found


def test_a_table_of_hubledger_is_no_table_of_a_room(modules: WrittenModules) -> None:
    modules.write(ROOM.format(table="Task"), "room_of_tasks")
    fault = "room_of_tasks.py:7: Placed: the table Task belongs to Hubledger: use a different one"
    assert fault in refused("room_of_tasks")
