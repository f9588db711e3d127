"""Every script locks tables in the order of docs/sqlserver.md, in which every table has its place.

Two drivers may send the script of a piece of a task: the second one meets its fence. That a script is one batch of SQL
Server whatever its values is asked of each script that a test sends to the embedded store (tests/fakes/engines.py).
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import core
from core.errors import DataRefused, TaskConflict
from core.model.aggregates import aggregate_table
from core.model.rows import row_table
from core.store.queries import load_queries
from core.store.script import OfRows, Script
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlserver.batch import run_batch, step_text
from core.transforms.loading import load_aggregates
from local.explain import uses_of
from tests.fakes.rooms import all_migrations
from tests.offenders import holds_for
from tests.sql.statements import every_script, without_comments
from tests.sql.values import ROW_CLASSES

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
