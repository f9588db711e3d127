"""Two drivers may send the script of a piece of a task: the second one meets its fence.

That a script is one batch of SQL Server whatever its values, so that a parameter has one value in all its steps, is
asked of each script that a test sends to the embedded store (tests/fakes/engines.py).
"""

import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import core
from core.errors import DataRefused, TaskConflict
from core.store.script import OfRows, Script
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlserver.batch import run_batch
from tests.fakes.rooms import all_migrations
from tests.offenders import holds_for
from tests.sql.statements import every_script

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
    """Return a database in memory in which the task of a script runs, and its part stands where the script expects."""
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
