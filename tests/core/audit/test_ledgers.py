"""Promises of every store about the books: every partition's sums, and whether they balance."""

import pytest

from core.audit.faults import PartitionLedger
from tests.fakes.builders import commit, event, letter, partition, reading, settled
from tests.fakes.engines import SqliteEngine

PLANTED = {
    "a range that vanished": "DELETE FROM batch_ledger WHERE first_sequence_number = 5",
    "the last range vanished": "DELETE FROM batch_ledger WHERE first_sequence_number = 10",
    "a letter that vanished": "DELETE FROM event_hub_dead_letter WHERE sequence_number = 6",
    "a checkpoint that moved on alone": "UPDATE event_hub_checkpoint SET sequence_number = 99",
    "a checkpoint that went back": "UPDATE event_hub_checkpoint SET sequence_number = 9",
}


def books_after(sqlite: SqliteEngine, statement: str) -> PartitionLedger:
    """Return the books of a partition in which this was changed by hand."""
    store = sqlite.open()
    for first in (0, 5, 10):
        outcome = settled({first: [reading()]}, letters=[letter(event(first + 1))], filtered=3)
        store.commit_batch(commit(store.read_partition(partition()), first, first + 4, outcome))
    assert all(one.balanced for one in store.read_ledgers())
    sqlite.sql(statement)
    (books,) = store.read_ledgers()
    store.close()
    return books


@pytest.mark.parametrize("case", PLANTED)
def test_the_books_name_a_forbidden_change(sqlite: SqliteEngine, case: str) -> None:
    assert not books_after(sqlite, PLANTED[case]).balanced


def test_ranges_that_overlap_are_a_hole(sqlite: SqliteEngine) -> None:
    statement = "UPDATE batch_ledger SET last_sequence_number = 5, filtered = 4 WHERE first_sequence_number = 0"
    books = books_after(sqlite, statement)
    assert (books.holes, books.balanced) == (1, False)


def test_a_retry_of_a_letter_does_not_count_as_a_range(sqlite: SqliteEngine) -> None:
    statement = (
        "INSERT INTO batch_ledger SELECT stream_id, partition_id, 4, 'retry', 1, 1, 1, 0, 0, 0, 0, 1, 1,"
        " transform_version, invocation_id, committed_at, 3, 3, 9, 3, 0, 0 FROM batch_ledger"
        " WHERE commit_number = 1"
    )
    assert books_after(sqlite, statement).balanced


def test_a_partition_whose_ledger_vanished_is_listed_and_not_balanced(sqlite: SqliteEngine) -> None:
    store = sqlite.open()
    store.commit_batch(commit(store.read_partition(partition()), 0, 4))
    sqlite.sql("DELETE FROM batch_ledger")
    assert [books.accounted for books in store.read_ledgers()] == [0]
    assert not all(one.balanced for one in store.read_ledgers())
