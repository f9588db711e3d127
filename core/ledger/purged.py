"""The faults of what was purged from a partition: its chain, and the rows next to it."""

from collections.abc import Iterator

from core.ledger.faults import FAULT_LIMIT, LedgerFault
from core.ledger.retention.chain import PurgeLink, chain_faults
from core.ledger.store.ledger import Ledger
from core.model.events import PartitionId

LINKS = 1_000  # that one statement reads
NEWEST = 100  # links that an audit compares which does not read the whole ledger


def purge_faults(
    store: Ledger, id: PartitionId, last: PurgeLink | None, last_commit: int, whole: bool
) -> Iterator[LedgerFault]:
    """Yield the faults of a partition's chain: of all its links, or of the newest ones."""
    if last is None:
        return
    yield from _of_links(store, id, 0 if whole else max(0, last.number - NEWEST))
    yield from _of_neighbours(store, id, last, last_commit)
    absent = store.sum_absent_gaps(id, last.last)
    if absent != last.absent:
        text = f"chain link {last.number} counts {last.absent} absent numbers, but the gaps up to its end have {absent}"
        yield LedgerFault(id, "absent", last.first, last.last, text)


def _of_links(store: Ledger, id: PartitionId, after: int) -> Iterator[LedgerFault]:
    before, found = store.before_first(id), 0
    if after:
        (before,) = store.read_links(id, after - 1, 1) or (before,)
    while (links := store.read_links(id, before.number, LINKS)) and found < FAULT_LIMIT:
        for link, why in chain_faults(before, links):
            found += 1
            yield LedgerFault(id, "purge_link", link.first, max(link.first, link.last), why)
        before = links[-1]


def _of_neighbours(store: Ledger, id: PartitionId, last: PurgeLink, last_commit: int) -> Iterator[LedgerFault]:
    """Compare the end of the chain with the first commit that has a row."""
    oldest = store.find_piece_end(id, 0, last.commit_number)
    if oldest is not None and oldest <= last.commit_number:
        text = f"chain link {last.number} purged commits up to {last.commit_number}, but the ledger has commit {oldest}"
        yield LedgerFault(id, "purge_link", last.first, last.last, text)
    following = store.find_piece_end(id, last.commit_number, last.commit_number + 1)
    if last.commit_number < last_commit and following != last.commit_number + 1:
        text = f"chain link {last.number} ends at commit {last.commit_number}, but the next commit of the ledger is"
        yield LedgerFault(id, "purge_link", last.first, last.last, f"{text} {following}")
