import keyword
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install -r jobs/requirements.txt")

from core.model.aggregates import ADDED, Aggregate, Count, Key, Sum
from core.model.rows import LINEAGE, Text
from core.store.migrations import load_migrations
from core.transforms.contract import fault_of_column
from hubledger.cli.ddl.room import room_text
from jobs import as_of
from jobs.jdbc_tables import ServerWords
from jobs.lake import WINDOW_DATE
from jobs.ranges import CommitSpan, Slice
from jobs.tables import staged_columns
from tests.fakes.declared import appended, forgotten, windows

NOON, TEXT = datetime(2026, 2, 10, 12, tzinfo=UTC), "2026-02-10T12:00:00.000000Z"
ENGINES: dict[str, as_of.Words] = {"sqlite": as_of.Words(), "sqlserver": ServerWords()}
SLICE, SPAN = Slice(1, "0", 1, 9, 0, 9), CommitSpan(1, "0", 0, 9)


def declared(key: str, number: str) -> Aggregate:
    line = appended("a_line", **{key: Annotated[str, Text(20)], number: int, "placed": datetime})
    measures = {"a_count": Annotated[int, Count()], number: Annotated[int, Sum(number)]}
    return windows(line, "a_sale", "placed", **{key: Annotated[str, Key(20)], "window_start": datetime, **measures})


def statements(of: Aggregate, engine: str) -> dict[str, str]:
    sql, window = ENGINES[engine], {of.key[0]: "a", "window_start": NOON.replace(hour=0)}
    return {
        "rows": f"SELECT * FROM ({as_of.counting(of, sql)}) AS q WHERE {as_of.counted_where(SLICE)}",
        "removed": f"SELECT * FROM ({as_of.removed(of, sql)}) AS q WHERE {as_of.removed_where(SPAN)}",
        "rows of windows": as_of.rows_of_windows(of, [window], [SPAN], sql),
        "windows": as_of.standing_windows(of, [window], sql),
    }


@cache
def words() -> list[str]:
    """Return the words of the statements that may name a column, the names of instants as they travel too."""
    with forgotten():
        texts = [text for engine in ENGINES for text in statements(declared("a_key", "a_number"), engine).values()]
    found = {word.lower() for text in texts for word in re.findall(r"\b[A-Za-z_]\w*", text)}
    found |= {f"{place}placed{end}" for place, end in (("", "_micros"), ("micros_", ""), ("hubledger_", ""))}
    taken = {*LINEAGE, *ADDED, "placed", "window_start"}
    return sorted(
        word
        for word in found - taken
        if not (word.startswith("a_") or keyword.iskeyword(word) or fault_of_column(word))
    )


def listed(columns: str) -> Iterator[str]:
    depth, begun = 0, ""
    for sign in f"{columns},":
        depth += (sign == "(") - (sign == ")")
        if sign == "," and not depth:
            yield begun.strip()
        begun = "" if sign == "," and not depth else begun + sign


def twice(text: str) -> list[str]:
    names = [
        [one.rpartition(" ")[2] for one in listed(each)] for each in re.findall(r"SELECT (?!DISTINCT)(.*?) FROM ", text)
    ]
    names += [[one.partition(" ")[0] for one in listed(each)] for each in re.findall(r"WITH \((.*?)\) AS j", text)]
    named = [[one.rpartition(".")[2].strip("[]").lower() for one in each] for each in names]
    return [name for each in named for name, times in Counter(each).items() if times > 1 and name != "*"]


def test_each_word_of_a_statement_may_name_a_column_of_a_room() -> None:
    assert len(words()) > 40
    found: dict[str, Any] = {}
    with closing(sqlite3.connect(":memory:")) as connection:
        for migration in load_migrations("sqlite"):
            connection.executescript(migration.text)
        for word in (*words(), "removed_by", "written_by", "since_at", "until_at", "level", "up_to"):
            for key, number in ((word, "a_number"), ("a_key", word)):
                with forgotten():
                    of = declared(key, number)
                    assert twice(" ".join(statements(of, "sqlserver").values())) == [], word
                    connection.executescript(room_text((of.source,), (of,), "sqlite"))
                    place = "stream_id, partition_id, sequence_number, ordinal, commit_number"
                    insert = (
                        f"INSERT INTO a_line ({place}, [{key}], [{number}], placed) VALUES (1, '0', 4, 0, 2, ?, ?, ?)"
                    )
                    connection.execute(insert, ("a", 7, TEXT))
                    insert = f"INSERT INTO a_sale ([{key}], window_start, a_count, [{number}], run_number, slice)"
                    connection.execute(f"{insert} VALUES (?, ?, 1, 7, 3, 0)", ("a", TEXT.replace("T12", "T00")))
                    asked = statements(of, "sqlite")
                    asked["rows"] = asked["rows"].replace("*", f"[{key}], [{number}], placed", 1)
                    found[f"{key} {number}"] = [
                        connection.execute(asked[name]).fetchall() for name in ("rows", "rows of windows", "windows")
                    ]
                for table in ("a_line", "a_sale", "a_sale_staged"):
                    connection.execute(f"DROP TABLE {table}")
    row, window = ("a", TEXT, 7), ("a", TEXT.replace("T12", "T00"), 1, 7, 3)
    expected = [[("a", 7, TEXT)], [row], [window]]
    assert {name: one for name, one in found.items() if one != expected} == {}


def test_what_stands_beside_the_columns_of_a_window_is_refused_as_a_column() -> None:
    with forgotten():
        of = declared("a_key", "a_number")
        made = room_text((of.source,), (of,), "sqlserver").partition("CREATE TABLE hubledger.a_sale")[2]
    columns = set(re.findall(r"^    (\w+) ", made, re.MULTILINE)) - {"CONSTRAINT", "ON", "WITH"}
    assert {*columns, *staged_columns(of), WINDOW_DATE} - {*of.columns} == {*ADDED}
