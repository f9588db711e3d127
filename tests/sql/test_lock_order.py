"""Every script locks tables in the order of docs/sqlserver.md, in which every table has its place."""

import re
from collections.abc import Iterator
from pathlib import Path

from core.model.aggregates import aggregate_table
from core.model.rows import row_table
from core.store.queries import load_queries
from core.store.sqlserver.batch import step_text
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
    """Return the tables in the order of the page."""
    section = PAGE.read_text(encoding="utf-8").partition("\n## Locks\n")[2].partition("\n| transaction |")[0]
    tables: list[str] = []
    for line in re.findall(r"^\d+\. (.*)", section, re.M):
        tables += next((names for words, names in PLACES.items() if line.startswith(words)), [])
        tables += re.findall(r"`(\w+)`", line)
    return tables


def locked(text: str) -> Iterator[str]:
    """Give the tables that a text locks, in order: a statement reads before it writes."""
    for statement in without_comments(text).split(";"):
        yield from LOCKING.findall(statement)
        yield from (use.table for use in uses_of(statement) if use.verb != "SELECT")


def out_of_order(steps: list[tuple[str, str]], order: list[str]) -> list[str]:
    """Return the steps, of a name and a text, that lock a table after a later one."""
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
    "a delete of a joined table": [
        ("note", "UPDATE hubledger.task SET a = 1;"),
        ("take", "DELETE TOP (@most) FROM hubledger.staged_event WHERE a = 1;"),
    ],
}


@holds_for(PLANTED)
def test_a_planted_script_that_breaks_the_order_is_seen(case: str) -> None:
    assert len(out_of_order(PLANTED[case], ORDER)) == 1
