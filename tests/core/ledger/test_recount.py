"""core/audit/audit.py: the rows beside the ledger."""

from dataclasses import dataclass

import pytest

from core.audit.audit import LAST_NUMBER, AuditedPartition, RowRecount, recount_rows, window
from core.audit.faults import CommitRows, LetteredRow, PartitionLedger, RowCount
from core.audit.store import AuditStore
from core.model.events import PartitionId, SequenceNumber, Span
from tests.fakes.builders import partition

N = SequenceNumber
EVEN = AuditedPartition(
    PartitionLedger(
        partition=partition(), checkpoint=N(19), first=N(10), last=N(19), commits=2, written=6, filtered=2,
        dead_lettered=2, held=0, absent=0, letters=2,
    ),
    (),
)  # fmt: skip
WHOLE = Span(N(10), N(19))


@dataclass
class Store(AuditStore):
    """The rows of one partition."""

    counts: tuple[RowCount, ...] = (RowCount("sensor_reading", 6, 0), RowCount("home", 1, 0))
    commits: tuple[CommitRows, ...] = ()
    asked: Span | None = None
    lettered: tuple[LetteredRow, ...] = ()

    def count_rows(self, partition_id: PartitionId, span: Span) -> tuple[RowCount, ...]:
        self.asked = span
        return self.counts

    def find_row_faults(self, partition_id: PartitionId, span: Span, most: int) -> tuple[CommitRows, ...]:
        return self.commits

    def find_lettered_rows(self, partition_id: PartitionId, span: Span, most: int) -> tuple[LetteredRow, ...]:
        return self.lettered


def told(recount: RowRecount) -> list[tuple[str, int, int]]:
    return [(fault.kind, fault.first, fault.last) for fault in recount.faults]


@pytest.mark.parametrize(
    ("first", "last", "most", "expected"),
    [
        (None, None, 100, (10, 19)),
        (None, None, 4, (16, 19)),
        (None, 15, 4, (12, 15)),
        (None, 12, 4, (10, 12)),
        (12, None, 4, (12, 15)),
        (12, 14, 4, (12, 14)),
        (0, 99, 100, (10, 19)),
        (20, None, 4, None),
        (None, 9, 4, None),
    ],
)
def test_what_is_recounted_at_once_has_a_limit(
    first: int | None, last: int | None, most: int, expected: tuple[int, int] | None
) -> None:
    asked = (None if first is None else N(first), None if last is None else N(last))
    found = window(EVEN.ledger, *asked, most)
    assert (None if found is None else found.ends) == expected


class TestRows:
    def test_rows_that_commits_account_for_are_no_fault(self) -> None:
        done = recount_rows(EVEN, WHOLE, Store())
        assert (done.rows, done.faults) == (7, ())

    def test_rows_that_no_commit_accounts_for_are_told_by_their_table(self) -> None:
        done = recount_rows(EVEN, WHOLE, Store((RowCount("sensor_reading", 6, 2),)))
        assert told(done) == [("rows", 10, 19)]
        assert "2 of 6 rows in sensor_reading" in done.faults[0].detail

    def test_commits_with_missing_and_with_added_rows_are_told_by_their_numbers(self) -> None:
        fewer = CommitRows(4, "batch", N(10), N(14), 3, 2)
        more = CommitRows(5, "replay", N(15), N(19), 3, 4)
        done = recount_rows(EVEN, WHOLE, Store(commits=(fewer, more)))
        assert told(done) == [("rows_missing", 10, 14), ("rows_added", 15, 19)]
        assert done.faults[0].detail == "commit 4 (batch) appended 3 rows, but the tables hold 2"

    def test_rows_outside_of_the_ledger_are_looked_for_at_its_ends_only(self) -> None:
        for asked, looked in (
            ((10, 19), (0, LAST_NUMBER)),
            ((12, 19), (12, LAST_NUMBER)),
            ((10, 15), (0, 15)),
            ((12, 15), (12, 15)),
        ):
            store = Store()
            recount_rows(EVEN, Span(N(asked[0]), N(asked[1])), store)
            assert store.asked is not None
            assert store.asked.ends == looked

    def test_a_letter_that_is_open_although_its_rows_stand_is_named(self) -> None:
        done = recount_rows(EVEN, WHOLE, Store(lettered=(LetteredRow(N(12), "waiting", "sensor_reading"),)))
        assert told(done) == [("letters", 12, 12)]
        assert done.faults[0].detail == "letter 12 is waiting, but sensor_reading has rows of its event"
