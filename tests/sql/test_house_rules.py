"""Our own rules for T-SQL, which no parser knows."""

import ast
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from core.store.server_commit import commit_statement
from core.store.server_letters import move_statement, retry_statement
from core.store.server_replay_commit import commit_replay_statement, rehearse_replay_statement

from core.model.rows import row_table
from core.store.queries import SQL, load_migrations, load_queries
from tests.offenders import holds_for
from tests.sql.statements import (
    MOVED,
    commit_batches,
    commit_of,
    every_batch,
    job_batches,
    job_statements,
    move_batches,
    move_of,
    replay_batches,
    replay_of,
    retry_batches,
    retry_of,
    run_batches,
    without_comments,
)
from tests.sql.values import ROW_CLASSES

ROOT = Path(__file__).parents[2]
ONLY_PLACES_OF_SQL = {
    "core/store/row_statements.py",
    "core/store/replay_statements.py",
    "core/store/recount_statements.py",
}
SQL_TEXT = re.compile(
    r"\b(SELECT\b.+\bFROM|INSERT\s+INTO|UPDATE\b.+\bSET|DELETE\s+FROM|(CREATE|ALTER|DROP)\s+(TABLE|INDEX|SCHEMA|ROLE)"
    r"|OPENJSON|DECLARE\s+@\w+|(BEGIN|COMMIT|ROLLBACK)\s+TRAN\w*)\b",
    re.S,
)

FORBIDDEN = {
    "MERGE has known races": r"\bMERGE\b",
    "not on every T-SQL server": r"\bCREATE\s+OR\s+ALTER\b|\bDROP\s+\w+\s+IF\s+EXISTS\b",
    "reads what was never committed": r"\bNOLOCK\b|\bREAD\s*UNCOMMITTED\b",
    "columns are listed": r"SELECT\s+(TOP\s*\(\d+\)\s*)?\*|\.\*|OUTPUT\s+\w+\.\*",
    "a reserved name": r"\bcheckpoint\b(?!')",
    "newer than SQL Server 2019": (
        r"\b(GREATEST|LEAST|GENERATE_SERIES|DATE_BUCKET|DATETRUNC|JSON_OBJECT|JSON_ARRAY|JSON_PATH_EXISTS|"
        r"APPROX_PERCENTILE_\w+|WINDOW\s+\w+\s+AS|IS\s+(NOT\s+)?DISTINCT\s+FROM|IGNORE\s+NULLS|BIT_COUNT)\b"
    ),
    "SQLite's": r"\b(LIMIT|RETURNING|ON\s+CONFLICT|STRICT|WITHOUT\s+ROWID|IF\s+NOT\s+EXISTS\s+\w+\s*\()\b",
    "no call syntax": r"\{CALL|\{ *\?",
    "cut and left with its escapes by some servers": r"\bWITH\s*\([^;]*\(max\)",
    "time is UTC, and an argument": r"\b(GETDATE|SYSDATETIME|CURRENT_TIMESTAMP)\b",
}
PLANTED = {
    "MERGE has known races": "MERGE INTO hubledger.home AS t",
    "not on every T-SQL server": "CREATE OR ALTER PROCEDURE x",
    "reads what was never committed": "SELECT a FROM t WITH (NOLOCK)",
    "columns are listed": "SELECT TOP (1) * FROM t",
    "a reserved name": "CREATE TABLE hubledger.checkpoint (a int)",
    "newer than SQL Server 2019": "SELECT GREATEST(1, 2)",
    "SQLite's": "SELECT a FROM t LIMIT 1",
    "no call syntax": "{CALL p (?)}",
    "cut and left with its escapes by some servers": "OPENJSON(@a) WITH (b int '$[0]', c nvarchar(max) '$[1]')",
    "time is UTC, and an argument": "SELECT GETDATE()",
}


OUTPUT_TABLES = [row_table(one).name for one in ROW_CLASSES]


def in_code(text: str) -> str:
    """Return the text without comments and quoted texts."""
    return re.sub(r"'[^']*'", "''", without_comments(text))


def is_one_transaction(text: str) -> bool:
    """Find one transaction, after the declarations, that ends at the first error."""
    parts = ("SET XACT_ABORT ON;", "DECLARE", "BEGIN TRANSACTION;", "COMMIT TRANSACTION;")
    places = [text.find(part) for part in parts]
    return -1 not in places and places == sorted(places) and text.count("TRANSACTION") == 2


def is_one_statement(between: re.Match[str] | None) -> bool:
    """Find one whole statement: a further one would set @@ROWCOUNT anew, and THROW needs the semicolon before it."""
    return between is not None and between[1].count(";") == 1 and between[1].rstrip().endswith(";")


@holds_for(FORBIDDEN)
def test_no_statement_breaks_a_rule_and_a_planted_one_is_seen(rule: str) -> None:
    pattern = re.compile(FORBIDDEN[rule], re.I)
    assert pattern.search(in_code(PLANTED[rule]))
    assert {name: found[0] for name, text in every_batch().items() if (found := pattern.search(in_code(text)))} == {}


@holds_for(every_batch().keys() - {"permissions.sql"})
def test_a_batch_counts_no_rows_so_that_errors_are_not_held_back(name: str) -> None:
    assert without_comments(every_batch()[name]).strip().startswith("SET NOCOUNT ON;")


@holds_for([*commit_batches(), *run_batches(), *retry_batches(), *move_batches()])
def test_a_batch_that_writes_is_one_transaction_that_ends_at_the_first_error(name: str) -> None:
    assert is_one_transaction(every_batch()[name])


@holds_for(commit_batches())
def test_a_commit_ends_with_its_number(name: str) -> None:
    assert commit_batches()[name].rstrip().endswith("SELECT @commit_number AS commit_number;")


@holds_for(run_batches())
def test_a_run_is_planned_and_committed_after_its_cut_and_looks_at_each_update(name: str) -> None:
    text = run_batches()[name]
    first, *_ = re.findall(r"(?:UPDATE|INSERT INTO|DELETE FROM) hubledger\.(\w+)", text)
    assert first == "aggregation_cut"
    for guarded in re.findall(r"UPDATE hubledger\.aggregation_\w+(.*?)IF @@ROWCOUNT <> 1 THROW", text, re.S):
        assert guarded.count(";") == 1
    assert len(re.findall(r"UPDATE hubledger\.", text)) == text.count("IF @@ROWCOUNT <> 1 THROW 51000")


@holds_for(commit_batches())
def test_the_guard_directly_follows_the_checkpoint(name: str) -> None:
    checked = r"(?:UPDATE|INSERT INTO) hubledger\.event_hub_checkpoint(.*?)IF @@ROWCOUNT <> 1 THROW"
    assert is_one_statement(re.search(checked, commit_batches()[name], re.S))


@holds_for(commit_batches())
def test_a_commit_locks_checkpoint_rows_letters_and_ledger_in_this_order(name: str) -> None:
    text = commit_batches()[name]
    written = re.findall(r"(?:INSERT INTO|UPDATE|UPDATE [tg]\s+SET[^;]*?FROM) hubledger\.(\w+)", text)
    order = ["event_hub_checkpoint", *OUTPUT_TABLES, "event_hub_dead_letter", "batch_ledger", "sequence_gap"]
    assert written[0] == "event_hub_checkpoint"
    assert written[-1] == ("sequence_gap" if " gaps" in name else "batch_ledger")
    assert [order.index(table) for table in written] == sorted(map(order.index, written))


@holds_for(retry_batches())
def test_a_retry_counts_its_letters_right_after_it_settled_them(name: str) -> None:
    checked = r"UPDATE d\n(.*?)IF @@ROWCOUNT <> @letter_count THROW 51002"
    assert is_one_statement(re.search(checked, retry_batches()[name], re.S))


@holds_for(retry_batches())
def test_a_retry_locks_checkpoint_rows_letters_attempts_and_ledger_in_this_order(name: str) -> None:
    written = re.findall(
        r"(?:INSERT INTO|UPDATE|UPDATE [td]\s+SET.*?FROM) hubledger\.(\w+)", retry_batches()[name], re.S
    )
    order = ["event_hub_checkpoint", *OUTPUT_TABLES, "event_hub_dead_letter", "dead_letter_attempt", "batch_ledger"]
    assert written[0] == "event_hub_checkpoint"
    assert written[-3:] == order[-3:]
    assert [order.index(table) for table in written] == sorted(map(order.index, written))


@holds_for([*retry_batches(), *replay_batches()])
def test_a_retry_or_replay_never_moves_the_checkpoint_and_never_takes_the_id_of_a_batch(name: str) -> None:
    changed = re.findall(r"UPDATE hubledger\.event_hub_checkpoint\s+SET (.*?)\s+WHERE", every_batch()[name], re.S)
    assert changed == ["commit_number = commit_number + 1"]


@holds_for([*replay_batches(), *job_batches()])
def test_a_batch_of_a_replay_is_one_transaction_that_declares_all_that_it_uses(name: str) -> None:
    text = every_batch()[name]
    declared = set(re.findall(r"@(\w+) [a-z0-9]+(?:\([^)]*\))?(?: =|[,;])", "".join(re.findall(r"DECLARE.*?;", text))))
    used = set(re.findall(r"(?<!@)@(\w+)", without_comments(text)))
    assert used == declared
    assert text.count("BEGIN TRANSACTION;") == 1
    assert len(re.findall(r"(COMMIT|ROLLBACK) TRANSACTION;", text)) == 1
    assert ("ROLLBACK" in text) == name.startswith("rehearsal ")
    assert text.index("SET XACT_ABORT ON;") < text.index("BEGIN TRANSACTION;")


@holds_for(replay_batches())
def test_a_replay_locks_checkpoint_rows_letters_ledger_staged_progress_and_job_in_this_order(name: str) -> None:
    text = re.sub(r"INSERT INTO hubledger\.retracted_row.*?;", "", replay_batches()[name], flags=re.S)
    written = re.findall(
        r"(?:INSERT INTO|UPDATE|DELETE(?: t)? FROM|UPDATE [tds]\s+SET.*?FROM) hubledger\.(\w+)", text, re.S
    )
    order = ["event_hub_checkpoint", *OUTPUT_TABLES, "event_hub_dead_letter", "dead_letter_attempt", "batch_ledger"]
    order += ["staged_event", "replay_progress", "replay_state", "replay_job"]
    assert [order.index(table) for table in written] == sorted(map(order.index, written))
    assert written[0] == "event_hub_checkpoint"
    is_rehearsal = name.startswith("rehearsal ")
    assert written[-1] == ("batch_ledger" if is_rehearsal else "replay_job")
    assert ("staged_event" in written) != is_rehearsal


@holds_for(replay_batches())
def test_a_replay_looks_at_each_compare_and_set_right_after_it(name: str) -> None:
    """Any statement between them would set @@ROWCOUNT anew."""
    checked = r"UPDATE hubledger\.(\w+)[^;]*;\s*IF @@ROWCOUNT <> 1 THROW 51008"
    wanted = ["event_hub_checkpoint", "replay_progress", "replay_job"]
    assert re.findall(checked, replay_batches()[name]) == wanted[: 1 if name.startswith("rehearsal ") else 3]


def with_their_values() -> Iterator[tuple[str, list[Any]]]:
    """Give the batches of each kind with the values that they bind."""
    yield from job_statements().values()
    yield from (move_statement(move_of(move), 1) for move in MOVED)
    yield from (retry_statement(retry_of(classes)) for classes in ((), ROW_CLASSES))
    for shape, letters in product((True, False), (True, False)):
        yield commit_statement(commit_of(ROW_CLASSES, first=shape, letters=letters))
        replay = replay_of(ROW_CLASSES if shape else (), letters=letters)
        yield from (commit_replay_statement(replay), rehearse_replay_statement(replay))


@holds_for(with_their_values())
def test_a_batch_has_as_many_values_as_markers_and_each_is_something(batch: tuple[str, list[Any]]) -> None:
    text, given = batch
    assert text.count("?") == len(given)
    assert None not in given


def test_a_claim_is_one_statement_whose_predicate_is_on_the_row_that_it_changes() -> None:
    text = every_batch()["query claim_letters"]
    assert re.findall(r"\b(SELECT|UPDATE|OUTPUT|WHERE)\b", without_comments(text)) == ["UPDATE", "OUTPUT", "WHERE"]


@holds_for(every_batch())
def test_every_column_that_is_put_out_says_of_which_side_it_is(name: str) -> None:
    for columns in re.findall(r"\bOUTPUT\s+(.*?)\n", in_code(every_batch()[name])):
        assert all(column.strip().startswith(("inserted.", "deleted.")) for column in columns.split(","))


@holds_for(every_batch())
def test_throw_follows_a_condition_or_a_semicolon(name: str) -> None:
    for line in in_code(every_batch()[name]).splitlines():
        for throw in re.finditer(r"\bTHROW\b", line):
            assert re.search(r"(;|^|\bIF\b.*)\s*$", line[: throw.start()])


def test_remarks_in_what_takes_values_hold_no_marker() -> None:
    """The driver looks for markers and quotes in remarks too."""
    for query in load_queries("sqlserver").values():
        assert "?" not in query.text
        assert all(remark.count("'") == 0 for remark in re.findall(r"--.*", query.text))


def test_ids_compare_by_code_point_wherever_they_are_stored() -> None:
    for migration in load_migrations("sqlserver"):
        columns = re.findall(
            r"^ +(partition_id|\w*home_id|sensor_id|carrier|event_hub|consumer_group) +(.*)", migration.text, re.M
        )
        assert all("COLLATE Latin1_General_100_BIN2" in kind for _, kind in columns)


def test_the_role_of_the_app_may_use_every_table_and_change_no_schema() -> None:
    script = without_comments((SQL / "sqlserver" / "permissions.sql").read_text(encoding="utf-8"))
    grants = re.findall(r"GRANT ([A-Z, ]+) ON hubledger\.(\w+) TO hubledger_app", script)
    may = {table: set(verbs.split(", ")) for verbs, table in grants}
    made = set(re.findall(r"CREATE TABLE hubledger\.(\w+)", " ".join(every_batch().values())))
    assert set(may) == made
    assert may["staged_event"] == {"SELECT", "DELETE"}
    assert "GRANT SELECT, INSERT ON hubledger.staged_event TO hubledger_job;" in script
    assert set.union(*(may[table] for table in made)) == {"SELECT", "INSERT", "UPDATE", "DELETE"}
    kinds = ("commit ", "query ", "retry ", "move ", "replay ", "rehearsal ", "job ", "plan ")
    sent = " ".join(text for name, text in every_batch().items() if name.startswith(kinds))
    for table in made - {"schema_migration"}:
        if re.search(
            rf"UPDATE hubledger\.{table}\b"
            rf"|UPDATE (?:TOP \(@most\) )?[atdg]\s+SET(?:(?!FROM)[^;])*FROM hubledger\.{table}\b",
            sent,
        ):
            assert "UPDATE" in may[table]
        if f"DELETE FROM hubledger.{table}\n" in sent:
            assert "DELETE" in may[table]
        if f"INSERT INTO hubledger.{table} " in sent or f"INSERT INTO hubledger.{table}\n" in sent:
            assert "INSERT" in may[table]
        assert ("DELETE" in may[table]) == bool(
            re.search(rf"DELETE (t )?FROM hubledger\.{table}\b|DELETE FROM a\s+FROM hubledger\.{table}\b", sent)
        )


def python_texts(path: Path) -> Iterator[str]:
    """Every text of a module but its docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    remarks = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in remarks:
            yield node.value


def test_only_the_modules_of_row_classes_hold_sql() -> None:
    places = [*ROOT.glob("core/**/*.py"), *ROOT.glob("handlers/**/*.py"), ROOT / "function_app.py"]
    holding = {str(path.relative_to(ROOT)) for path in places if any(map(SQL_TEXT.search, python_texts(path)))}
    assert holding == ONLY_PLACES_OF_SQL
