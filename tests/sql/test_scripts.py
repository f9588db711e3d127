"""Every script of every verb: both engines can send it, whatever its values, and two drivers may send it."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.errors import DataRefused, TaskConflict
from core.store.script import OfRows, Script, Step
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlserver.batch import run_batch
from tests.offenders import holds_for
from tests.sql.verbs import bind, connection, every_sent, makers, sent_by_verbs, unsent

VERBS = sent_by_verbs()
OF_TASKS = {
    name: one.script
    for name, one in every_sent().items()
    if "hold_task" in [step.statement for step in one.script.steps]
}


def test_every_script_that_the_store_makes_is_sent_here() -> None:
    assert unsent() == []


def test_a_function_that_makes_a_script_is_found_wherever_it_stands() -> None:
    source = "class Verbs:\n  def run(self):\n    Script('a', ())\n\ndef made():\n  return replace(Script('a', ()))\n"
    assert set(makers(source)) == {"Verbs.run", "made"}


@holds_for(VERBS)
def test_a_script_whose_values_all_differ_is_one_batch_of_sql_server(name: str) -> None:
    """One parameter that two steps give different values is a fault of the script."""
    try:
        run_batch(VERBS[name].script, VERBS[name].is_rehearsed)
    except (ValueError, KeyError, DataRefused) as fault:
        raise AssertionError(repr(fault)) from fault


@holds_for(every_sent())
def test_a_script_gives_sqlite_every_value_that_its_steps_name(name: str) -> None:
    bind(every_sent()[name].script)


def test_only_a_dry_run_of_a_replay_is_made_and_rolled_back() -> None:
    """A purge counts its rows: to delete them, roll back and delete them again would log each three times."""
    rehearsed = {name.partition(" ")[0] for name, sent in VERBS.items() if sent.is_rehearsed}
    assert rehearsed == {"Replays.rehearse_replay"}


def send_twice(script: Script) -> None:
    """Let two drivers send the script of a piece. The first one did all of it, so none of its steps is held to a
    number of rows."""
    script = replace(script, steps=tuple(step for step in script.steps if not is_rewrite(step, script)))
    with closing(running_task(script)) as database:
        database.run(replace(script, steps=tuple(replace(step, expect=None) for step in script.steps)))
        try:
            database.run(script)
        except TaskConflict:
            return
        except DataRefused as fault:
            raise AssertionError(str(fault)) from fault
    raise AssertionError("it was done twice")


def is_rewrite(step: Step, script: Script) -> bool:
    """Return True for rows that replace deleted ones: the values of a verb need not name the same events."""
    of, every = step.statement, [one.statement for one in script.steps]
    return isinstance(of, OfRows) and of.verb == "append" and OfRows("delete", of.row_classes) in every


def running_task(script: Script) -> SqliteDatabase:
    """Return a database in memory in which the task of a script runs, and its part stands where the script expects."""
    opened = sqlite3.connect(":memory:", isolation_level=None)
    connection().backup(opened)
    opened.execute("PRAGMA ignore_check_constraints = ON")  # the values of a verb need not fit together
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
