"""Both dialects say the same: the same queries, parameters, migrations, tables and columns."""

import re

from core.store.queries import load_migrations, load_queries
from tests.offenders import holds_for
from tests.sql.statements import without_comments

SERVER, EMBEDDED = load_queries("sqlserver"), load_queries("sqlite")
TABLE = re.compile(
    r"CREATE TABLE (?:IF NOT EXISTS )?(?:hubledger\.)?(?P<name>\w+) \((?P<columns>.*?)^ *\)", re.M | re.S
)


def tables(script: str) -> dict[str, list[tuple[str, bool]]]:
    """Columns in their order, and whether each must have a value."""
    found = {}
    for table in TABLE.finditer(without_comments(script)):
        lines = re.findall(r"^ +([a-z_]+) +(\w.*)", table["columns"], re.M)
        found[table["name"]] = [(name, "NOT NULL" in rest) for name, rest in lines]
    return found


def added_columns(script: str) -> list[tuple[str, str, bool]]:
    """Columns that a table gets later, and whether each must have a value: then it has a default, for old code."""
    found = re.findall(
        r"ALTER TABLE (?:hubledger\.)?(\w+) ADD (?:COLUMN )?(\w+) (.*?);", without_comments(script), re.S
    )
    assert all(("NOT NULL" in rest) == ("DEFAULT" in rest) for _, _, rest in found)
    return [(table, name, "NOT NULL" in rest) for table, name, rest in found]


def constraints(script: str) -> list[str]:
    return re.findall(r"CONSTRAINT (\w+)|INDEX (\w+)", without_comments(script))


def variables(text: str) -> set[str]:
    return set(re.findall(r"(?<!@)@(\w+)", without_comments(text))) - {"ROWCOUNT"}


def json_columns(text: str, variable: str) -> set[tuple[str, ...]]:
    """Return the columns of the rows that come in a variable, as each statement that opens it reads them."""
    found = set()
    for columns in re.findall(rf"OPENJSON\(@{variable}\) WITH \((.*?)\) AS \w", text, re.S):
        placed = re.findall(r"(\w+) [a-z0-9]+(?:\([^)]*\))? '\$\[(\d+)\]'", columns)
        assert [int(place) for _, place in placed] == list(range(len(placed)))
        found.add(tuple(name for name, _ in placed))
    return found


def test_the_queries_have_the_same_names_in_the_same_files() -> None:
    assert list(SERVER) == list(EMBEDDED)


@holds_for(EMBEDDED)
def test_a_query_declares_the_same_params_in_both_dialects(name: str) -> None:
    assert SERVER[name].params == EMBEDDED[name].params


@holds_for(SERVER)
def test_every_param_is_a_variable_of_the_text_and_all_others_are_kept_by_the_script(name: str) -> None:
    params, used = {param.name for param in SERVER[name].declared}, variables(SERVER[name].text)
    assert params <= used
    assert used == params or (used - params == {"commit_number"} and "@commit_number = " in SERVER[name].text)


@holds_for(SERVER)
def test_rows_are_read_in_the_order_in_which_they_are_written(name: str) -> None:
    for param in SERVER[name].declared:
        assert not param.columns or json_columns(SERVER[name].text, param.name) == {param.columns}


def test_only_the_server_declares_types() -> None:
    assert [query.name for query in EMBEDDED.values() for param in query.declared if param.type or param.columns] == []


def test_the_migrations_are_the_same_by_version_and_name() -> None:
    server, embedded = ([(one.version, one.name) for one in load_migrations(of)] for of in ("sqlserver", "sqlite"))
    assert server == embedded


@holds_for(one.version for one in load_migrations("sqlite"))
def test_a_migration_makes_the_same_tables_columns_and_constraints(version: int) -> None:
    server, embedded = (
        next(one.text for one in load_migrations(of) if one.version == version) for of in ("sqlserver", "sqlite")
    )
    assert tables(embedded) or constraints(embedded) or added_columns(embedded)
    assert tables(server) == tables(embedded)
    assert constraints(server) == constraints(embedded)
    assert added_columns(server) == added_columns(embedded)


def test_the_list_of_migrations_is_the_same_table() -> None:
    name = "create_schema_migration"
    assert tables(SERVER[name].text) == tables(EMBEDDED[name].text) != {}
