"""The faults of what was purged from a partition: its stub, and the rows next to it."""

from collections.abc import Iterator

from core.ledger.faults import LedgerFault
from core.ledger.retention.stub import PurgeStub, stub_fault
from core.ledger.store.ledger import Ledger
from core.model.events import PartitionId


def purge_faults(store: Ledger, id: PartitionId, stub: PurgeStub | None, last_commit: int) -> Iterator[LedgerFault]:
    """Yield the faults of a partition's stub."""
    if stub is None:
        return
    for why in _reasons(store, id, stub, last_commit):
        yield LedgerFault(id, "purge_stub", stub.first, max(stub.first, stub.last), f"the stub of all purges {why}")
    absent = store.sum_absent_gaps(id, stub.last)
    if absent != stub.absent:
        text = f"the stub of all purges counts {stub.absent} absent numbers, but the gaps up to its end have {absent}"
        yield LedgerFault(id, "absent", stub.first, stub.last, text)


def _reasons(store: Ledger, id: PartitionId, stub: PurgeStub, last_commit: int) -> Iterator[str]:
    """Compare a stub with itself, and its end with the first commit that has a row."""
    own = stub_fault(stub)
    if own is not None:
        yield own
    oldest = store.find_piece_end(id, 0, stub.commit_number)
    if oldest is not None and oldest <= stub.commit_number:
        yield f"has commits up to {stub.commit_number}, but the ledger has commit {oldest}"
    following = store.find_piece_end(id, stub.commit_number, stub.commit_number + 1)
    if stub.commit_number < last_commit and following != stub.commit_number + 1:
        yield f"ends at commit {stub.commit_number}, but the next commit of the ledger is {following}"
