"""core/ledger/totals.py: which books balance, how far a partition lags, and the rate between two looks of the watch."""

from dataclasses import replace
from datetime import timedelta

import pytest

from core.audit.faults import PartitionLedger
from core.ledger.totals import Books, LetterBooks, Minute, PartitionBooks, lag_of, lag_time, rates
from core.model.events import PartitionId, SequenceNumber
from tests.fakes.builders import EPOCH, partition

FIRST, LAST = SequenceNumber(10), SequenceNumber(19)
EVEN = PartitionBooks(4, 4, 2, 0, 0, PartitionId("0"), LAST, EPOCH, 3, FIRST, 3, 2)


def test_books_that_are_even_balance() -> None:
    books = Books((EVEN, EVEN), LetterBooks({"waiting": 1}, 4, settled=3))
    assert (books.numbers, books.accounted, books.balanced) == (20, 20, True)


OFF = (("checkpoint", 20), ("checkpoint", 18), ("written", 5), ("absent", 1), ("first", 11), ("is_recorded", False))


@pytest.mark.parametrize(("name", "value"), OFF)
def test_anything_that_is_off_shows(name: str, value: int) -> None:
    assert not replace(EVEN, **{name: value}).balanced  # type: ignore[arg-type]


def test_letters_that_replays_made_are_counted_beside_those_of_the_ledger() -> None:
    assert Books((EVEN,), LetterBooks({"waiting": 5}, 2, 3)).balanced
    assert not Books((EVEN,), LetterBooks({"waiting": 5}, 2, 4)).balanced
    assert not Books((EVEN,), LetterBooks({"waiting": 5}, 2, 2)).balanced


@pytest.mark.parametrize(("hub_end", "lag"), [(None, None), (-1, 0), (19, 0), (25, 6), (5, 0)])
def test_lag_is_what_the_hub_has_beyond_the_checkpoint(hub_end: int | None, lag: int | None) -> None:
    assert lag_of(EVEN, hub_end) == lag


def test_the_lag_of_a_partition_without_a_commit_is_all_that_its_hub_ever_had() -> None:
    assert (lag_of(None, 4), lag_of(None, -1), lag_time(None, 5, EPOCH), lag_time(None, 0, EPOCH)) == (
        5, 0, None, timedelta(),
    )  # fmt: skip


def test_who_waits_has_waited_no_longer_than_since_the_checkpoint_s_event() -> None:
    now = EPOCH + timedelta(seconds=90)
    assert lag_time(EVEN, 3, now) == timedelta(seconds=90)
    assert lag_time(EVEN, 0, now) == timedelta()
    assert lag_time(EVEN, 3, EPOCH - timedelta(seconds=5)) == timedelta()
    assert lag_time(EVEN, None, now) is None


def test_numbers_are_counted_from_the_anchor() -> None:
    late = replace(EVEN, anchor=SequenceNumber(8))
    assert (late.numbers, late.balanced) == (12, False)
    assert replace(EVEN, anchor=FIRST).balanced


LEDGER = PartitionLedger(
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
    letters=5,
)


def test_a_ledger_that_accounts_for_every_number_is_balanced() -> None:
    assert (LEDGER.accounted, LEDGER.balanced) == (100, True)


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
        {"held": 3, "written": 89},
        {"letters": 4},
        {"letters": 6},
        {"held": 3},
        {"absent": 0},
    ],
    ids=str,
)
def test_a_ledger_that_does_not_add_up_is_not_balanced(changed: dict[str, int]) -> None:
    ledger = replace(LEDGER, **changed)  # type: ignore[arg-type]
    assert not ledger.balanced


def at(seconds: float, accounted: int) -> Minute:
    return Minute(EPOCH + timedelta(seconds=seconds), 0, accounted)


def test_the_rate_is_the_numbers_accounted_for_in_the_seconds_between_two_looks() -> None:
    assert rates([at(0, 100), at(60, 160), at(120.5, 160), at(720.5, 6_160)]) == [None, 1.0, 0.0, 10.0]


def test_a_count_that_falls_and_two_looks_at_one_moment_are_no_rate_below_zero_and_none_without_end() -> None:
    assert rates([at(0, 100), at(60, 90), at(60, 95)]) == [None, 0.0, 5.0]
