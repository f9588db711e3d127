"""The T-SQL that tests write themselves is found, and SQL Server takes it."""

from tests.offenders import holds_for
from tests.sql.by_hand import by_hand, needed, refused, texts_of

ON_PURPOSE = "tests/sql/test_on_server_migrations.py"  # a column that its batch adds is bound too early
INTO_LEDGER = "INSERT INTO batch_ledger ("
PLANTED = {
    "CREATE TABLE older AS SELECT * FROM partition_anchor": "a table is made of a query",
    "INSERT INTO partition_anchor SELECT * FROM older": "partition_anchor does not list anchored_at, ",
    "INSERT INTO {p}home_activity_staged SELECT g.staging_id": "home_activity_staged does not list active, home_id, ",
    INTO_LEDGER
    + ", ".join(sorted(one for one in needed()["batch_ledger"] if not one.startswith("total_")))
    + ")": "batch_ledger does not list total_absent, total_commits, total_dead_lettered, total_filtered, total_held, ",
}


def test_the_statements_of_tests_pass_what_no_parser_sees() -> None:
    refusing = {place: found for place, text in by_hand().items() if (found := refused(text))}
    assert [f"{place}: {found}" for place, found in refusing.items() if not place.startswith(ON_PURPOSE)] == []
    assert len(by_hand()) > 120


@holds_for(PLANTED)
def test_a_statement_that_no_server_takes_is_seen(text: str) -> None:
    ((_, found),) = texts_of(f"run({text!r})", {})
    assert [one for one in refused(found) if PLANTED[text] in one]


def test_a_text_is_found_whole_and_without_those_of_sqlite() -> None:
    source = """
WHERE = "x = 1"
ONLY = "CREATE TABLE a (b TEXT)"
def test_one(sqlite): sqlite.sql("DELETE FROM a")
def test_two(engine): engine.by_hand("UPDATE {p}a SET b = 2 WHERE " + WHERE)
def test_three(session): session.run(f"DELETE FROM {schema}.{table} WHERE {WHERE} AND c = {value(3)}")
def test_four(given): given.sql(ONLY)
"""
    assert [text for _, text in texts_of(source, {"WHERE": "x = 1"})] == [
        "UPDATE hubledger.a SET b = 2 WHERE x = 1",
        "DELETE FROM hubledger.x WHERE x = 1 AND c = x",
    ]
