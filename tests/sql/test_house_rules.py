import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache

import pytest

from core.model.rows import row_table
from core.store.migrations import load_migrations
from core.store.queries import ROWS, Query, load_queries
from core.store.script import Named, OfRows, RowVerb, of_rows
from core.store.sqlserver.statements import rows_query
from infra.hooks.database import USER
from local.explain import uses_of
from tests.fakes.rooms import all_migrations
from tests.offenders import holds_for
from tests.sql import statements as sql_statements
from tests.sql.gates import Faults, gates
from tests.sql.statements import STATES, every_batch, every_run, every_script, purges, retries, without_comments
from tests.sql.values import ROW_CLASSES

# Each with a pattern that finds what breaks it, and a text that does.
FORBIDDEN = {
    "MERGE has known races": (r"\bMERGE\b", "MERGE INTO hubledger.home AS t"),
    "reads what was never committed": (r"\bNOLOCK\b|\bREAD\s*UNCOMMITTED\b", "SELECT a FROM t WITH (NOLOCK)"),
    "columns are listed": (r"SELECT\s+(TOP\s*\(\d+\)\s*)?\*|\.\*|OUTPUT\s+\w+\.\*", "SELECT TOP (1) * FROM t"),
    "a reserved name": (r"\bcheckpoint\b(?!')", "CREATE TABLE hubledger.checkpoint (a int)"),
    "newer than SQL Server 2022": (
        r"\b(REGEXP_\w+|JSON_(OBJECTAGG|ARRAYAGG|CONTAINS)|EDIT_DISTANCE|PRODUCT|CURRENT_DATE|UNISTR|BASE64_\w+)\b",
        "SELECT CURRENT_DATE",
    ),
    "SQLite's": (
        r"\b(LIMIT|RETURNING|ON\s+CONFLICT|STRICT|WITHOUT\s+ROWID|IF\s+NOT\s+EXISTS\s+\w+\s*\()\b",
        "SELECT a FROM t LIMIT 1",
    ),
    "no call syntax": (r"\{CALL|\{ *\?", "{CALL p (?)}"),
    "a value of JSON without WITH is nvarchar(max), and so is what is compared with it": (
        r"OPENJSON\(@\w+\)(?!\s+WITH \()",
        "SELECT j.value FROM OPENJSON(@ids) AS j",
    ),
    "nothing is folded": (r"\bTRANSLATE\b", "SELECT TRANSLATE(a, 'x', 'y')"),
    "a blank at the end of a key counts": (
        r"\bpartition_key (= (@|k\.)|IN \()|NULLIF\(@(?!\w+_day)\w+, ''\)",
        "SELECT a FROM t WHERE d.partition_key = @partition_key",
    ),
    "time is UTC, and an argument": (r"\b(GETDATE|SYSDATETIME|CURRENT_TIMESTAMP)\b", "SELECT GETDATE()"),
}


def found_in(pattern: str, texts: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(name, found) for name, text in texts.items() for found in re.findall(pattern, text, re.M | re.S)]


def in_code(text: str) -> str:
    """Return the text without comments and quoted texts."""
    return re.sub(r"'[^']*'", "''", without_comments(text))


def is_one_transaction(text: str, end: str) -> bool:
    parts = ("SET XACT_ABORT ON;", "DECLARE", "BEGIN TRANSACTION;", f"{end} TRANSACTION;")
    places = [text.find(part) for part in parts]
    return -1 not in places and places == sorted(places) and text.count("TRANSACTION") == 2


def query_of(statement: Named) -> Query:
    return load_queries("sqlserver")[statement] if isinstance(statement, str) else rows_query(statement)


@holds_for(FORBIDDEN)
def test_no_statement_breaks_a_rule_and_a_planted_one_is_seen(rule: str) -> None:
    pattern, planted = re.compile(FORBIDDEN[rule][0], re.I), FORBIDDEN[rule][1]
    assert pattern.search(in_code(planted))
    assert {name: found[0] for name, text in every_batch().items() if (found := pattern.search(in_code(text)))} == {}


@holds_for(sorted(name for name in every_batch() if not name.startswith("permissions")))
def test_a_batch_counts_no_rows_so_that_errors_are_not_held_back(name: str) -> None:
    assert without_comments(every_batch()[name]).strip().startswith("SET NOCOUNT ON;")


@holds_for(every_script())
def test_a_script_is_one_transaction_that_ends_at_the_first_error_with_the_numbers_that_it_keeps(name: str) -> None:
    """The session keeps XACT_ABORT after a batch without values: with values, it ends with the batch."""
    script, (text, given) = every_script()[name], every_run()[name]
    assert is_one_transaction(text, "ROLLBACK" if name.startswith("rehearsal ") else "COMMIT")
    assert len(script.steps) > 1 and given
    assert "BEGIN TRY" not in text, "XACT_ABORT dooms a transaction whose error is caught"
    kept = dict.fromkeys(each for step in script.steps for each in (step.keeps, step.counts) if each)
    assert text.endswith(f"SELECT {', '.join(f'@{one} AS {one}' for one in kept)};" if kept else "TRANSACTION;")
    assert ("commit_number" in kept) == name.startswith(("commit ", "retry ", "replay ", "rehearsal "))


@holds_for(every_script())
def test_a_script_declares_once_all_that_it_uses_and_has_a_value_for_each_marker(name: str) -> None:
    text, given = every_run()[name]
    declarations = "".join(re.findall(r"^DECLARE.*?;$", text, re.M))
    declared = re.findall(r"@(\w+) (?:[a-z0-9]+(?:\([^)]*\))? =|TABLE \()", declarations)
    assert len(declared) == len(set(declared))
    assert set(re.findall(r"(?<!@)@(\w+)", without_comments(text))) == set(declared)
    assert text.count("?") == len(given) and None not in given
    params = {one for step in every_script()[name].steps for one in query_of(step.statement).declared}
    assert len({one.name for one in params}) == len(params), "steps that share a parameter declare it alike"


def test_a_first_row_that_two_may_open_at_once_catches_the_duplicate_outside_of_a_transaction() -> None:
    alone = load_queries("sqlserver").keys() - sql_statements.named_statements(every_script().values())
    texts = {name: load_queries("sqlserver")[name].text for name in alone}
    catching = {name for name, text in texts.items() if "BEGIN TRY" in text}
    if_none = re.compile(r"\n +(?:WHERE|AND|) *NOT EXISTS|IF @@ROWCOUNT = 0")
    opening = {name for name, text in texts.items() if "INSERT INTO" in text and if_none.search(text)}
    assert catching == opening == {
        "open_stream", "anchor_partition", "note_stop",
        "take_ownership", "open_cut", "begin_attempt",
    }  # fmt: skip
    assert all(not re.search("XACT_ABORT|TRANSACTION", every_batch()[f"query {name}"]) for name in catching)


def test_a_count_that_loses_the_race_for_its_first_row_is_added_to_the_row_of_the_winner() -> None:
    """Where locks are optimized, an update passes over the row that a different process is inserting."""
    counted, _, caught = query_of("note_stop").text.partition("BEGIN CATCH")
    updates = [re.search(r"UPDATE hubledger[^;]*;", part) for part in (counted, caught)]
    assert updates[0] and updates[1]
    assert updates[0][0] == updates[1][0]
    assert "IF @@ROWCOUNT = 0\n        INSERT INTO" in counted
    assert "NOT EXISTS" not in counted, "it would see a row that the update passed over, and count nothing"


@holds_for(every_script())
def test_a_number_of_rows_is_looked_at_right_after_the_one_statement_that_touched_them(name: str) -> None:
    """Any statement between them would set @@ROWCOUNT anew, and THROW needs the semicolon before it."""
    text = every_run()[name][0]
    for step in every_script()[name].steps:
        if step.expect is not None or step.counts:
            statement = query_of(step.statement).text
            assert re.sub(r"^SET @commit_number = 1;", "", statement).count(";") == 1
            follows = (
                "IF @@ROWCOUNT <> " if step.counts is None else f"SET @{step.counts} = @{step.counts} + @@ROWCOUNT;"
            )
            assert f"{statement}\n{follows}" in text
        assert step.expect is None or (step.otherwise is not None and step.counts is None)


@holds_for(name for name in every_script() if name.startswith("rehearsal "))
def test_a_rehearsal_answers_after_it_is_rolled_back_so_that_no_client_holds_its_locks(name: str) -> None:
    before, _, after = every_run()[name][0].partition("\nROLLBACK TRANSACTION;\n")
    statements = [one.strip() for one in without_comments(before).split(";")]
    assert [one for one in statements if re.match(r"SELECT (?!@)", one) or "OUTPUT" in one] == []
    assert len([one for one in statements if one.startswith("INSERT INTO @answer ")]) == 1
    assert re.match(r"SELECT a\.table_name, [^;]* FROM @answer AS a ORDER BY a\.place;\nSELECT @commit_number", after)


@holds_for(query for query in load_queries("sqlserver") if load_queries("sqlserver")[query].answers)
def test_a_statement_answers_with_the_columns_that_it_declares_in_their_types(name: str) -> None:
    query = load_queries("sqlserver")[name]
    selected = re.findall(r"\w\.(\w+)", query.text.partition("FROM")[0])
    assert selected == [column.name for column in query.answers]
    table = re.search(r"FROM hubledger\.(\w+)", query.text)
    made = " ".join(migration.text for migration in load_migrations("sqlserver"))
    assert table
    columns = re.search(rf"CREATE TABLE hubledger\.{table[1]} \((.*?)\n\)[^;]*;", made, re.S)
    assert columns
    assert all(re.search(rf"^ +{one.name} +{re.escape(one.type)} ", columns[1], re.M) for one in query.answers)


@holds_for(load_queries("sqlserver"))
def test_a_change_that_a_closed_stream_refuses_holds_the_row_of_the_stream(name: str) -> None:
    """A version of the row may be of the time before the stream was closed. Commits share this lock."""
    text = query_of(name).text
    fences = (
        r"hubledger\.event_stream AS e( WITH \(REPEATABLEREAD\))?\s+WHERE e\.stream_id = @stream_id AND \(?e\.closed_at"
    )
    held = {bool(one) for one in re.findall(fences, text) if name != "lock_stream"}
    assert held <= {any(use.verb != "SELECT" for use in uses_of(text))}


def test_a_gap_is_noted_under_the_lock_of_its_checkpoint_which_both_statements_compare() -> None:
    text = every_run()["gap noted"][0]
    written = re.findall(r"(?:INSERT INTO|UPDATE) hubledger\.(\w+)", text)
    assert written == ["event_hub_checkpoint", "sequence_gap", "sequence_gap"]
    assert text.count("WITH (UPDLOCK, HOLDLOCK)") == text.count(">= @next_sequence_number)") == 2


@holds_for(name for name in every_script() if " open" in name)
def test_a_job_is_opened_under_the_lock_of_its_stream_which_an_earlier_statement_takes(name: str) -> None:
    """A statement that waits for a lock counts the jobs of the time before its wait, if it reads versions of rows."""
    locked, opened = without_comments(every_run()[name][0]).partition("INSERT INTO hubledger.task")[::2]
    assert "hubledger.event_stream AS e WITH (UPDLOCK)" in locked.rpartition(";")[0]
    assert "COUNT(*)" not in locked
    assert "COUNT(*)" in opened.partition(";")[0]


@holds_for([*purges(), "audit open"])
def test_a_piece_of_a_purge_and_the_opening_of_an_audit_follow_one_another(name: str) -> None:
    """Each reads that there is no job, or that none is open, and a version of a row may be of the time before."""
    assert str(every_script()[name].steps[0].statement) == "lock_stream"


@holds_for([*retries(), *sql_statements.replays()])
def test_a_retry_or_replay_never_moves_the_checkpoint_and_never_takes_the_id_of_a_batch(name: str) -> None:
    changed = re.findall(r"UPDATE hubledger\.event_hub_checkpoint\s+SET (.*?)\s+WHERE", every_run()[name][0], re.S)
    assert changed[0] == "@commit_number = commit_number = commit_number + 1"
    assert changed[1:] in ([], ["letters = letters + @letters_added"])


@holds_for(sql_statements.aggregations())
def test_a_run_is_planned_and_committed_after_its_cut_and_looks_at_each_update(name: str) -> None:
    text = every_run()[name][0]
    first, *_ = re.findall(r"(?:UPDATE|INSERT INTO|DELETE FROM) hubledger\.(\w+)", text)
    assert first == ("aggregation_run" if name in ("run ended", "run submitted") else "aggregation_cut")
    looked_at = [step for step in every_script()[name].steps if step.expect is not None]
    assert len(re.findall(r"UPDATE hubledger\.", text)) <= len(looked_at) == text.count("IF @@ROWCOUNT <> ")


EXPECTING = {  # a compare and set touches its one row, and a piece all rows that it names
    "add_task", "advance_checkpoint", "advance_part", "advance_redrive", "advance_replay", "blank_letters",
    "blank_retracted", "close_incarnation", "close_run", "count_commit", "count_purged_letters", "count_replay",
    "delete_attempts", "delete_diffs", "delete_failures", "delete_ledger_rows", "delete_parts", "delete_retracted",
    "delete_settled_letters", "delete_staged", "delete_subject", "delete_tasks", "end_order", "fail_run",
    "hold_levels", "hold_task", "know_erasures", "lock_stream", "mark_purged", "mark_slices", "move_cut", "note_order",
    "note_unknown_fields", "number_run", "open_checkpoint", "pause_job", "remove_staging", "renew_intent",
    "settle_letters", "stay_in_order", "stub_subject", "verify_slices",
}  # fmt: skip


@holds_for(every_script())
def test_a_step_expects_what_it_must(name: str) -> None:
    for step in every_script()[name].steps:
        assert (step.expect is not None) == (str(step.statement).split()[0] in EXPECTING), step.statement


PLAIN = r"(int|bigint|bit|uniqueidentifier|datetime2\(6\)|n?varchar\(\w+\))"


def test_a_parameter_has_a_type_that_cuts_no_text_unseen_and_none_that_is_missing_is_compared() -> None:
    """A comparison with NULL finds nothing, and `@x IS NULL OR` seeks in no index."""
    assert not [name for name, text in every_batch().items() if re.search(r"[@:]\w+ IS NULL OR", text)]
    made = " ".join(without_comments(migration.text) for migration in load_migrations("sqlserver"))
    widths = defaultdict(set)
    for name, width in re.findall(r"\b([a-z_]+) +n?varchar\((\w+)\)", made):
        widths[name].add(width)
    for query in load_queries("sqlserver").values():
        for param in query.declared:
            assert param.type == ROWS or re.fullmatch(PLAIN, param.type), query.name
            assert bool(param.columns) == (param.type == ROWS), query.name
            width = re.search(r"varchar\((\d+)\)", param.type)
            assert width is None or all(each != "max" and int(each) < int(width[1]) for each in widths[param.name])
        left = query.text_without(query.optional)
        assert not query.optional & set(re.findall(r"@(\w+)", left)), query.name
        assert "?" not in query.text, "the driver looks for markers and quotes in remarks too"
        assert all(remark.count("'") == 0 for remark in re.findall(r"--.*", query.text)), query.name


OURS = {  # texts that only we write, in the width of their column
    "partition_id", "status", "error_class", "fingerprint", "state_key", "task_id", "kind", "task_key", "part",
    "reason", "replay_id", "subject_hash", "table_name", "fault", "subject", "needle",
    "key_hash", "job", "run_id",
}  # fmt: skip


@holds_for(found_in(r"OPENJSON\(@\w+\) WITH \((.*?'\$\[\d+\]')\)", every_batch()))
def test_a_text_from_json_is_as_wide_as_it_comes_unless_it_is_ours_or_a_key(found: tuple[str, str]) -> None:
    keys = {column for each in ROW_CLASSES for column in row_table(each).key}
    texts = re.findall(r"\[?(\w+)\]? (n?varchar\(\w+\)) '", found[1])
    assert [one for one in texts if one[1] != "nvarchar(max)" and one[0] not in OURS | keys] == []


QUEUE = "WITH (ROWLOCK, READPAST, UPDLOCK, READCOMMITTEDLOCK)"
CLAIMS = {"claim_letters": "claim", "take_freed_letters": "taking"}
FREEING = "free_without_order"


@holds_for(CLAIMS)
def test_a_claim_is_one_statement_whose_predicate_is_on_the_row_that_it_changes(name: str) -> None:
    """It locks rows one by one, leaves out those of others, and reads the row that it locked, not one found before."""
    text = without_comments(load_queries("sqlserver")[name].text)
    assert text in without_comments(every_batch()[CLAIMS[name]])
    assert re.match(
        rf"UPDATE (TOP \(@most\) )?d\s+SET .* FROM hubledger\.\w+ AS d {re.escape(QUEUE)}\s+WHERE d\.", text, re.S
    )
    found_before = re.search(r"d\.sequence_number IN|\b(INNER|LEFT|CROSS) ", text)
    assert (text.count("UPDATE "), found_before) == (1, None)
    assert ("UPDATE TOP (@most) d" in text) == (name == "claim_letters"), "those that one retry has freed are few"


def test_a_freeing_keeps_no_letter_that_it_only_looks_at_and_reads_again_those_that_it_frees() -> None:
    """UPDLOCK keeps each row that is read with it, and most of a stream's held letters stay held."""
    text = " ".join(without_comments(load_queries("sqlserver")[FREEING].text).split())
    looking, _, freeing = text.partition(") AS n INNER JOIN ")
    assert "FROM (SELECT TOP (@most) h.partition_id, h.sequence_number FROM " in looking
    assert re.findall(r"AS \w WITH \([A-Z, ]*\)", looking) == ["AS h WITH (READPAST, READCOMMITTEDLOCK)"]
    by_key = "d.stream_id = @stream_id AND d.partition_id = n.partition_id AND d.sequence_number = n.sequence_number"
    assert freeing.startswith(
        f"hubledger.event_hub_dead_letter AS d {QUEUE} ON {by_key} WHERE d.status = 'held' OPTION"
    )


@holds_for(found_in(r"WITH \(([A-Z, ]*READPAST[A-Z, ]*)\)", every_batch()))
def test_locked_rows_are_passed_over_by_locking_reads_which_azure_sql_asks_for(found: tuple[str, str]) -> None:
    """Microsoft's page on table hints: with READ_COMMITTED_SNAPSHOT, READPAST needs READCOMMITTEDLOCK."""
    assert "READCOMMITTEDLOCK" in found[1].split(", ")
    passing = {name for name, query in load_queries("sqlserver").items() if "READPAST" in query.text}
    assert passing == {*CLAIMS, FREEING}, "any other statement would leave out an effect"


BY_KEY: tuple[RowVerb, ...] = ("set", "replace_states", "retract_states", "select_states", "select_standing")


@holds_for([of_rows(verb, each) for verb in BY_KEY for each in STATES])
def test_a_table_of_states_is_sought_by_the_keys_of_the_json_and_never_scanned(of: OfRows) -> None:
    """A small table would be hashed, and its scan locks rows of other partitions: they would wait for each other."""
    table = f"hubledger.{row_table(of.row_class).name} "
    for statement in rows_query(of).text.removesuffix(";").split(";"):
        assert statement.endswith("\nOPTION (LOOP JOIN, FORCE ORDER)")
        source = statement.partition("\n  FROM ")[2]
        assert source.startswith("OPENJSON("), "the order of the join is that of the text"
        assert f"INNER JOIN {table}" in source or f"FROM {table}AS t WHERE" in source


@holds_for(["walk_up", "walk_down"])
def test_a_walk_reads_no_more_letters_than_it_returns(name: str) -> None:
    """With a filter in its condition, one statement would read the rest of a partition to find the next letter."""
    head, _, condition = load_queries("sqlserver")[name].text.partition("\n WHERE ")
    assert head.startswith("SELECT TOP (@most) d.sequence_number,\n")
    assert set(re.findall(r"d\.(\w+)", condition)) == {"stream_id", "partition_id", "sequence_number"}


CODE = {name: in_code(text) for name, text in every_batch().items()}


@holds_for(found_in(r"\bOUTPUT\s+(.*?)\n", CODE))
def test_every_column_that_is_put_out_says_of_which_side_it_is(found: tuple[str, str]) -> None:
    assert all(column.strip().startswith(("inserted.", "deleted.")) for column in found[1].split(","))


@holds_for(found_in(r"^([^\n]*?)\bTHROW\b", CODE))
def test_throw_follows_a_condition_or_a_semicolon(found: tuple[str, str]) -> None:
    assert re.search(r"(;|^|\bIF\b.*)\s*$", found[1])


IDS = r"^ +((?:partition_id|\w*home_id|sensor_id|carrier|event_hub|consumer_group) [^\n]*)"


@holds_for(found_in(IDS, {one.name: one.text for one in all_migrations("sqlserver")}))
def test_ids_compare_by_code_point_wherever_they_are_stored(found: tuple[str, str]) -> None:
    assert "COLLATE Latin1_General_100_BIN2" in found[1]


GATES = gates()
NONE_HERE = pytest.param("", marks=pytest.mark.skip("no T-SQL parser is installed: make scriptdom, or pip sqlfluff"))
each_gate = pytest.mark.parametrize("gate", list(GATES) or [NONE_HERE])

DAMAGE = {  # the name of a batch, a part of it, and the part broken
    "a parenthesis that is not closed": ("query sum_ranges", "COUNT(*) AS commits", "COUNT(* AS commits"),
    "a misspelt INSERT": ("query record_migration", "INSERT INTO", "INSRT INTO"),
    "a missing comma": ("query record_migration", "@version, @name", "@version @name"),
    "ON CONFLICT, which is SQLite's": ("query record_migration", "@text_hash)", "@text_hash) ON CONFLICT DO NOTHING"),
    "a text that does not end": ("migration 0001 hubledger", "'batch', 'retry'", "'batch, 'retry'"),
}


@cache
def faults(gate: str) -> Faults:
    return GATES[gate]({**every_batch(), USER.name: USER.read_text("utf-8"), **damaged()})


def damaged() -> Mapping[str, str]:
    return {name: every_batch()[of].replace(whole, torn) for name, (of, whole, torn) in DAMAGE.items()}


@each_gate
def test_every_statement_passes_the_gate(gate: str) -> None:
    found = faults(gate)
    assert {name: found[name] for name in (*every_batch(), USER.name) if name in found} == {}


@each_gate
def test_a_broken_statement_does_not_pass_the_gate(gate: str) -> None:
    assert DAMAGE.keys() - faults(gate).keys() == set()
