"""core/ledger/totals.py: which books balance, how far a partition lags, and that letters are counted at one moment."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from core.audit.faults import PartitionLedger
from core.ledger.store import READS, read_letter_books, read_open_letters
from core.ledger.store import Ledger as StoredLedger
from core.ledger.totals import Books, CountedLetters, LetterBooks, PartitionBooks, lag_of, lag_time
from core.model.commits import LetterStatus
from core.model.events import PartitionId, SequenceNumber
from core.model.letters import LetterKey
from tests.fakes.builders import EPOCH, partition

FIRST, LAST = SequenceNumber(10), SequenceNumber(19)
EVEN = PartitionBooks(PartitionId("0"), LAST, EPOCH, 3, FIRST, 3, 4, 4, 2, 0, 0, 2)


class Ledger(StoredLedger):
    """A ledger whose books come one after the other; commits come between the statements of a reader."""

    def __init__(self, *moments: tuple[PartitionBooks, int]) -> None:
        self.moments = list(moments)
        self.letters = 0

    def read_books(self) -> tuple[PartitionBooks, ...]:
        books, self.letters = self.moments.pop(0) if len(self.moments) > 1 else self.moments[0]
        return (books,)

    def count_letters(self) -> CountedLetters:
        return CountedLetters({"exhausted": self.letters})

    def count_open(self) -> CountedLetters:
        return CountedLetters({"exhausted": self.letters}, purged=1)

    def find_oldest_letter(self, statuses: Sequence[LetterStatus]) -> LetterKey | None:
        return LetterKey(EPOCH, PartitionId("0"), FIRST) if "exhausted" in statuses else None


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


@pytest.mark.parametrize("letters", [1, 3])
def test_letters_that_are_more_or_fewer_than_the_ledger_says_show(letters: int) -> None:
    assert not Books((EVEN,), LetterBooks({"waiting": letters}, 2)).balanced


def test_a_held_event_has_a_letter_as_one_that_failed_has() -> None:
    held = replace(EVEN, held=1, filtered=3, letters=3)
    assert read_letter_books(Ledger((held, 3))).balanced
    assert not read_letter_books(Ledger((held, 2))).balanced


def lettered(letters: int, commit_number: int) -> PartitionBooks:
    """Books after a commit, whose batches made so many letters."""
    return replace(EVEN, commit_number=commit_number, dead_lettered=letters, letters=letters)


def test_a_commit_between_two_statements_does_not_look_like_an_imbalance() -> None:
    busy = [(lettered(2 + at, 3 + at), 3 + at) for at in range(2)]
    assert read_letter_books(Ledger(*busy, (lettered(8, 9), 8))).balanced


def test_an_imbalance_that_stays_is_told() -> None:
    found = read_letter_books(Ledger((EVEN, 1)))
    assert (found.balanced, found.open, found.oldest is not None) == (False, 1, True)


def test_books_that_never_rest_are_not_looked_at_for_ever() -> None:
    busy = [(lettered(at, at), at + 2) for at in range(READS * 3)]
    assert not read_letter_books(Ledger(*busy)).balanced


def test_letters_that_come_without_rest_are_no_imbalance() -> None:
    busy = [(lettered(at, at), at + 1) for at in range(READS * 3)]
    found = read_letter_books(Ledger(*busy))
    assert (found.balanced, found.dead_lettered, sum(found.counts.values())) == (True, READS, READS)


def test_letters_that_replays_make_without_rest_are_no_imbalance() -> None:
    busy = [(replace(EVEN, commit_number=at, letters=2 + at), at + 3) for at in range(READS * 3)]
    found = read_letter_books(Ledger(*busy))
    assert (found.balanced, found.dead_lettered, found.replayed) == (True, 2, READS)


def test_letters_that_are_not_open_are_settled_or_purged_and_no_more_can_be_open_than_were_made() -> None:
    ledger = Ledger((lettered(9, 3), 7))
    ledger.letters = 5  # a batch makes two more before the totals are read
    found = read_open_letters(ledger)
    assert (found.balanced, found.open, found.settled, found.purged, found.oldest is not None) == (True, 5, 3, 1, True)
    ledger.letters = 9
    found = read_open_letters(ledger)
    assert (found.balanced, found.settled) == (False, 0)


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
