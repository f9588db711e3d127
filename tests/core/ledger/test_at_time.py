"""core/ledger/explain.py: the first commit since a time, by halving."""

from dataclasses import replace
from datetime import timedelta

import pytest

from core.ledger.explain import first_commit_since
from core.ledger.totals import LedgerRange
from core.model.events import SequenceNumber
from tests.fakes.builders import EPOCH

ROW = LedgerRange(1, "batch", SequenceNumber(0), SequenceNumber(9), 10, 0, 0, 0, 0, 10, "v", "i", EPOCH)


class Rows:
    """A ledger whose commits come a minute apart; the first `purged` ones are gone."""

    def __init__(self, commits: int, purged: int = 0) -> None:
        minutes = range(purged + 1, commits + 1)
        self.rows = [replace(ROW, commit_number=n, committed_at=EPOCH + timedelta(minutes=n)) for n in minutes]
        self.reads = 0

    def __call__(self, after: int) -> LedgerRange | None:
        self.reads += 1
        return next((row for row in self.rows if row.commit_number > after), None)


@pytest.mark.parametrize(
    ("purged", "minutes", "expected"),
    [
        (0, -5, 1),
        (0, 1, 1),
        (0, 1.5, 2),
        (0, 700, 700),
        (0, 1000, 1000),
        (0, 1000.5, None),
        (400, 3, 401),
        (400, 650, 650),
    ],
)
def test_the_first_commit_at_or_after_a_time(purged: int, minutes: float, expected: int | None) -> None:
    rows = Rows(1000, purged)
    found = first_commit_since(EPOCH + timedelta(minutes=minutes), 1000, rows)
    assert (None if found is None else found.commit_number) == expected
    assert rows.reads <= 11


def test_a_partition_without_a_commit_has_none() -> None:
    assert first_commit_since(EPOCH, 0, Rows(0)) is None
