"""The tables of the examples: on SQL Server, their own migrations make those that ours made before 0026."""

import re

from core.store.migrations import load_migrations, migrations_of
from tests.fakes.rooms import EXAMPLES
from tests.sql.statements import without_comments

TABLE = re.compile(r"CREATE TABLE hubledger\.(\w+) \((.*?)\n *\)(?: WITH \((.*?)\))?;", re.S)
ADDED = re.compile(r"ALTER TABLE hubledger\.(\w+)\s+ADD (\w+ .*?);", re.S)
REBUILT = re.compile(r"ALTER TABLE hubledger\.(\w+) REBUILD WITH \((.*?)\)")
INDEX = re.compile(
    r"CREATE (?:CLUSTERED )?INDEX (\w+)\s+ON hubledger\.(\w+) (\(.*?\))(?: INCLUDE \(\w+\))?(?:\s+WITH \((.*?)\))?;"
)
GUARDED = r"IF OBJECT_ID\(N'hubledger\.(\w+)', N'U'\) IS NULL\s+(?:BEGIN\s+)?CREATE TABLE hubledger\.\1 "
LATER = re.compile(r"ix_\w+_place ")  # of tables of states, since they are apart
Tables = dict[str, set[str]]


def tables(text: str) -> Tables:
    """Return the columns, constraints, indexes and compression of each table."""
    text, found = without_comments(text), dict[str, set[str]]()
    for name, body, options in TABLE.findall(text):
        found[name] = {" ".join(line.split()).rstrip(",") for line in body.split("\n") if line.strip()}
        found[name] |= {options} - {""}
    for name, added in (*ADDED.findall(text), *REBUILT.findall(text)):
        found[name].add(" ".join(added.split()))
    for index, name, columns, options in INDEX.findall(text):
        found[name].add(f"{index} {columns} {options.removeprefix('ONLINE = ON').removeprefix(', ')}")
    return found


def text_of(*names: str) -> str:
    return "\n".join(one.text for one in load_migrations("sqlserver") if one.name in names or not names)


def apart() -> list[str]:
    """Return the tables that 0026 drops."""
    return re.findall(r"DROP TABLE IF EXISTS hubledger\.(\w+);", text_of("examples_apart"))


def test_the_rooms_of_the_examples_make_the_tables_that_ours_made() -> None:
    ours = tables(text_of())
    theirs = [tables("\n".join(one.text for one in migrations_of(room, "sqlserver"))) for room in EXAMPLES]
    found = {name: {line for line in lines if not LATER.match(line)} for each in theirs for name, lines in each.items()}
    assert found == {name: ours[name] for name in apart() if name != "home_activity_staging"}


def test_a_difference_is_seen() -> None:
    made = "CREATE TABLE hubledger.a (\n    b int NOT NULL\n);"
    assert tables(made) == {"a": {"b int NOT NULL"}}
    for more in ("ALTER TABLE hubledger.a ADD c int;", "CREATE INDEX ix ON hubledger.a (b) WITH (ONLINE = ON);"):
        assert tables(made) != tables(f"{made}\n{more}")
    assert tables(made) != tables(made.replace("\n);", "\n) WITH (DATA_COMPRESSION = PAGE);"))


def test_each_table_of_the_examples_is_made_only_where_it_is_missing() -> None:
    for room in EXAMPLES:
        for one in migrations_of(room, "sqlserver"):
            guarded = re.findall(GUARDED, one.text)
            assert guarded == re.findall(r"CREATE TABLE hubledger\.(\w+)", one.text)
            assert guarded != [] or one.version > 1
