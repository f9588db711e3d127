"""Books without a remembered sum are summed in pieces: a request ends in time, and the next one goes on."""

import pytest

from core.api.problems import of_fault
from core.errors import LedgerNotSummed
from core.ledger.audit import audit
from core.ledger.store.books import Summing
from tests.contract.operator.conftest import Office
from tests.fakes.builders import partition, reading, settled


def fill(office: Office, commits: int) -> None:
    for id in ("0", "1"):
        for number in range(commits):
            office.commit(number, number, settled({number: [reading()]}), of=partition(id))


def summing(office: Office, seconds: float) -> None:
    """Let each statement sum 3 commits of a partition, and each piece take a second."""
    clock = iter(range(1_000))
    office.desk.ledger.summing = Summing(most=3, piece=3, seconds=seconds)
    office.desk.stream.monotonic = lambda: float(next(clock))


def test_a_reader_sums_piece_by_piece_and_returns_the_same_books(office: Office) -> None:
    fill(office, 11)
    summing(office, seconds=10)
    books = office.desk.ledger.read_books()
    assert [(one.accounted, one.commits, one.balanced, one.summed_to) for one in books] == [(11, 11, True, 11)] * 2
    assert office.desk.ledger.read_books() == books
    assert audit(office.desk.ledger, None).balanced


def test_a_reader_whose_time_is_over_says_how_far_it_came_and_the_next_one_goes_on(office: Office) -> None:
    fill(office, 11)
    summing(office, seconds=1)
    with pytest.raises(LedgerNotSummed, match=r"are summed up to 9 of 22 commits: ask again"):
        office.desk.ledger.read_books()
    with pytest.raises(LedgerNotSummed, match="17 of 22"):
        office.desk.ledger.read_books()
    summing(office, seconds=10)
    assert [one.balanced for one in office.desk.ledger.read_books()] == [True, True]


def test_a_hole_between_two_pieces_is_counted_once(office: Office) -> None:
    for number in (0, 1, 2, 5, 6, 7, 8):
        office.commit(number, number)
    summing(office, seconds=10)
    (one,) = office.desk.ledger.read_books()
    assert (one.holes, one.balanced) == (1, False)


def test_a_client_learns_when_to_ask_again() -> None:
    problem = of_fault(LedgerNotSummed("hub/group", 6, 22))
    assert (problem.kind.status, problem.headers) == (503, {"Retry-After": "5"})
