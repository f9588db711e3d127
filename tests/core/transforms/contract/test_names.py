"""core/transforms/contract.py: a name that is accepted is one that SQL takes."""

import sqlite3
from contextlib import closing

from core.transforms.contract import LONGEST_COLUMN, LONGEST_TABLE, fault_of_column, fault_of_table

SQLITE_WORDS = """
ADD ALL ALTER AND AS AUTOINCREMENT BETWEEN CASE CAST CHECK COLLATE COMMIT CONSTRAINT CREATE DEFAULT DEFERRABLE DELETE
DISTINCT DROP ELSE ESCAPE EXCEPT EXISTS FOREIGN FROM GROUP HAVING IN INDEX INSERT INTERSECT INTO IS ISNULL JOIN LIMIT
NOT NOTHING NOTNULL NULL ON OR ORDER PRIMARY RAISE REFERENCES RETURNING SELECT SET TABLE THEN TO TRANSACTION UNION
UNIQUE UPDATE USING VALUES WHEN WHERE reading word action matched window rows
"""
T_SQL_WORDS = ("user", "plan", "key", "file", "percent", "public", "proc", "schema", "view", "right", "merge", "backup")


def test_a_word_that_sqlite_refuses_as_a_table_is_refused() -> None:
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


def test_a_word_of_t_sql_is_refused_in_any_case() -> None:
    assert [word for word in (*T_SQL_WORDS, "User") if "is a word of SQL" not in (fault_of_table(word) or "")] == []


def test_a_name_of_other_characters_or_too_long_or_of_sqlites_own_is_refused() -> None:
    for name in (
        "",
        "a b",
        "1st",
        "a-b",
        "dbo.a",
        "a]",
        "häuser",
        "a;DROP TABLE home",
        "a\n",
        "sqlite_master",
        "Excluded",
        "json_each",
        "hubledger_purged",
    ):
        assert fault_of_table(name), name
    assert fault_of_table("a" * LONGEST_TABLE) is None
    assert fault_of_table("a" * (LONGEST_TABLE + 1))
    assert fault_of_column("order") is fault_of_column("a" * LONGEST_COLUMN) is None
    assert fault_of_column("a" * (LONGEST_COLUMN + 1))
    assert fault_of_column("hubledger_taken") == fault_of_column("Hubledger_taken") is not None
