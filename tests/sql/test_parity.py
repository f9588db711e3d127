import re

from core.model.rows import row_table
from core.store.columns import fields_of, types_of
from core.store.queries import BY_CODE_POINT, ROWS, SQL, load_queries
from core.store.script import RowVerb, of_rows
from core.store.sqlite.statements import rows_text
from core.store.sqlserver.statements import rows_query
from tests.fakes.rooms import all_migrations
from tests.offenders import holds_for
from tests.sql.statements import every_script, without_comments
from tests.sql.values import ROW_CLASSES

SERVER, EMBEDDED = load_queries("sqlserver"), load_queries("sqlite")
TABLE = re.compile(
    r"CREATE TABLE (?:IF NOT EXISTS )?(?:hubledger\.)?(?P<name>\w+) \((?P<columns>.*?)^ *\)", re.M | re.S
)

LISTED = r"SELECT \w\.(\w+) FROM OPENJSON\((@\w+)\) WITH \(\1 bigint '\$\[0\]'\) AS \w"
SECOND = re.findall(
    r"^-- name: (\w+)$(?=(?:\n(?!-- name: ).*)*\n-- sqlserver:$)",
    "".join(path.read_text(encoding="utf-8") for path in sorted((SQL / "queries").glob("*.sql"))),
    re.M,
)
# Changes that the two dialects cannot write alike: an upsert is an update and an insert on the server, and so on.
WRITTEN_APART = {
    "begin_attempt", "carry_states", "free_letters", "order_letters", "forget_states",
}  # fmt: skip
STATES = [row_class for row_class in ROW_CLASSES if row_table(row_class).key]


def made_by(script: str) -> tuple[dict[str, list[tuple[str, bool]]], list[str], list[str]]:
    """Return the columns of each table in their order, the constraints and indexes, and the dropped tables.

    Computed columns are left out. Each other column has True when it must have a value.
    """
    text, found = without_comments(script), {}
    for table in TABLE.finditer(text):
        lines = re.findall(r"^ +([a-z_]+) +(\w.*)", table["columns"], re.M)
        stored = [(name, rest) for name, rest in lines if not rest.startswith("AS ")]
        found[table["name"]] = [(name, "NOT NULL" in rest) for name, rest in stored]
    for table, name, rest in re.findall(r"ALTER TABLE (?:hubledger\.)?(\w+) ADD (?:COLUMN )?(\w+) (.*?);", text, re.S):
        if not rest.startswith("AS "):  # a column that only the server has, because only its indexes need it
            assert ("NOT NULL" in rest) == ("DEFAULT" in rest), "old code writes no value"
            found[f"{table} more"] = [*found.get(f"{table} more", []), (name, "NOT NULL" in rest)]
    constraints = re.findall(r"(?:CONSTRAINT|(?<!DROP )INDEX(?: IF NOT EXISTS)?) (\w+)", text)
    return found, constraints, re.findall(r"DROP TABLE IF EXISTS (?:hubledger\.)?(\w+)", script)


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


@holds_for(SERVER)
def test_rows_are_read_in_the_order_in_which_they_are_written_and_other_variables_are_kept(name: str) -> None:
    for param in SERVER[name].declared:
        assert not param.columns or json_columns(SERVER[name].text, param.name) == {param.columns}
    others = variables(SERVER[name].text) - {param.name for param in SERVER[name].declared}
    assert others <= {step.keeps for script in every_script().values() for step in script.steps}
    assert name not in SECOND or SERVER[name].optional == EMBEDDED[name].optional, "the same filters may be given"


def test_the_migrations_make_the_same_tables_columns_and_constraints_by_version_and_name() -> None:
    server, embedded = ({one.title: one.text for one in all_migrations(of)} for of in ("sqlserver", "sqlite"))
    assert list(server) == list(embedded)
    for title, text in server.items():
        assert made_by(text) == made_by(embedded[title]), title
        assert any(made_by(text)) or re.search(r"ALTER COLUMN|ADD \w+ AS ", text), title
    name = "create_schema_migration"
    assert made_by(SERVER[name].text)[0] == made_by(EMBEDDED[name].text)[0] != {}


DUE, AHEAD = (rf"(d\.{one})" for one in ("due_at <= @claimed_at", "due_at > @latest"))
EITHER = r"\1 AND (\2 OR \3)"  # SQLite unites two ranges, each sought in the index of due letters


def condition(name: str, text: str) -> str:
    """Return the condition of an update or a delete in words that are alike in both dialects. Empty for a statement
    that only reads or inserts."""
    text = without_comments(text) + ";"
    found = re.search(r"FROM \(SELECT TOP \(@most\).*?WHERE(.*?)\) AS n\n", text, re.S)  # those that it reads again
    found = found or re.search(r"\b(?:UPDATE|DELETE)\b.*?\n WHERE\b(.*?)(?:;|\bRETURNING\b|\bOPTION\b)", text, re.S)
    words = re.sub(r":(\w+)", r"@\1", found[1] if found else "").replace("hubledger.", "")
    words = re.sub(LISTED, r"SELECT n.value ->> 0 FROM json_each(\2) AS n", words)
    words = words.replace("key_hash", "partition_key")  # blanks count
    words = re.sub(r"\s+rowid IN \(.*?WHERE(.*)ORDER BY.*?LIMIT @most(?:\) AS n)?\)", r"\1", words, flags=re.S)
    words = re.sub(r" WITH \([A-Z, ]+\)", "", words)  # locks
    words = re.sub(rf"(.*) AND {DUE}\s+UNION ALL.*WHERE\1 AND {AHEAD}", EITHER, words, flags=re.S)
    for column in (column for param in SERVER[name].declared if param.type == ROWS for column in param.columns):
        words = re.sub(rf" AND {column} = @{column}\b", "", words)  # the server joins the rows
    if "\n  FROM OPENJSON(" in SERVER[name].text:  # it joins the list too
        words = re.sub(r" AND \w+ IN \(\s*SELECT n\.value ->> 0 FROM json_each\(@\w+\) AS n\)", "", words)
    return " ".join(re.sub(r"\b[a-z]\.(?=\w)|(?<=\()\s+|\s+(?=\))", "", words).split())


def test_the_second_body_of_an_update_or_a_delete_has_the_same_condition() -> None:
    """SQLite's is proven by running it, and the server's by being the same."""
    both = {name: (condition(name, EMBEDDED[name].text), condition(name, SERVER[name].text)) for name in SECOND}
    assert sum(here == there != "" for here, there in both.values()) >= 10
    assert {name for name, (here, there) in both.items() if here != there} == WRITTEN_APART


def test_a_state_gives_way_under_the_same_condition_in_both_dialects() -> None:
    verbs: tuple[RowVerb, ...] = ("set", "replace_states")
    for row_class in STATES:
        for verb in verbs:
            of, table = of_rows(verb, row_class), row_table(row_class).name
            here = rows_text(of).rsplit(" WHERE ", 1)[1].replace(f"{table}.", "t.")
            here = re.sub(r"excluded\.(stream_id|partition_id)", r"@\1", here).replace("excluded.", "r.")
            here = here.replace("?", "r.hubledger_taken")  # the last of the values
            there = rows_query(of).text.split("\n WHERE ", 1)[1].split("\nOPTION ")[0]
            assert there == here, of
        copied = rows_query(of_rows("retract_states", row_class)).text
        if not row_table(row_class).newest_by:
            assert there in copied
            continue
        own, _, given_way = there.partition(" AND t.sequence_number = r.hubledger_taken OR ")
        assert f" WHERE {own} AND (t.sequence_number = r.hubledger_taken OR {given_way})\n" in copied
    assert sum(bool(row_table(row_class).newest_by) for row_class in STATES) == 1


def test_keys_match_by_code_point_on_the_server_wherever_states_are_found() -> None:
    verbs: tuple[RowVerb, ...] = ("set", "replace_states", "retract_states", "select_states", "select_standing")
    found = 0
    for row_class in STATES:
        for name, hint in fields_of(row_class):
            if name in row_table(row_class).key and str in types_of(hint):
                for of in (of_rows(verb, row_class) for verb in verbs):
                    matches = re.findall(rf"t\.\[{name}\] = \w\.\[{name}\]( COLLATE \w+)?", rows_query(of).text)
                    assert set(matches) == {f" {BY_CODE_POINT}"}, of
                    found += len(matches)
    assert found > len(verbs)
