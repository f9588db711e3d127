"""Count, record and show the faults of the database that repeat on one partition.

A partition may be held for ever by a fault that is taken for a passing one: a lock that nobody releases, a statement
that never ends in time, an error that the store does not know; or by a commit that is refused even without the rows of
its events. The host passes a batch after some retries, and begins to count anew with the next one: so the store counts,
and a person must see it.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from core.errors import InfrastructureFault, StoreFault, StoreUnreachable
from core.model.clock import Clock
from core.model.events import EventBatch
from core.settle.store.partitions import Partitions

RECURRENT = 5  # failures of a batch in a row; the pauses of the host between them grow to half a minute


@contextmanager
def noting_recurrence(batch: EventBatch, store: Partitions, clock: Clock) -> Iterator[None]:
    """Record a fault that failed the batch too often as the stop `store`, and count each one after it, also of other
    batches; if this fails too, the next retry does it."""
    try:
        yield
    except StoreFault as fault:
        with suppress(StoreFault):
            _note(batch, fault, store, clock)
        raise


def _note(batch: EventBatch, fault: StoreFault, store: Partitions, clock: Clock) -> None:
    is_recurrent = batch.retries + 1 >= RECURRENT
    if isinstance(fault, StoreUnreachable) and not is_recurrent:
        return  # the count could not be read either, and the batch would wait twice as long
    state = store.read_partition(batch.partition)
    stop = state.stop_for("store")
    if is_recurrent or stop is not None:
        count = batch.retries + 1 if stop is None else stop.attempts + RECURRENT
        detail = f"the partition failed {count} times in a row, last on the database; nothing was dropped: {fault}"
        store.note_stop(state, "store", detail, clock.now())


def recurrence_facts(batch: EventBatch, fault: InfrastructureFault) -> dict[str, object]:
    """Return the fields of the log line of a fault that repeated on a batch."""
    error = f"{type(fault).__name__}: {fault}"
    facts: dict[str, object] = {"action": "fault_repeated", "partition": str(batch.partition), "error": error}
    return {**facts, "count": batch.retries + 1, "invocation_id": batch.invocation_id}
