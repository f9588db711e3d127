"""Find the commits of a time: the ledger has no index by time, but times rise with the numbers of commits."""

from collections.abc import Callable
from datetime import datetime

from core.ledger.whereabouts import LedgerRange

ReadNext = Callable[[int], LedgerRange | None]  # the next row of a partition's ledger after a commit


def first_commit_since(at: datetime, last_commit: int, read_next: ReadNext) -> LedgerRange | None:
    """Return the first commit at or after a time, or None: there is none. It takes a seek for each halving of the
    commits. Commits of two hosts may be out of order by the moment between their time and their end."""
    before, last = 0, last_commit
    found: LedgerRange | None = None
    while before < last:
        middle = (before + last) // 2
        row = read_next(middle)
        if row is None or row.commit_number > last:
            last = middle
        elif row.committed_at >= at:
            found, last = row, middle
        else:
            before = row.commit_number
    return found
