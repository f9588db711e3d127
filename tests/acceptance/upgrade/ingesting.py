"""`python -m tests.acceptance.upgrade.ingesting STORE TRANSFORM FIRST BODY...`: ingest bodies and audit the ledger.

The test of upgrades runs it in the repository of a user, on the code that stands there.
"""

import random
import sys
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from uuid import UUID

from core.audit.audit import audit
from core.audit.store import AuditStore
from core.ingest.ingest import Ingestion, ingest_batch
from core.model.events import Event, EventBatch, PartitionId, SequenceNumber, Stream
from core.model.ports import Clock
from core.settle.partition_store import Partitions
from core.store.connect import open_database
from core.store.database import OneStream
from core.transforms.loading import load_transform

STREAM = Stream("user/events", "hubledger")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def main(store: str, name: str, first: int, bodies: Sequence[str]) -> bool:
    """Ingest one batch from a sequence number on. Return whether the ledger balances."""
    transform = load_transform(name)
    events = tuple(
        Event(SequenceNumber(first + at), str(first + at), NOW, None, {}, body.encode())
        for at, body in enumerate(bodies)
    )
    chance = random.Random(first)
    clock = Clock(lambda: NOW, lambda: UUID(int=chance.getrandbits(128), version=4), chance.random)
    with closing(open_database(store, transform.row_classes)) as database:
        batch = EventBatch(STREAM.partition(PartitionId("0")), events, f"batch {first}")
        ingest_batch(batch, Ingestion(Partitions(database), transform, clock))
        return audit(AuditStore(OneStream(database, STREAM), transform.row_classes), None).balanced


if __name__ == "__main__":
    print("balanced" if main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]) else "not balanced")
