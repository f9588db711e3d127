"""No statement compares texts of two collations, which SQL Server refuses with error 468, and one that does is seen.

None compares a varchar column with an nvarchar either, which has SQL Server convert the column of each row.
"""

import pytest

from core.model.aggregates import aggregate_table
from core.store.script import of_rows
from core.store.sqlserver.statements import rows_query
from examples.home_security.aggregates.home_activity import HomeActivity
from hubledger.cli.ddl.room import room_text
from tests.fakes.declared import forgotten, named_by_words
from tests.fakes.rooms import all_migrations
from tests.offenders import holds_for
from tests.sql.collations import columns_of, conflicts, conversions, statements_of
from tests.sql.statements import asked_rows, every_batch
from tests.sql.test_rooms import statements_about
from tests.sql.values import EPOCH

TABLES = columns_of(one.text for one in all_migrations("sqlserver"))
IDS = "OPENJSON(@ids) WITH (id varchar(40) '$[0]', n bigint '$[1]') AS j"
VALUES = "(VALUES (1, N'0')) AS v (n, id)"
LETTERS, JOBS = "hubledger.event_hub_dead_letter AS d", "hubledger.task AS r"  # status: of the database
BY_CODE_POINT = "COLLATE Latin1_General_100_BIN2"
OFFENDERS = {
    "a join": f"SELECT d.status FROM {LETTERS} INNER JOIN {IDS} ON d.partition_id = j.id;",
    "a list": f"SELECT d.status FROM {LETTERS} WHERE d.partition_id IN (SELECT j.id FROM {IDS});",
    "an update": f"UPDATE d SET status = j.id FROM {LETTERS} INNER JOIN {IDS} ON d.partition_id = j.id;",
    "a subquery": f"DELETE r FROM {JOBS} WHERE EXISTS (SELECT 1 FROM {IDS} WHERE j.n = 1 AND j.id > r.task_id);",
    "a named query": f"WITH x AS (SELECT j.id AS i FROM {IDS}) SELECT 1 FROM x INNER JOIN {JOBS} ON x.i = r.task_id;",
    "a derived text": (
        "SELECT 1 FROM hubledger.staged_slice AS d"
        " INNER JOIN (SELECT CONCAT(N'', s.slice) AS named FROM hubledger.staged_slice AS s) AS f ON f.named = d.level;"
    ),
    "a text of a table of values": f"SELECT 1 FROM {VALUES} INNER JOIN {LETTERS} ON d.partition_id = v.id;",
    "a text that is run": f"EXEC(N'SELECT 1 FROM {LETTERS} INNER JOIN {JOBS} ON d.claimed_by = r.task_id;');",
}
INNOCENT = {
    "a collated text": f"SELECT 1 FROM {LETTERS} INNER JOIN {IDS} ON d.partition_id = j.id {BY_CODE_POINT};",
    "a collated column": f"SELECT 1 FROM {LETTERS} INNER JOIN {IDS} ON d.partition_id {BY_CODE_POINT} = j.id;",
    "a variable and a text in quotes": f"SELECT 1 FROM {LETTERS} WHERE d.partition_id IN (@id, '0');",
    "a set value": f"UPDATE d SET partition_id = j.id FROM {LETTERS} INNER JOIN {IDS} ON d.sequence_number = j.n;",
}


@holds_for([*OFFENDERS, *INNOCENT])
def test_a_planted_comparison_of_two_collations_is_seen_and_no_other(case: str) -> None:
    assert len(conflicts({**OFFENDERS, **INNOCENT}[case], TABLES)) == (case in OFFENDERS)


def test_no_statement_compares_two_collations() -> None:
    statements = {one: name for name, batch in every_batch().items() for one in statements_of(batch)}
    assert len(statements) > len(every_batch())
    assert [f"{name}: {one}" for text, name in statements.items() for one in conflicts(text, TABLES)] == []


def test_no_statement_of_a_job_of_spark_compares_two_collations() -> None:
    pytest.importorskip("pyspark", reason="Spark is not installed: make test installs it where Java is found")
    from jobs.as_of import counting, removed, rows_of_windows, standing_windows
    from jobs.jdbc_tables import ServerWords
    from jobs.ranges import CommitSpan

    of, words = aggregate_table(HomeActivity), ServerWords()
    windows = [{"home_id": "home-1", "kind": "gas", "window_start": EPOCH}]
    texts = {
        "counting": counting(of, words),
        "removed": removed(of, words),
        "rows of windows": rows_of_windows(of, windows, [CommitSpan(1, "0", 0, 9)], words),
        "standing windows": standing_windows(of, windows, words),
    }
    planted = texts["rows of windows"].replace(f" {BY_CODE_POINT}", "")
    assert {name: found for name, text in texts.items() if (found := conflicts(text, TABLES))} == {}
    assert len(conflicts(planted, TABLES)) > 1


TYPES = columns_of((one.text for one in all_migrations("sqlserver")), types=True)
NVARCHAR, VARCHAR = "DECLARE @id nvarchar(4000) = ?;", "DECLARE @id varchar(8000) = ?;"
WIDE_IDS = IDS.replace("varchar", "nvarchar")
CONVERTING = {
    "a literal": f"SELECT 1 FROM {JOBS} WHERE r.task_id = N'1';",
    "a variable": f"{NVARCHAR} SELECT 1 FROM {JOBS} WHERE r.task_id = @id;",
    "a join": f"SELECT 1 FROM {WIDE_IDS} INNER JOIN {JOBS} ON r.task_id = j.id {BY_CODE_POINT};",
    "a text of a table of values": f"SELECT 1 FROM {VALUES} INNER JOIN {JOBS} ON r.task_id = v.id {BY_CODE_POINT};",
    "a converted value": f"{VARCHAR} SELECT 1 FROM {JOBS} WHERE r.task_id = CONVERT(nvarchar(40), @id);",
}
CHEAP = {
    "a literal of its type": f"SELECT 1 FROM {JOBS} WHERE r.task_id = '1';",
    "a variable of its type": f"{VARCHAR} SELECT 1 FROM {JOBS} WHERE r.task_id = @id;",
    "a converted text": f"{NVARCHAR} SELECT 1 FROM {JOBS} WHERE r.task_id = CONVERT(varchar(40), @id);",
    "a set value": f"{NVARCHAR} UPDATE hubledger.task SET kind = N'a' WHERE stream_id = 1;",
}


@holds_for([*CONVERTING, *CHEAP])
def test_a_planted_comparison_that_converts_a_column_is_seen_and_no_other(case: str) -> None:
    assert len(conversions({**CONVERTING, **CHEAP}[case], TYPES)) == (case in CONVERTING)


def test_no_statement_converts_a_column() -> None:
    assert [f"{name}: {one}" for name, text in every_batch().items() for one in conversions(text, TYPES)] == []


def test_no_statement_about_a_room_of_ascii_converts_a_column() -> None:
    with forgotten():
        states, line, of = room = named_by_words()
        tables = columns_of(iter([room_text(room[:2], (of,), "sqlserver")]), types=True)
        assert tables["line"]["user"] == tables["plain"]["user"] == tables["line_by_day"]["user"] == {"varchar"}
        asked = statements_about(states, line, of)
        texts = {str(one): rows_query(one).text if "read" in one.verb else asked_rows(one) for one in asked}
        assert len(texts) > 30
        assert {name: found for name, text in texts.items() if (found := conversions(text, {**TYPES, **tables}))} == {}
        of_keys = asked_rows(of_rows("select_states", states)).replace("[user] varchar", "[user] nvarchar")
        assert len(conversions(of_keys, tables)) == 1
