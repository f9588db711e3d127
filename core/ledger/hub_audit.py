"""The hub in the audit: whether it is still the one that a stream was read from."""

from core.ingest.incarnation import created_differently, differing_event
from core.ledger.faults import LedgerFault
from core.model.commits import PartitionState
from core.model.events import Incarnation
from core.model.hub import HubReader


def incarnation_fault(state: PartitionState, incarnation: Incarnation | None, hub: HubReader) -> LedgerFault | None:
    """Return the fault of a hub that was created at a different time, or whose event at the checkpoint differs.

    Raises HubUnreachable or HubRefused. The recount reports a hub that ends before the checkpoint.
    """
    checkpoint, stored = state.checkpoint, None if incarnation is None else incarnation.hub_created_at
    if checkpoint is None:
        return None
    created_at = hub.created_at()
    if stored is not None and created_at != stored:
        evidence: str | None = created_differently(created_at, stored)
    else:
        evidence = differing_event(state, hub, hub.extent(state.partition))
    if evidence is None:
        return None
    number = checkpoint.sequence_number
    return LedgerFault(state.partition.partition_id, "hub", number, number, f"{evidence}: it is a different hub")
