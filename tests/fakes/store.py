"""Every verb of the store over one database, as tests use them."""

from core.ledger.status import PartitionLedger
from core.model.events import Stream
from core.store.database import Database
from core.store.ledger import Ledger
from core.store.letters import Letters
from core.store.memory import Memory
from core.store.ownership import Ownerships
from core.store.replays import Replays
from core.store.stream import OneStream
from tests.fakes.builders import STREAM


class Store(Letters, Replays, Ownerships):
    """Reads and writes of events, letters, replays and owners."""

    def __init__(self, database: Database, memory: Memory | None = None) -> None:
        super().__init__(database, memory)
        self.database = database

    def read_ledgers(self, stream: Stream = STREAM) -> tuple[PartitionLedger, ...]:
        """Return the books of every partition of a stream."""
        return Ledger(OneStream(self.database, stream), ()).audit_ledgers(None)

    def close(self) -> None:
        self.database.close()
