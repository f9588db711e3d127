"""core/ledger/status.py: when books balance, and how far the hub is ahead."""

from dataclasses import replace

import pytest

from core.ledger.status import PartitionLedger, balanced, partition_statuses
from core.model.events import PartitionId
from core.model.spans import SequenceNumber
from tests.fakes.builders import partition

WHOLE = PartitionLedger(
    partition=partition(),
    checkpoint=SequenceNumber(109),
    first=SequenceNumber(10),
    last=SequenceNumber(109),
    commits=4,
    holes=0,
    written=90,
    filtered=4,
    dead_lettered=3,
    held=2,
    absent=1,
    letters=3,
)


def test_books_that_account_for_every_number_are_balanced() -> None:
    assert (WHOLE.accounted, WHOLE.balanced) == (100, True)


@pytest.mark.parametrize(
    "changed",
    [
        {"holes": 1},
        {"checkpoint": 110},
        {"checkpoint": 108},
        {"last": 110, "checkpoint": 110},
        {"first": 9},
        {"first": 11},
        {"written": 91},
        {"written": 89},
        {"filtered": 3},
        {"dead_lettered": 4, "written": 89},
        {"letters": 2},
        {"letters": 4},
        {"held": 3},
        {"absent": 0},
    ],
    ids=str,
)
def test_books_that_do_not_add_up_are_not(changed: dict[str, int]) -> None:
    books = replace(WHOLE, **changed)  # type: ignore[arg-type]
    assert not books.balanced
    assert not balanced([WHOLE, books, WHOLE])


def test_books_all_balanced_or_none_there_are_balanced() -> None:
    assert balanced([WHOLE, WHOLE])
    assert balanced([])


def ledger(id: str, checkpoint: int) -> PartitionLedger:
    return replace(WHOLE, partition=partition(id), checkpoint=SequenceNumber(checkpoint))


def ends(**known: int) -> dict[PartitionId, int]:
    return {PartitionId(name.removeprefix("p")): end for name, end in known.items()}


def test_a_partition_is_listed_when_the_books_or_the_hub_know_it() -> None:
    found = partition_statuses([ledger("1", 9), ledger("10", 9)], ends(p1=9, p2=9))
    assert [(one.partition_id, one.ledger is not None, one.hub_end) for one in found] == [
        ("1", True, 9),
        ("2", False, 9),
        ("10", True, None),
    ]


@pytest.mark.parametrize(("checkpoint", "end", "lag"), [(9, 9, 0), (9, 19, 10), (0, 0, 0), (0, 2**63 - 1, 2**63 - 1)])
def test_the_lag_is_what_the_hub_has_beyond_the_checkpoint(checkpoint: int, end: int, lag: int) -> None:
    (one,) = partition_statuses([ledger("0", checkpoint)], ends(p0=end))
    assert one.lag == lag


@pytest.mark.parametrize(("end", "lag"), [(-1, 0), (0, 1), (99, 100)])
def test_a_partition_without_books_lags_by_all_that_the_hub_has(end: int, lag: int) -> None:
    (one,) = partition_statuses([], ends(p0=end))
    assert one.lag == lag


def test_the_lag_is_not_known_while_the_hub_cannot_be_asked() -> None:
    (one,) = partition_statuses([ledger("0", 9)], None)
    assert (one.hub_end, one.lag) == (None, None)


def test_nothing_known_is_nothing_listed() -> None:
    assert partition_statuses([], None) == partition_statuses([], {}) == ()


def test_a_hub_that_holds_nothing_any_more_leaves_no_lag() -> None:
    (one,) = partition_statuses([WHOLE], ends(p0=-1))
    assert one.lag == 0
