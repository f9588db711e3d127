"""Each statement of the API finds its rows by an index, as SQLite's plans show.

The plans on an empty store are those on a store with millions of rows, because the store keeps no statistics.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from core.store.queries import SQL, load_queries
from core.store.script import of_rows
from core.store.sqlite.statements import rows_text
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.fakes.rooms import migrate_examples

LETTERS = "event_hub_dead_letter"
FAILED, STATUS, CAUSE = (f"ix_{LETTERS}_{name}" for name in ("failed", "status", "cause"))
OPEN, HELD = (f"ix_{LETTERS}_{name}" for name in ("open", "held"))
BY_COMMIT = "PRIMARY KEY (stream_id=? AND partition_id=? AND commit_number>?"
BY_INDEX = {
    "read_books": "PRIMARY KEY (stream_id=?)",
    "count_open": f"COVERING INDEX {STATUS} (stream_id=? AND status=?)",
    "count_letters": f"COVERING INDEX {STATUS} (stream_id=? AND status=?)",
    "count_open_letters": f"COVERING INDEX {OPEN} (stream_id=? AND partition_id=?)",
    "read_open_gaps": "PRIMARY KEY (stream_id=?)",
    "find_oldest_letter": f"COVERING INDEX {STATUS} (stream_id=? AND status=?)",
    "list_letters": f"INDEX {FAILED} (stream_id=? AND failed_at>? AND failed_at<?)",
    "list_letters_of_status": f"INDEX {STATUS} (stream_id=? AND status=? AND failed_at>? AND failed_at<?)",
    "list_letters_of_cause": f"INDEX {CAUSE} (stream_id=? AND cause=? AND failed_at>? AND failed_at<?)",
    "group_values": f"INDEX {CAUSE} (stream_id=? AND cause=? AND failed_at>? AND failed_at<?)",
    "group_letters": f"COVERING INDEX {CAUSE} (stream_id=?)",
    "walk_up": "(stream_id=? AND partition_id=? AND sequence_number>? AND sequence_number<?)",
    "walk_down": "(stream_id=? AND partition_id=? AND sequence_number>? AND sequence_number<?)",
    "span_matching": f"INDEX {STATUS} (stream_id=? AND status=? AND failed_at>? AND failed_at<?)",
    "cause_matching": f"INDEX {CAUSE} (stream_id=?)",
    "count_redriven": "INDEX ix_dead_letter_attempt_requeued (touched_by=?)",
    "read_letter": "(stream_id=? AND partition_id=? AND sequence_number=?)",
    "read_letter_body": "(stream_id=? AND partition_id=? AND sequence_number=?)",
    "read_attempts": "PRIMARY KEY (stream_id=? AND partition_id=? AND sequence_number=?)",
    "find_range": "INDEX uq_batch_ledger_first (stream_id=? AND partition_id=? AND first_sequence_number<?)",
    "find_changes": "INDEX ix_batch_ledger_change (stream_id=? AND partition_id=? AND first_sequence_number<?)",
    "count_erased": "INDEX ix_retracted_row_number (stream_id=? AND partition_id=? AND sequence_number=?",
    "find_gap": "PRIMARY KEY (stream_id=? AND partition_id=? AND first_sequence_number<?)",
    "count_replay_letters": f"INDEX ix_{LETTERS}_replayed (stream_id=? AND partition_id=?)",
    "find_letter_faults": f"COVERING INDEX sqlite_autoindex_{LETTERS}_1 (stream_id=? AND partition_id=? AND sequence_n",
    "read_ledger_ends": f"COVERING INDEX sqlite_autoindex_{LETTERS}_1 (stream_id=? AND partition_id=?)",
    "find_piece_end": f"{BY_COMMIT} AND commit_number<?)",
    "sum_ranges": f"{BY_COMMIT} AND commit_number<?)",
    "find_range_faults": f"{BY_COMMIT} AND commit_number<?)",
    "find_missing_commits": f"{BY_COMMIT} AND commit_number<?)",
    "find_total_faults": f"{BY_COMMIT} AND commit_number<?)",
    "read_totals": "PRIMARY KEY (stream_id=? AND partition_id=? AND commit_number=?)",
    "read_reach": f"{BY_COMMIT} AND commit_number<?)",
    "read_oldest_commit": "PRIMARY KEY (stream_id=? AND partition_id=? AND commit_number=?)",
    "read_failures": "PRIMARY KEY (run_id=?)",
    "count_failures": "COVERING INDEX ix_aggregation_failure_at (failed_at>?)",
    "count_quality_faults": "INDEX ix_aggregation_run_closed (closed_at>?)",
    "find_run": "PRIMARY KEY (run_id=?)",
    "read_newest_readings": "PRIMARY KEY (stream_id=? AND partition_id=?)",
    "read_purged": "PRIMARY KEY (stream_id=? AND partition_id=?)",
    "read_ledger_rows": f"{BY_COMMIT})",
    "count_old_ledger_rows": f"{BY_COMMIT} AND commit_number<?)",
    "mark_purged": "PRIMARY KEY (stream_id=? AND partition_id=?)",
    "count_purged_letters": "PRIMARY KEY (stream_id=? AND partition_id=?)",
    "delete_ledger_rows": f"{BY_COMMIT} AND commit_number<?)",
    "delete_retracted": "PRIMARY KEY (stream_id=? AND partition_id=? AND commit_number<?)",
    "read_settled_letters": f"INDEX ix_{LETTERS}_settled (stream_id=? AND partition_id=? AND sequence_number<?)",
    "count_settled_letters": f"INDEX ix_{LETTERS}_settled (stream_id=? AND partition_id=? AND sequence_number<?)",
    "delete_settled_letters": "(stream_id=? AND partition_id=? AND sequence_number=?)",
    "delete_attempts": "PRIMARY KEY (stream_id=? AND partition_id=? AND sequence_number=?)",
    "read_purge_reach": "PRIMARY KEY (stream_id=? AND partition_id=?)",
    "count_old_retracted": "PRIMARY KEY (stream_id=? AND partition_id=? AND commit_number<?)",
    "count_staged": "INDEX ix_staged_event_staged (stream_id=? AND staged_at<?)",
    "mark_staged": "INDEX ix_staged_event_staged (stream_id=? AND staged_at=?)",
    "delete_staged": "COVERING INDEX ix_staged_event_staged (stream_id=? AND staged_at<?)",
    "count_old_staged": "INDEX ix_staged_event_staged (stream_id=? AND staged_at<?)",
    "delete_diffs": "PRIMARY KEY (task_id=?",
    "count_old_diffs": "INDEX ix_task_requested (stream_id=? AND requested_at<?)",
    "count_old_parts": "INDEX ix_task_requested (stream_id=? AND requested_at<?)",
    "count_old_tasks": "INDEX ix_task_requested (stream_id=? AND requested_at<?)",
    "find_old_task": "INDEX ix_task_requested (stream_id=? AND requested_at<?)",
    "delete_parts": "PRIMARY KEY (task_id=?",
    "delete_tasks": "INDEX ix_task_requested (stream_id=? AND requested_at<?)",
    "add_task": "INDEX uq_task_open (stream_id=? AND kind=? AND task_key=?)",
    "find_standing": "INDEX uq_task_open (stream_id=?)",
    "count_open_tasks": "INDEX uq_task_open (stream_id=? AND kind=?)",
    "find_task": "PRIMARY KEY (task_id=?)",
    "read_tasks": "INDEX ix_task_requested (stream_id=? AND requested_at<?",
    "read_parts": "PRIMARY KEY (task_id=?)",
    "read_open_tasks": "INDEX ix_task_requested (stream_id=?)",
    "count_tasks_held_up": "INDEX uq_task_open (stream_id=?)",
    "find_last_task": "INDEX ix_task_requested (stream_id=?)",
    "move_task": "PRIMARY KEY (task_id=?)",
    "note_task_fault": "PRIMARY KEY (task_id=?)",
    "hold_task": "PRIMARY KEY (task_id=?)",
    "advance_part": "PRIMARY KEY (task_id=? AND part=?)",
    "advance_replay": "PRIMARY KEY (task_id=? AND part=?)",
    "advance_redrive": "PRIMARY KEY (task_id=? AND part=?)",
    "end_task": "PRIMARY KEY (task_id=?)",
    "cancel_tasks_of_stream": "INDEX uq_task_open (stream_id=?)",
    "count_old_failures": "INDEX ix_aggregation_failure_at (failed_at<?)",
    "sum_absent_gaps": "PRIMARY KEY (stream_id=? AND partition_id=? AND first_sequence_number<?)",
    "delete_failures": "INDEX ix_aggregation_failure_at (failed_at<?)",
    "find_old_dry_run": "INDEX ix_task_requested (stream_id=? AND requested_at<?)",
    "find_next_erasable": "(stream_id=? AND partition_id=? AND sequence_number>?)",
    "read_letters_to_search": "(stream_id=? AND partition_id=? AND sequence_number>? AND sequence_number<?)",
    "read_staged_to_search": "(stream_id=? AND partition_id=? AND sequence_number>? AND sequence_number<?)",
    "read_retracted_to_search": "INDEX ix_retracted_row_number (stream_id=? AND partition_id=? AND sequence_number>?",
    "read_diffs_to_search": "PRIMARY KEY (task_id=? AND partition_id=? AND sequence_number>? AND sequence_number<?)",
    "blank_retracted": "INDEX ix_retracted_row_number (stream_id=? AND partition_id=? AND sequence_number>? AND",
    "blank_letters": "(stream_id=? AND partition_id=? AND sequence_number=?)",
    "blank_attempts": "PRIMARY KEY (stream_id=? AND partition_id=? AND sequence_number=?)",
    "delete_staged_of": "(stream_id=? AND partition_id=? AND sequence_number=?)",
    "delete_diffs_of": "PRIMARY KEY (task_id=? AND partition_id=? AND sequence_number=?)",
    "read_erased_subjects": "PRIMARY KEY (stream_id=? AND partition_id=?)",
    "read_tasks_to_search": "INDEX ix_task_requested (stream_id=?)",
    "reword_tasks": "PRIMARY KEY (task_id=?)",
    "find_stream": "(event_hub=? AND consumer_group=?)",
    "read_incarnation": "(event_hub=? AND consumer_group=?)",
    "read_last_batches": "INDEX uq_batch_ledger_first (stream_id=? AND partition_id=?)",
    "count_absent": "INDEX uq_batch_ledger_first (stream_id=? AND partition_id=? AND first_sequence_number<?)",
    "find_first_replay": "INDEX ix_batch_ledger_change (stream_id=? AND partition_id=?)",
    "read_replayable": "INDEX uq_batch_ledger_first (stream_id=? AND partition_id=?)",
    "remove_minutes": "PRIMARY KEY (minute_at<?)",
    "add_minute": "PRIMARY KEY (minute_at=? AND stream_id=?)",
    "read_minutes": "PRIMARY KEY (minute_at>?)",
    "read_stream_stops": "PRIMARY KEY (stream_id=?)",
    "find_next_partitions": "PRIMARY KEY (stream_id=? AND partition_id>?)",
    "find_absent_faults": "PRIMARY KEY (stream_id=? AND partition_id=? AND first_sequence_number>? AND first_seque",
    "find_stray_gaps": "INDEX uq_batch_ledger_first (stream_id=? AND partition_id=? AND first_sequence_number<?)",
    "find_held_faults": f"INDEX {HELD} (stream_id=? AND partition_id=?)",
    "find_attempt_faults": "PRIMARY KEY (stream_id=? AND partition_id=? AND sequence_number=? AND attempt=?)",
    "find_retry_faults": "INDEX ix_batch_ledger_change (stream_id=? AND partition_id=?)",
    "find_replay_faults": "INDEX ix_batch_ledger_change (stream_id=? AND partition_id=?)",
    "read_open_keys": f"INDEX {OPEN} (stream_id=? AND partition_id=? AND partition_key>?)",
    "find_open_letters": f"INDEX {OPEN} (stream_id=? AND partition_id=? AND partition_key=? AND sequence_number<?)",
    "count_held": f"INDEX {HELD} (stream_id=? AND partition_id=?)",
    "claim_letters": f"INDEX ix_{LETTERS}_due (stream_id=? AND due_at<?)",
    "read_claimed": f"INDEX ix_{LETTERS}_due (stream_id=? AND due_at=?)",
    "next_due_at": f"INDEX ix_{LETTERS}_due (stream_id=? AND due_at>?)",
    "find_crashed": "(stream_id=? AND partition_id=? AND sequence_number>? AND sequence_number<?)",
    "find_discarded": "(stream_id=? AND partition_id=? AND sequence_number>? AND sequence_number<?)",
    "free_letters": f"INDEX {HELD} (stream_id=? AND partition_id=? AND held_behind=?)",
    "order_letters": f"INDEX {OPEN} (stream_id=? AND partition_id=? AND partition_key=?)",
    "free_without_order": f"INDEX {OPEN} (stream_id=? AND partition_id=? AND partition_key=? AND sequence_number<?)",
    "take_freed_letters": f"INDEX ix_{LETTERS}_due (stream_id=? AND due_at=?)",
    "read_taken": f"INDEX ix_{LETTERS}_due (stream_id=? AND due_at=?)",
    "find_moved": "(stream_id=? AND partition_id=? AND sequence_number=?)",
    "record_freed": f"INDEX ix_{LETTERS}_due (stream_id=? AND due_at=?)",
}
PAGES = (
    "list_letters",
    "list_letters_of_status",
    "list_letters_of_cause",
    "find_oldest_letter",
    "walk_up",
    "walk_down",
)
LARGE = ("l", "d", "a", "t")  # the names under which statements read ledger, letters, attempts and rows


@pytest.fixture(scope="module")
def planner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = tmp_path_factory.mktemp("plans") / "store.db"
    migrate_examples(Path(path))
    with closing(sqlite3.connect(path)) as connection:
        yield connection


def plan_of(planner: sqlite3.Connection, text: str) -> list[str]:
    values = dict.fromkeys((name for query in load_queries("sqlite").values() for name in query.params), "x")
    return [row[3] for row in planner.execute(f"EXPLAIN QUERY PLAN {text}", values)]


def with_and_without_filters(name: str) -> set[str]:
    query = load_queries("sqlite")[name]
    return {query.text_without(missing) for missing in (frozenset(), query.optional)}


@pytest.mark.parametrize("name", BY_INDEX)
def test_a_statement_of_operators_goes_by_its_index_and_scans_no_large_table(
    planner: sqlite3.Connection, name: str
) -> None:
    for text in with_and_without_filters(name):
        plan = plan_of(planner, text)
        assert [step for step in plan if BY_INDEX[name] in step], plan
        assert [step for step in plan if step in {f"SCAN {table}" for table in LARGE}] == []


def test_every_statement_of_purges_and_tasks_has_its_index_here() -> None:
    files = ("purge", "task", "erasure")
    texts = [(SQL / "queries" / f"{name}.sql").read_text(encoding="utf-8") for name in files]
    named = {name for text in texts for name in re.findall(r"^-- name: (\w+)$", text, re.M)}
    assert named - set(BY_INDEX) == {"read_all_cuts", "add_parts", "add_erased_subjects"}  # one row for each aggregate


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_read_in_its_order_and_not_sorted(planner: sqlite3.Connection, name: str) -> None:
    plans = [plan_of(planner, text) for text in with_and_without_filters(name)]
    assert [step for plan in plans for step in plan if "TEMP B-TREE" in step] == []


@pytest.mark.parametrize("row_class", [SensorReading, HomeAlert, Home])
def test_rows_are_found_by_their_place(planner: sqlite3.Connection, row_class: type) -> None:
    placed = plan_of(planner, rows_text(of_rows("select_placed", row_class)))
    counted = plan_of(planner, rows_text(of_rows("count_rows", row_class)))
    assert "(stream_id=? AND partition_id=? AND sequence_number=?)" in placed[0]
    (searched,) = [step for step in counted if step.startswith("SEARCH t ")]
    assert "(stream_id=? AND partition_id=? AND sequence_number>? AND sequence_number<?)" in searched


def test_a_scan_would_be_seen(planner: sqlite3.Connection) -> None:
    text = load_queries("sqlite")["list_letters_of_status"].text.replace(f" INDEXED BY {STATUS}", " NOT INDEXED")
    assert any(step.startswith("SCAN d") for step in plan_of(planner, text))
