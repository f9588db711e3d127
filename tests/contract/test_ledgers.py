"""Promises of every store about the books: every partition's sums, in order, and whether they balance."""

from core.ledger.books import PartitionLedger
from tests.fakes.builders import commit, event, home, letter, partition, reading, settled
from tests.fakes.engines import SqliteEngine
from tests.fakes.store import Store


def test_an_empty_database_has_no_books(store: Store) -> None:
    assert store.read_ledgers() == ()


def test_a_partition_that_was_only_read_has_no_books(store: Store) -> None:
    store.read_partition(partition())
    assert store.read_ledgers() == ()


def test_the_books_sum_over_all_commits(store: Store) -> None:
    store.commit_batch(commit(store.read_partition(partition()), 10, 12, settled({10: [reading()]}, filtered=2)))
    outcome = settled({13: [home(), reading()]}, letters=[letter(event(14)), letter(event(15))])
    store.commit_batch(commit(store.read_partition(partition()), 13, 15, outcome))
    (books,) = store.read_ledgers()
    assert books.partition == partition()
    assert (books.first, books.last, books.checkpoint, books.commits, books.holes) == (10, 15, 15, 2, 0)
    assert (books.written, books.filtered, books.dead_lettered, books.held, books.absent) == (2, 2, 2, 0, 0)
    assert (books.letters, books.accounted, books.balanced) == (2, 6, True)


def test_a_range_that_was_left_out_is_a_hole(store: Store) -> None:
    for first, last in [(0, 4), (7, 9), (10, 12), (20, 20)]:
        store.commit_batch(commit(store.read_partition(partition()), first, last))
    (books,) = store.read_ledgers()
    assert (books.holes, books.accounted, books.balanced) == (2, 12, False)


def test_partitions_are_listed_by_number_not_by_text(store: Store) -> None:
    for id in ("10", "2", "0", "31", "1"):
        store.commit_batch(commit(store.read_partition(partition(id)), 0, 0))
    assert [books.partition.partition_id for books in store.read_ledgers()] == ["0", "1", "2", "10", "31"]


def test_streams_keep_their_books_apart(store: Store) -> None:
    store.commit_batch(commit(store.read_partition(partition()), 0, 4))
    other = partition(group="other")
    store.commit_batch(commit(store.read_partition(other), 3, 3, settled({}, letters=[letter(event(3))])))
    found = [books for of in (partition(), other) for books in store.read_ledgers(of.stream)]
    assert [(books.partition, books.accounted, books.letters) for books in found] == [
        (partition(), 5, 0),
        (other, 1, 1),
    ]


class TestPlantedFaults:
    """The books name each forbidden change that was made by hand."""

    def books_after(self, sqlite: SqliteEngine, statement: str) -> PartitionLedger:
        store = sqlite.open()
        for first in (0, 5, 10):
            outcome = settled({first: [reading()]}, letters=[letter(event(first + 1))], filtered=3)
            store.commit_batch(commit(store.read_partition(partition()), first, first + 4, outcome))
        assert all(one.balanced for one in store.read_ledgers())
        sqlite.sql(statement)
        (books,) = store.read_ledgers()
        store.close()
        return books

    def test_a_range_that_vanished(self, sqlite: SqliteEngine) -> None:
        assert not self.books_after(sqlite, "DELETE FROM batch_ledger WHERE first_sequence_number = 5").balanced

    def test_the_last_range_vanished(self, sqlite: SqliteEngine) -> None:
        assert not self.books_after(sqlite, "DELETE FROM batch_ledger WHERE first_sequence_number = 10").balanced

    def test_a_letter_that_vanished(self, sqlite: SqliteEngine) -> None:
        assert not self.books_after(sqlite, "DELETE FROM event_hub_dead_letter WHERE sequence_number = 6").balanced

    def test_a_checkpoint_that_moved_on_alone(self, sqlite: SqliteEngine) -> None:
        assert not self.books_after(sqlite, "UPDATE event_hub_checkpoint SET sequence_number = 99").balanced

    def test_a_checkpoint_that_went_back(self, sqlite: SqliteEngine) -> None:
        assert not self.books_after(sqlite, "UPDATE event_hub_checkpoint SET sequence_number = 9").balanced

    def test_ranges_that_overlap(self, sqlite: SqliteEngine) -> None:
        statement = "UPDATE batch_ledger SET last_sequence_number = 5, filtered = 4 WHERE first_sequence_number = 0"
        books = self.books_after(sqlite, statement)
        assert (books.holes, books.balanced) == (1, False)

    def test_a_retry_of_a_letter_does_not_count_as_a_range(self, sqlite: SqliteEngine) -> None:
        statement = (
            "INSERT INTO batch_ledger SELECT stream_id, partition_id, 4, 'retry', 1, 1, 1, 0, 0, 0, 0, 1,"
            " transform_version, invocation_id, committed_at, 1, NULL, NULL FROM batch_ledger WHERE commit_number = 1"
        )
        assert self.books_after(sqlite, statement).balanced


def test_a_partition_whose_ledger_vanished_is_listed_and_not_balanced(sqlite: SqliteEngine) -> None:
    store = sqlite.open()
    store.commit_batch(commit(store.read_partition(partition()), 0, 4))
    sqlite.sql("DELETE FROM batch_ledger")
    assert [books.accounted for books in store.read_ledgers()] == [0]
    assert not all(one.balanced for one in store.read_ledgers())
