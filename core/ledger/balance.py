"""The books and the letters of a stream, read at one moment while commits come."""

from collections.abc import Sequence
from dataclasses import replace

from core.ledger.books import Books, LetterBooks, PartitionBooks
from core.ledger.store.ledger import Ledger
from core.letters.listing import OPEN

READS = 5  # the most reads of the books while commits come between two statements


def read_books(store: Ledger) -> Books:
    """Return the books now. Letters are counted one by one, which takes a while for millions of letters."""
    return Books(store.read_books(), read_letter_books(store))


def read_letter_books(store: Ledger) -> LetterBooks:
    """Return the letters of one moment, each of them counted.

    While they do not balance, count again, until no commit comes during the count.
    """
    partitions = store.read_books()
    for _ in range(READS):
        counted, (dead_lettered, replayed) = store.count_letters(), _made(partitions)
        letters = LetterBooks(counted.counts, dead_lettered, replayed, purged=counted.purged, settled=counted.settled)
        if letters.balanced:
            break
        before, partitions = partitions, store.read_books()
        if [one.commit_number for one in partitions] == [one.commit_number for one in before]:
            break
    else:
        letters = _in_between(letters, before, partitions)
    return _with_oldest(letters, store)


def read_open_letters(store: Ledger) -> LetterBooks:
    """Return the open letters now, without a look at the settled ones: these are the rest of all that were made.

    A lost letter counts as settled here. The totals are read last, so that a letter of a commit in between is not open
    before it is made.
    """
    counted = store.count_open()
    dead_lettered, replayed = _made(store.read_books())
    letters = LetterBooks(counted.counts, dead_lettered, replayed, purged=counted.purged)
    settled = max(0, dead_lettered + replayed - letters.open - letters.purged)
    return _with_oldest(replace(letters, settled=settled), store)


def _with_oldest(letters: LetterBooks, store: Ledger) -> LetterBooks:
    return replace(letters, oldest=store.find_oldest_letter(OPEN) if letters.open else None)


def _made(partitions: Sequence[PartitionBooks]) -> tuple[int, int]:
    """Count the letters that batches made, and those that replays made."""
    of_batches = sum(one.lettered for one in partitions)
    return of_batches, sum(one.letters for one in partitions) - of_batches


def _in_between(letters: LetterBooks, before: Sequence[PartitionBooks], after: Sequence[PartitionBooks]) -> LetterBooks:
    """Return the letters with the checkpoints' counts that fit them best, between those before and after them."""
    (least, less), (most, more) = _made(before), _made(after)
    found = letters.open + letters.settled + letters.purged
    replayed = min(max(found - most, less), more)
    return replace(letters, dead_lettered=min(max(found - replayed, least), most), replayed=replayed)
