"""Each statement finds its rows by an index, as SQLite's plans show. tests/sql has the indexes of the server.

The plans on an empty store are those on a store with millions of rows, because the store keeps no statistics.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from core.store.queries import load_queries
from core.store.script import RowVerb, of_rows
from core.store.sqlite.schema import open_file
from core.store.sqlite.statements import rows_text
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.fakes.rooms import migrate_examples

LETTERS = "event_hub_dead_letter"
GROWING = {LETTERS, "dead_letter_attempt", "batch_ledger", "retracted_row", "staged_event", "replay_diff"}
STATUS = f"ix_{LETTERS}_status"
# The statements that read such a table of a whole partition or stream: by an index that has few of its rows, in one
# step from its end, or because an audit reads all.
WHOLE = {
    *("find_held_faults", "find_attempt_faults", "find_retry_faults", "find_replay_faults"),
    *("find_first_replay", "count_open_letters", "count_replay_letters", "count_held", "read_ledger_ends"),
    *("read_last_batches", "read_replayable", "next_due_at", "count_old_ledger_rows"),
    *("group_letters", "group_letters_of_kind", "cause_matching", "resolve_letters", "delete_retracted"),
}
OF_NEWER = {"next_due_at", "delete_retracted"}  # newer SQLite than 3.40 finds their rows without a whole read
PAGES = (
    "find_texts_to_search",
    "list_letters",
    "list_letters_of_status",
    "list_letters_of_cause",
    "find_oldest_letter",
    "walk_up",
    "walk_down",
)


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
    assert found | OF_NEWER == WHOLE
    scanning = load_queries("sqlite")["list_letters_of_status"].text.replace(f"INDEXED BY {STATUS}", "NOT INDEXED")
    assert any(reads_whole(scanning, step) for step in plan_of(planner, scanning))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_read_in_its_order_and_not_sorted(planner: sqlite3.Connection, name: str) -> None:
    plans = [plan_of(planner, text) for text in texts_of(name)]
    assert [step for plan in plans for step in plan if "TEMP B-TREE" in step] == []


@pytest.mark.parametrize("row_class", [SensorReading, HomeAlert, Home])
@pytest.mark.parametrize("verb", ["select_placed", "count_rows"])
def test_rows_are_found_by_their_place(planner: sqlite3.Connection, row_class: type, verb: RowVerb) -> None:
    plan = plan_of(planner, rows_text(of_rows(verb, row_class)))
    assert [step for step in plan if "(stream_id=? AND partition_id=? AND sequence_number" in step], plan
