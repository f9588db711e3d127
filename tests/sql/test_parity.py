"""Both dialects say the same: the same queries, parameters, migrations, tables and columns."""

import re

from core.store.server_commit import _GAP, _LETTER, _TYPES, UNFOLDING
from core.store.server_letters import _OUTCOME

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


CUT_OUT = {"properties", "body"}  # what a letter of the server has in one long text for all, by place and length
AS_JSON = {"letters", "letter_texts", "diff_texts", "carried_texts", "gaps", *UNFOLDING}


def variables(text: str) -> set[str]:
    return set(re.findall(r"(?<!@)@(\w+)", without_comments(text)))


def json_columns(text: str) -> list[str]:
    """The columns of what comes in @letters or @gaps, by their place."""
    text = "".join(re.findall(r"OPENJSON\(@(?:letters|gaps)\) WITH \((.*?)\) AS [lp]", text, re.S))
    placed = re.findall(r"(\w+) [a-z0-9]+(?:\([^)]*\))? '\$\[(\d+)\]'", text)
    assert [int(place) for _, place in placed] == list(range(len(placed)))
    return [name for name, _ in placed]


def test_the_queries_have_the_same_names_in_the_same_files() -> None:
    assert list(SERVER) == list(EMBEDDED)


@holds_for(EMBEDDED)
def test_a_query_declares_the_same_params_in_both_dialects(name: str) -> None:
    assert SERVER[name].params == EMBEDDED[name].params


@holds_for(SERVER)
def test_every_param_is_used_as_a_variable_or_as_a_column_of_json(name: str) -> None:
    query = SERVER[name]
    columns = {re.sub(f"^({'|'.join(CUT_OUT)})_(at|length)$", r"\1", name) for name in json_columns(query.text)}
    assert set(query.params) == variables(query.text) - AS_JSON | columns


@holds_for(SERVER)
def test_every_param_has_a_type(name: str) -> None:
    in_json = set(json_columns(SERVER[name].text)) | CUT_OUT
    assert set(SERVER[name].params) - in_json - {"commit_number"} <= set(_TYPES)


def test_every_type_is_of_some_param() -> None:
    besides = {"keys", "letter_count", *UNFOLDING}
    used = {param for query in SERVER.values() for param in query.params} | besides
    assert set(_TYPES) <= used


def test_a_letter_a_part_of_a_gap_and_an_outcome_are_written_in_the_order_in_which_they_are_read() -> None:
    written = {"add_letter": _LETTER, "settle_gap": _GAP, "add_gap": _GAP, "settle_letters": _OUTCOME}
    assert {name: json_columns(SERVER[name].text) for name in written} == {
        name: list(columns) for name, columns in written.items()
    }


def test_the_migrations_are_the_same_by_version_and_name() -> None:
    server, embedded = ([(one.version, one.name) for one in load_migrations(of)] for of in ("sqlserver", "sqlite"))
    assert server == embedded


@holds_for(one.version for one in load_migrations("sqlite"))
def test_a_migration_makes_the_same_tables_columns_and_constraints(version: int) -> None:
    server, embedded = (
        next(one.text for one in load_migrations(of) if one.version == version) for of in ("sqlserver", "sqlite")
    )
    assert tables(embedded)
    assert tables(server) == tables(embedded)
    assert constraints(server) == constraints(embedded)
    assert added_columns(server) == added_columns(embedded)


def test_the_list_of_migrations_is_the_same_table() -> None:
    name = "create_schema_migration"
    assert tables(SERVER[name].text) == tables(EMBEDDED[name].text) != {}
