"""Statements that meet large tables seek, as no plan can be read here: their conditions are those of an index.

No bounded statement locks a whole table: its rows, and the indexes that it changes, give the number of its locks.
Every script locks tables in the order of docs/sqlserver.md, in which every table has its place.

Two drivers may send the script of a piece of a task: the second one meets its fence. That a script is one batch of SQL
Server whatever its values is asked of each script that a test sends to the embedded store (tests/fakes/engines.py).
"""

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import core
from core.aggregation.tick import PORTION
from core.errors import DataRefused, TaskConflict
from core.model.aggregates import Aggregate, aggregate_table
from core.model.commits import ROWS_AT_ONCE
from core.model.letters import TRANSACTION_LIMIT
from core.model.rows import row_table
from core.purge.task import PurgeKind
from core.store.queries import load_queries
from core.store.script import OfRows, RowVerb, Script, of_rows
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlserver.batch import run_batch, step_text
from core.store.sqlserver.statements import rows_query
from core.transforms.loading import load_aggregates
from local.explain import uses_of
from tests.fakes.rooms import all_migrations
from tests.offenders import holds_for
from tests.sql.statements import every_script, without_comments
from tests.sql.values import ROW_CLASSES

ROOT = Path(__file__).parents[2]
_STEP = re.compile(
    r"CREATE TABLE hubledger\.(?P<made>\w+) \((?P<columns>.*?)\n *\)[^;]*;"
    r"|DROP TABLE IF EXISTS hubledger\.(?P<gone>\w+)"
    r"|CREATE (?:UNIQUE )?(?:CLUSTERED )?INDEX (?P<index>\w+)\s+ON hubledger\.(?P<table>\w+) \((?P<keys>[^)]*)\)"
    r"(?:\s+INCLUDE \((?P<included>[^)]*)\))?(?:\s+WHERE (?P<condition>(?:(?!\s+WITH \()[^;])*))?",
    re.S,
)
_KEY = re.compile(r"CONSTRAINT (\w+) (?:PRIMARY KEY|UNIQUE) \(([^)]*)\)")


@dataclass(frozen=True)
class Index:
    name: str
    keys: tuple[str, ...]
    included: tuple[str, ...] = ()
    condition: str = ""

    @property
    def filters(self) -> set[str]:
        return set(re.findall(r"\b(\w+) (?:IN|=|<>|IS)\s", self.condition))


@cache
def indexes() -> Mapping[str, Mapping[str, Index]]:
    found: dict[str, dict[str, Index]] = {}
    for migration in all_migrations("sqlserver"):
        text = without_comments(migration.text).replace("''", "'").replace("')", ";")
        for step in _STEP.finditer(text):
            if step["gone"]:
                found.pop(step["gone"], None)
            elif step["made"]:
                keys = _KEY.findall(step["columns"])
                found.setdefault(step["made"], {name: Index(name, _names(columns)) for name, columns in keys})
            elif step["table"]:
                one = Index(step["index"], _names(step["keys"]), _names(step["included"]), step["condition"] or "")
                found[step["table"]][step["index"]] = one
    return found


def compared(text: str, alias: str) -> tuple[set[str], set[str]]:
    """Return the columns that a statement compares bare, on the left of a comparison: for equality, and in all.

    Without an alias, the columns of a statement about one table.
    """
    column = rf"(?<![\w.@]){alias and alias + '[.]'}\[?(\w+)\]?(?: COLLATE \w+)?"
    equal = set(re.findall(rf"{column} (?:=|IS NULL)(?=\s|;)", text))
    ranged = set(re.findall(rf"{column} (?:IN|<|>|<=|>=|BETWEEN|IS NOT NULL)(?=\s|$)", text))
    return equal, equal | ranged


def sought(text: str, alias: str, index: Index) -> tuple[str, ...]:
    """Return the leading columns of an index by which a statement seeks: all but the last are compared for equality."""
    equal, every = compared(text, alias)
    keys: list[str] = []
    for name in index.keys:
        if name in every:
            keys.append(name)
        if name not in equal:
            break
    return tuple(keys)


def _names(columns: str | None) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", columns or ""))


LETTERS = "event_hub_dead_letter"
OPEN, HELD = f"ix_{LETTERS}_open", f"ix_{LETTERS}_held"
PARTITION = ("stream_id", "partition_id")
OF_KEY = (*PARTITION, "key_hash")
SEEKS = {  # statement, alias: table, index, the columns that are sought
    ("read_open_keys", "d"): (LETTERS, OPEN, OF_KEY),
    ("find_open_letters", "o"): (LETTERS, OPEN, (*OF_KEY, "sequence_number")),
    ("free_letters", "d"): (LETTERS, HELD, ("stream_id", "partition_id", "held_behind")),
    ("free_letters", "o"): (LETTERS, OPEN, (*OF_KEY, "sequence_number")),
    ("order_letters", "o"): (LETTERS, OPEN, OF_KEY),
    ("free_without_order", "h"): (LETTERS, HELD, ("stream_id",)),
    ("free_without_order", "o"): (LETTERS, OPEN, (*OF_KEY, "sequence_number")),
    ("free_without_order", "d"): (LETTERS, f"pk_{LETTERS}", (*PARTITION, "sequence_number")),
    ("claim_letters", "d"): (LETTERS, f"ix_{LETTERS}_due", ("stream_id", "due_at")),
    ("begin_chunk", "d"): (LETTERS, f"pk_{LETTERS}", (*PARTITION, "sequence_number")),
    ("move_letters", "d"): (LETTERS, f"pk_{LETTERS}", (*PARTITION, "sequence_number")),
    ("delete_settled_letters", ""): (LETTERS, f"pk_{LETTERS}", (*PARTITION, "sequence_number")),
    ("delete_attempts", ""): ("dead_letter_attempt", "pk_dead_letter_attempt", (*PARTITION, "sequence_number")),
    ("delete_ledger_rows", ""): ("batch_ledger", "pk_batch_ledger", (*PARTITION, "commit_number")),
    ("delete_retracted", ""): ("retracted_row", "pk_retracted_row", (*PARTITION, "commit_number")),
    ("mark_staged", ""): ("staged_event", "ix_staged_event_staged", ("stream_id", "staged_at")),
    ("delete_staged", ""): ("staged_event", "ix_staged_event_staged", ("stream_id", "staged_at")),
    ("delete_diffs", ""): ("replay_diff", "pk_replay_diff", ("task_id",)),
    ("forget_states", "s"): ("replay_state", "pk_replay_state", ("task_id",)),
    ("delete_parts", ""): ("task_part", "pk_task_part", ("task_id",)),
    ("read_parts", "p"): ("task_part", "pk_task_part", ("task_id",)),
    ("delete_failures", ""): ("aggregation_failure", "ix_aggregation_failure_at", ("failed_at",)),
    ("delete_tasks", ""): ("task", "ix_task_requested", ("stream_id", "requested_at")),
    ("find_changes", "l"): ("batch_ledger", "ix_batch_ledger_change", (*PARTITION, "first_sequence_number")),
    ("read_ledger_ends", "d"): (LETTERS, OPEN, PARTITION),
    ("read_ledger_ends", "s"): (LETTERS, f"ix_{LETTERS}_settled", PARTITION),
    ("read_ledger_ends", "r"): (LETTERS, f"ix_{LETTERS}_replayed", PARTITION),
    ("read_replay_diffs", "d"): ("replay_diff", "pk_replay_diff", ("task_id", "partition_id", "sequence_number")),
}


def texts_of(name: str) -> set[str]:
    """Return the texts of a statement, with and without its filters."""
    query = load_queries("sqlserver")[name]
    return {query.text_without(missing) for missing in (frozenset(), query.optional)}


@holds_for(SEEKS)
def test_a_statement_seeks_in_its_index(use: tuple[str, str]) -> None:
    table, name, columns = SEEKS[use]
    index = indexes()[table][name]
    for text in texts_of(use[0]):
        assert re.search(rf"hubledger\.{table}{use[1] and ' AS ' + use[1]}\b", text)
        assert sought(text, use[1], index) == columns
        condition = index.condition and f"{use[1]}.{index.condition.strip()}"
        assert condition in " ".join(text.split()), f"the condition of {name}"


def test_the_page_names_each_statement_with_its_indexes() -> None:
    wanted: dict[str, set[str]] = {verb: {"ix_TABLE_place"} for verb in BY_PLACE}
    for (name, _), (_, index, _) in SEEKS.items():
        wanted.setdefault(name, set()).add(index)
    page = (ROOT / "docs" / "sqlserver.md").read_text(encoding="utf-8")
    table = page.partition("\n## Statements and their indexes\n")[2].partition("\n## ")[0]
    shown: dict[str, set[str]] = {}
    for indexes_of, statements in re.findall(r"^\| (.+) \| (`.+) \|$", table, re.M):
        for name in re.findall(r"`(\w+)`", statements):
            shown.setdefault(name, set()).update(re.findall(r"`(\w+)`", indexes_of))
    assert {name: shown[name] for name in shown if name not in OF_WINDOWS} == wanted
    assert shown.keys() >= OF_WINDOWS.keys()


def test_an_index_covers_what_decides_which_rows_are_looked_up() -> None:
    change = indexes()["batch_ledger"]["ix_batch_ledger_change"]
    condition = load_queries("sqlserver")["find_changes"].text.partition("\n WHERE ")[2]
    assert set(re.findall(r"\bl\.(\w+)", condition)) - {"commit_number"} <= {*change.keys, *change.included}


BY_PLACE: Mapping[RowVerb, tuple[str, ...]] = {
    "select_placed": (*PARTITION, "sequence_number"),
    "count_states": (*PARTITION, "sequence_number"),
    "count_rows": (*PARTITION, "sequence_number"),
    "next_partition": PARTITION,
    "next_number": (*PARTITION, "sequence_number"),
}
STATES = [each for each in ROW_CLASSES if row_table(each).key]


@holds_for(product(BY_PLACE, STATES))
def test_states_of_a_range_are_sought_by_the_place_of_their_events(use: tuple[RowVerb, type]) -> None:
    verb, row_class = use
    name = row_table(row_class).name
    assert sought(rows_query(of_rows(verb, row_class)).text, "t", indexes()[name][f"ix_{name}_place"]) == BY_PLACE[verb]


LEVELS = [level for one in load_aggregates() for level in one.levels]


@holds_for(LEVELS)
def test_windows_are_sought_by_the_keys_of_the_staged_ones_and_never_scanned(one: Aggregate) -> None:
    """A hash join would read the whole table of windows for each portion."""
    (key,), (staged,) = indexes()[one.name].values(), indexes()[one.staged].values()
    verbs: tuple[RowVerb, ...] = ("replace_windows", "add_windows")
    texts = [rows_query(of_rows(verb, one.of)).text for verb in verbs]
    statements = [each for text in texts for each in text.removesuffix(";").split(";")]
    assert len(statements) == 3
    for text in statements:
        assert text.endswith("\nOPTION (LOOP JOIN, FORCE ORDER)")
        assert text.partition("\n  FROM ")[2].startswith(f"hubledger.{one.staged} AS g\n")
        assert sought(text, "g", staged) == ("staging_id", "slice")
        assert sought(text, "a", key) == key.keys


def test_a_column_in_an_expression_is_not_sought() -> None:
    """The texts that this test was made for: they read all earlier letters for each letter."""
    index = indexes()[LETTERS][OPEN]
    place = "o.stream_id = d.stream_id AND o.partition_id = d.partition_id AND"
    assert sought(f"{place} (o.partition_key + N'.') COLLATE x = d.partition_key + N'.'", "o", index) == OF_KEY[:2]
    assert sought(f"{place} o.key_hash = d.key_hash AND o.sequence_number < 7", "o", index) == index.keys
    assert sought("o.stream_id = 1 AND o.partition_id > '0' AND o.key_hash = 0x00", "o", index) == OF_KEY[:2]
    assert sought("o.partition_id = '0'", "o", index) == ()


def test_no_page_is_sorted_by_an_expression_of_its_rows() -> None:
    """Such a sort reads all rows for each page."""
    sorting = re.compile(r"ORDER BY [^;)]*\b(?:LEN|CAST|CONVERT|ISNULL|COALESCE)\(")
    pages = {name: query.text for name, query in load_queries("sqlserver").items() if "TOP (@most)" in query.text}
    assert [name for name, text in pages.items() if sorting.search(text)] == []


def test_a_list_of_keys_leads_the_join_so_that_each_of_them_is_one_seek() -> None:
    """A list is taken for 50 rows, whatever its length: the server would read a large table whole, and hash it."""
    for name in ("begin_chunk", "read_parts", "settle_letters"):
        text = load_queries("sqlserver")[name].text
        assert text.partition("\n  FROM ")[2].startswith("OPENJSON("), name
        assert text.endswith("\nOPTION (LOOP JOIN, FORCE ORDER);"), name


def test_each_letter_of_a_key_is_found_by_one_seek_and_not_by_a_walk_over_all_earlier_ones() -> None:
    assert load_queries("sqlserver")["free_without_order"].text.endswith("\nOPTION (LOOP JOIN, FORCE ORDER);")
    for name in ("find_open_letters", "free_letters"):
        text = load_queries("sqlserver")[name].text
        assert re.search(r"APPLY \(\s+SELECT TOP \(1\) .* ORDER BY o\.sequence_number DESC\) AS \w", text, re.S)
        assert text.endswith("\nOPTION (LOOP JOIN, FORCE ORDER);")


TABLE_LOCK = 5_000  # locks that one statement holds in one index, at which SQL Server locks the table
KEY_AND_PAGE, OLD_AND_NEW = 2, 2
OF_PIECE: Mapping[str, Any] = {one.name: one.default for one in fields(PurgeKind) if one.name.endswith("_of_piece")}
BOUNDED = re.compile(r"\b(?:UPDATE|DELETE) TOP \(@most\)")
LIMITS = {  # the most rows that a statement changes; `most` of the others comes with their calls
    **dict.fromkeys(("claim_letters", "free_without_order", "forget_states"), ROWS_AT_ONCE),
    **dict.fromkeys(("mark_staged", "delete_staged", "delete_retracted", "delete_diffs"), OF_PIECE["rows_of_piece"]),
    **dict.fromkeys(("delete_parts", "delete_failures", "delete_tasks"), OF_PIECE["rows_of_piece"]),
    **dict.fromkeys(("delete_ledger_rows", "delete_attempts"), OF_PIECE["rows_of_piece"]),
    "delete_settled_letters": OF_PIECE["letters_of_piece"],
    "move_letters": TRANSACTION_LIMIT,
}
OF_WINDOWS: Mapping[RowVerb, int] = {
    "replace_windows": PORTION,
    "add_windows": PORTION,
    "remove_staged": ROWS_AT_ONCE,
    "remove_windows": ROWS_AT_ONCE,
    "remove_subject_windows": ROWS_AT_ONCE,
    "remove_subject_staged": ROWS_AT_ONCE,
}


def locks_of_row(statement: str) -> Mapping[str, int]:
    (use,) = [one for one in uses_of(statement) if one.verb != "SELECT"]
    found = list(indexes()[use.table].values())
    if use.verb != "UPDATE":
        return {one.name: KEY_AND_PAGE for one in found}
    head = re.split(r"\n\s+(?:FROM|WHERE) ", statement.partition("SET ")[2])[0]
    columns = set(
        re.findall(r"(?:^|,)\s*\[?(\w+)\]? = ", re.sub(r"\([^()]*\)|CASE\b.*?\bEND\b", "x", head, flags=re.S))
    )
    assert columns
    return {one.name: _of_update(one, columns, is_table=one is found[0]) for one in found}


def _of_update(index: Index, columns: set[str], *, is_table: bool) -> int:
    if columns & {*index.keys, *index.filters}:
        return OLD_AND_NEW
    return KEY_AND_PAGE if is_table or columns & set(index.included) else 0


def most_locks(text: str) -> int:
    return max(max(locks_of_row(one).values()) for one in text.split(";") if one.strip())


@holds_for([*LIMITS, *OF_WINDOWS])
def test_a_bounded_statement_stays_below_the_number_of_locks_at_which_the_table_is_locked(name: Any) -> None:
    if name in LIMITS:
        assert LIMITS[name] * most_locks(load_queries("sqlserver")[name].text) < TABLE_LOCK
    else:
        levels = [level.of for one in load_aggregates() for level in one.levels]
        texts = [rows_query(of_rows(name, level)).text for level in levels]
        assert OF_WINDOWS[name] * max(map(most_locks, texts)) < TABLE_LOCK


def test_every_bounded_statement_has_its_limit_here_which_a_script_of_the_store_sends() -> None:
    bounded = {name for name, query in load_queries("sqlserver").items() if BOUNDED.search(query.text)}
    assert bounded <= LIMITS.keys()
    texts = {verb: rows_query(of_rows(verb, load_aggregates()[0].of)).text for verb in OF_WINDOWS}
    found = {verb for verb, text in texts.items() if BOUNDED.search(text)}
    assert found == {verb for verb in OF_WINDOWS if verb.startswith("remove_")}
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "core").glob("*/store.py"))
    assert source.count('"most": ROWS_AT_ONCE') + source.count("most=ROWS_AT_ONCE") >= 3


def test_the_indexes_that_a_statement_changes_are_seen() -> None:
    letter = "event_hub_dead_letter"
    claimed = locks_of_row(load_queries("sqlserver")["claim_letters"].text)
    changed = {name.removeprefix(f"ix_{letter}_") for name, locks in claimed.items() if locks}
    assert changed == {f"pk_{letter}", "due", "status", "cause", "held", "open", "settled"}
    assert set(locks_of_row(f"UPDATE d\n   SET error = 'x'\n  FROM hubledger.{letter} AS d").values()) == {0, 2}
    assert max(locks_of_row(f"DELETE FROM hubledger.{letter}\n WHERE stream_id = 1").values()) == KEY_AND_PAGE


PAGE = Path(__file__).parents[2] / "docs" / "sqlserver.md"
LOCKING = re.compile(r"hubledger\.(\w+) AS \w+ WITH \([A-Z, ]*(?:UPDLOCK|XLOCK|HOLDLOCK|TABLOCK|REPEATABLEREAD)")
PLACES = {
    "the tables of rows, by their names": sorted(row_table(one).name for one in ROW_CLASSES),
    "the tables of windows, the finest level first": [
        name
        for one in load_aggregates()
        for level in one.levels
        for name in (aggregate_table(level.of).name, aggregate_table(level.of).staged)
    ],
}
CREATED = re.compile(r"CREATE TABLE hubledger\.(\w+) \((.*?)^\s*\)", re.S | re.M)
OWNERS = {  # of each table, those of its foreign keys: an insert shares the lock of the owner's row
    table: re.findall(r"REFERENCES hubledger\.(\w+)", body)
    for migration in all_migrations("sqlserver")
    for table, body in CREATED.findall(migration.text)
}
APART = {  # inserts that share the lock of their owner afterwards
    "begin_attempt": "the opening of the next incarnation, which takes a stream's row alone, changes no row of it",
    "add_minute": "as begin_attempt",
    "take_ownership": "as begin_attempt",
    "record_failure": "two that record the failure of one submit at once: one is sent again, and finds the other's",
}
AGAIN = {  # statements that lock a row which an earlier step of their transaction has locked
    "note_gap_again": "the checkpoint, or the range where it will be: lock_partition, or the statement itself. The row"
    " of the stream comes after it; only the next incarnation takes that row alone, and it locks no checkpoint",
    "note_gap": "as note_gap_again",
    "count_made_letters": "the checkpoint: count_replay",
    "end_task": "the task: hold_task",
}


def documented() -> list[str]:
    section = PAGE.read_text(encoding="utf-8").partition("\n## Locks\n")[2].partition("\n| transaction |")[0]
    tables: list[str] = []
    for line in re.findall(r"^\d+\. (.*)", section, re.M):
        tables += next((names for words, names in PLACES.items() if line.startswith(words)), [])
        tables += re.findall(r"`(\w+)`", line)
    return tables


def locked(text: str) -> Iterator[str]:
    for statement in without_comments(text).split(";"):
        yield from LOCKING.findall(statement)
        yield from (use.table for use in uses_of(statement) if use.verb != "SELECT")


def statements(script: Script) -> list[Any]:
    return [step.statement for step in script.steps]


def out_of_order(steps: list[tuple[str, str]], order: list[str]) -> list[str]:
    found, reached = [], 0
    for name, text in steps:
        places = [order.index(table) for table in locked(text)]
        late = [order[place] for place in places if place < reached]
        if late and name not in AGAIN:
            found.append(f"{name} locks {', '.join(late)} after {order[reached]}")
        reached = max([reached, *places])
    return found


def owners_after(steps: list[tuple[str, str]]) -> list[str]:
    """Return the steps that lock an owner by its foreign key only: after the new row, so against the order."""
    found, held = [], set[str]()
    for name, text in steps:
        for statement in without_comments(text).split(";"):
            held |= {*LOCKING.findall(statement)}
            uses = [use for use in uses_of(statement) if use.verb != "SELECT"]
            inserted = [use.table for use in uses if use.verb == "INSERT"]
            found += [f"{name}: {one}" for table in inserted for one in OWNERS.get(table, []) if one not in held]
            held |= {use.table for use in uses}
    return found


ORDER = documented()


def test_every_table_has_one_place_in_the_order() -> None:
    assert sorted(ORDER) == sorted({*OWNERS, "schema_migration"})


@holds_for(every_script())
def test_a_script_locks_tables_in_the_order_and_the_owner_of_a_new_row_first(name: str) -> None:
    """Otherwise an insert waits for an owner that another transaction changes, which waits for the new row."""
    steps = [(str(step.statement), step_text(step)) for step in every_script()[name].steps]
    assert out_of_order(steps, ORDER) == []
    assert owners_after([one for one in steps if one[0] not in APART]) == []


@holds_for({name: one for name, one in every_script().items() if "refuse_former_plans" in map(str, statements(one))})
def test_a_script_that_locks_every_stream_holds_none_of_them_before(name: str) -> None:
    """In a different order, two rooms that erase at once would each lock one row, and wait for each other."""
    texts = {str(step.statement): step_text(step) for step in every_script()[name].steps}
    assert next(one for one, text in texts.items() if "event_stream" in locked(text)) == "refuse_former_plans"


def test_a_planted_insert_that_locks_its_owner_by_the_foreign_key_is_seen_and_none_that_cannot_cross() -> None:
    insert = "INSERT INTO hubledger.partition_stop (stream_id) SELECT 1"
    assert owners_after([("stop", f"{insert};")]) == ["stop: event_stream"]
    assert owners_after([("stop", f"{insert} FROM hubledger.event_stream AS e WITH (REPEATABLEREAD);")]) == []
    assert owners_after([("close", "UPDATE hubledger.event_stream SET a = 1;"), ("stop", f"{insert};")]) == []
    alone = APART.keys() - {"record_failure"}
    touched = {use.table for one in alone for use in uses_of(load_queries("sqlserver")[one].text)}
    opening = every_script()["incarnation next"].steps
    changed = {use.table for step in opening for use in uses_of(step_text(step)) if use.verb != "SELECT"}
    assert touched & changed == set()


def test_a_statement_that_locks_a_row_again_is_sent_and_would_break_the_order() -> None:
    first = {"note_gap_again": "lock_partition", "note_gap": "lock_partition", "count_made_letters": "count_replay"}
    sent = [[str(step.statement) for step in one.steps] for one in every_script().values()]
    for name in AGAIN:
        holding = first.get(name, name.replace("end_", "hold_"))
        assert {steps.index(holding) < steps.index(name) for steps in sent if name in steps} == {True}


PLANTED = {
    "a piece that holds its task last": [
        ("carry_states", "INSERT INTO hubledger.replay_state (task_id) SELECT 1;"),
        ("hold", "UPDATE hubledger.task SET a = 1;"),
    ],
    "a read that locks": [
        ("add", "INSERT INTO hubledger.batch_ledger (a) SELECT 1;"),
        ("look", "SELECT 1 FROM hubledger.event_stream AS e WITH (UPDLOCK) WHERE e.a = 1;"),
    ],
}


@holds_for(PLANTED)
def test_a_planted_script_that_breaks_the_order_is_seen(case: str) -> None:
    assert len(out_of_order(PLANTED[case], ORDER)) == 1


OF_TASKS = {
    name: script for name, script in every_script().items() if "hold_task" in [step.statement for step in script.steps]
}


def test_a_parameter_that_steps_give_two_values_is_refused_and_a_conflict_is_seen() -> None:
    step = OF_TASKS["part advanced"].steps[0]
    other = replace(step, values={**step.values, "task_id": "another"})
    with pytest.raises(ValueError, match="task_id"):
        run_batch(Script("a test", (step, other)), rehearse=False)


def test_only_a_dry_run_of_a_replay_is_made_and_rolled_back() -> None:
    """A purge counts its rows: to delete them, roll back and delete them again would log each three times."""
    sources = {path: path.read_text(encoding="utf-8") for path in Path(core.__file__).parent.rglob("*.py")}
    rehearsing = [path.parent.name for path, text in sources.items() if re.search(r"rehearse=True", text)]
    assert rehearsing == ["replay"]


@cache
def migrated() -> sqlite3.Connection:
    opened = sqlite3.connect(":memory:", check_same_thread=False)
    for migration in all_migrations("sqlite"):
        opened.executescript(migration.text)
    return opened


def send_twice(script: Script) -> None:
    """Let two drivers send the script of a piece. The first one did all of it, so none of its steps is held to a
    number of rows."""
    every = [step.statement for step in script.steps]
    rewritten = {OfRows("append", one.row_classes) for one in every if isinstance(one, OfRows) and one.verb == "delete"}
    steps = tuple(step for step in script.steps if step.statement not in rewritten)
    with closing(running_task(script)) as database:
        database.run(replace(script, steps=tuple(replace(step, expect=None) for step in steps)))
        try:
            database.run(replace(script, steps=steps))
        except TaskConflict:
            return
        except DataRefused as fault:
            raise AssertionError(str(fault)) from fault
    raise AssertionError("it was done twice")


def running_task(script: Script) -> SqliteDatabase:
    opened = sqlite3.connect(":memory:", isolation_level=None)
    migrated().backup(opened)
    opened.execute("PRAGMA ignore_check_constraints = ON")  # the values of a shape need not fit together
    given = {name: value for step in script.steps for name, value in step.values.items()}
    place = {"stream_id": given.get("stream_id", 1), "partition_id": given.get("partition_id", "0")}
    fill(opened, "event_stream", stream_id=place["stream_id"])
    fill(opened, "event_hub_checkpoint", **place, sequence_number=2**60)
    fill(opened, "task", task_id=given["task_id"], status="running")
    fill(opened, "task_part", task_id=given["task_id"], part=given["part"], step=given["expected"], report="{}")
    return SqliteDatabase(Path(":memory:"), connect=lambda: opened)


def fill(opened: sqlite3.Connection, table: str, **given: Any) -> None:
    """Add a row that has these values, and 0 or an empty text in the other columns that need a value."""
    needed = [(name, kind) for _, name, kind, not_null, *_ in opened.execute(f"PRAGMA table_info({table})") if not_null]
    row = {**{name: 0 if kind == "INTEGER" else "" for name, kind in needed}, **given}
    marks = ", ".join("?" * len(row))
    opened.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))


@holds_for(OF_TASKS)
def test_the_second_driver_of_a_piece_meets_its_fence_before_a_key_that_the_first_one_wrote(name: str) -> None:
    """Otherwise the database refuses a healthy piece, which is then halved, and its task shows the fault."""
    send_twice(OF_TASKS[name])


def test_a_planted_script_that_writes_before_its_fence_is_seen() -> None:
    fenced = OF_TASKS["job rehearsed"]
    diffs = next(step for step in fenced.steps if step.statement == "add_replay_diffs")
    diffs = replace(diffs, values={**diffs.values, "diffs": '[[7, "{}"]]'})
    send_twice(replace(fenced, steps=(*fenced.steps, diffs)))
    with pytest.raises(AssertionError, match="replay_diff"):
        send_twice(replace(fenced, steps=(diffs, *fenced.steps)))
