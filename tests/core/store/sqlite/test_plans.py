"""Each statement finds its rows by an index, as SQLite's plans show.

The plans on an empty store are those on a store with millions of rows, because the store keeps no statistics.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from core.store.queries import load_queries
from core.store.script import of_rows
from core.store.sqlite.schema import open_file
from core.store.sqlite.statements import rows_text
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.fakes.rooms import migrate_examples

LETTERS = "event_hub_dead_letter"
GROWING = {LETTERS, "dead_letter_attempt", "batch_ledger", "retracted_row", "staged_event", "replay_diff"}
STATUS, CAUSE, OPEN = (f"ix_{LETTERS}_{name}" for name in ("status", "cause", "open"))
# The statements that read such a table of a whole partition or stream: by an index that has few of its rows, in one
# step from its end, or because an audit reads all.
WHOLE = {
    *("find_held_faults", "find_attempt_faults", "find_retry_faults", "find_replay_faults"),
    *("find_first_replay", "count_open_letters", "count_replay_letters", "count_held", "read_ledger_ends"),
    *("read_last_batches", "read_replayable", "next_due_at", "count_old_ledger_rows"),
    *("group_letters", "group_letters_of_kind", "cause_matching", "resolve_letters", "delete_retracted"),
}
BY_INDEX = {
    "list_letters": f"INDEX ix_{LETTERS}_failed (stream_id=? AND failed_at>? AND failed_at<?)",
    "list_letters_of_status": f"INDEX {STATUS} (stream_id=? AND status=? AND failed_at>? AND failed_at<?)",
    "list_letters_of_cause": f"INDEX {CAUSE} (stream_id=? AND cause=? AND failed_at>? AND failed_at<?)",
    "find_oldest_letter": f"COVERING INDEX {STATUS} (stream_id=? AND status=?)",
    "walk_up": "(stream_id=? AND partition_id=? AND sequence_number>? AND sequence_number<?)",
    "walk_down": "(stream_id=? AND partition_id=? AND sequence_number>? AND sequence_number<?)",
    "count_open": f"COVERING INDEX {STATUS} (stream_id=? AND status=?)",
    "count_open_letters": f"COVERING INDEX {OPEN} (stream_id=? AND partition_id=?)",
    "count_held": f"INDEX ix_{LETTERS}_held (stream_id=? AND partition_id=?)",
    "group_letters": f"COVERING INDEX {CAUSE} (stream_id=?)",
    "find_open_letters": f"INDEX {OPEN} (stream_id=? AND partition_id=? AND partition_key=? AND sequence_number<?)",
    "claim_letters": f"INDEX ix_{LETTERS}_due (stream_id=? AND due_at<?)",
    "next_due_at": f"INDEX ix_{LETTERS}_due (stream_id=? AND due_at>?)",
    "delete_settled_letters": "(stream_id=? AND partition_id=? AND sequence_number=?)",
    "find_range": "INDEX uq_batch_ledger_first (stream_id=? AND partition_id=? AND first_sequence_number<?)",
    "find_changes": "INDEX ix_batch_ledger_change (stream_id=? AND partition_id=? AND first_sequence_number<?)",
    "delete_ledger_rows": "PRIMARY KEY (stream_id=? AND partition_id=? AND commit_number>? AND commit_number<?)",
    "delete_staged": "COVERING INDEX ix_staged_event_staged (stream_id=? AND staged_at<?)",
    "delete_diffs": "PRIMARY KEY (task_id=?",
    "delete_failures": "INDEX ix_aggregation_failure_at (failed_at<?)",
    "delete_tasks": "INDEX ix_task_requested (stream_id=? AND requested_at<?)",
    "find_last_task": "INDEX ix_task_requested (stream_id=?)",
    "read_minutes": "PRIMARY KEY (minute_at>?)",
}
PAGES = tuple(BY_INDEX)[:6]


@pytest.fixture(scope="module")
def planner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("plans") / "store.db"
    migrate_examples(path)
    with closing(open_file(path, 5.0)) as connection:
        connection.create_function("store_time", 0, str)
        yield connection


def plan_of(planner: sqlite3.Connection, text: str) -> list[str]:
    values = dict.fromkeys((name for query in load_queries("sqlite").values() for name in query.params), "x")
    return [row[3] for row in planner.execute(f"EXPLAIN QUERY PLAN {text}", values)]


def texts_of(name: str) -> set[str]:
    """Return the texts of a statement, with and without its filters."""
    query = load_queries("sqlite")[name]
    return {query.text_without(missing) for missing in (frozenset(), query.optional)}


def reads_whole(text: str, step: str) -> bool:
    """Say whether a step of a plan reads a growing table of a whole partition or stream, or more."""
    found = re.fullmatch(r"SCAN (\w+)\b.*|SEARCH (\w+) USING .*\(stream_id=\?(?: AND partition_id=\?)?\)", step)
    if found is None:
        return False
    alias = found[1] or found[2]
    return bool(GROWING & {alias, *re.findall(rf"\b(\w+) (?:AS )?{alias}\b", text)})


def test_no_statement_reads_a_growing_table_whole_but_those_that_must(planner: sqlite3.Connection) -> None:
    found = {
        name
        for name in load_queries("sqlite")
        for text in texts_of(name)
        if any(reads_whole(text, step) for step in plan_of(planner, text))
    }
    assert found == WHOLE
    scanning = load_queries("sqlite")["list_letters_of_status"].text.replace(f"INDEXED BY {STATUS}", "NOT INDEXED")
    assert any(reads_whole(scanning, step) for step in plan_of(planner, scanning))


@pytest.mark.parametrize("name", BY_INDEX)
def test_a_statement_goes_by_its_index_and_a_page_is_not_sorted(planner: sqlite3.Connection, name: str) -> None:
    for text in texts_of(name):
        plan = plan_of(planner, text)
        assert [step for step in plan if BY_INDEX[name] in step], plan
        assert name not in PAGES or not [step for step in plan if "TEMP B-TREE" in step]


@pytest.mark.parametrize("row_class", [SensorReading, HomeAlert, Home])
def test_rows_are_found_by_their_place(planner: sqlite3.Connection, row_class: type) -> None:
    placed = plan_of(planner, rows_text(of_rows("select_placed", row_class)))
    counted = plan_of(planner, rows_text(of_rows("count_rows", row_class)))
    assert "(stream_id=? AND partition_id=? AND sequence_number=?)" in placed[0]
    (searched,) = [step for step in counted if step.startswith("SEARCH t ")]
    assert "(stream_id=? AND partition_id=? AND sequence_number>? AND sequence_number<?)" in searched
