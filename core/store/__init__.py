"""The store: the only door to SQL. One method is one transaction and one verb of the business."""

from collections.abc import Mapping
from typing import Any, Protocol

from core.ingest.port import IngestStore
from core.ledger.status import PartitionLedger
from core.letters.port import LetterStore
from core.model.events import PartitionId, Stream
from core.model.spans import SequenceNumber
from core.ownership import Ownership, OwnershipClaim
from core.replay.port import ReplayStore


class Store(IngestStore, Protocol):
    """What every engine keeps; `tests/contract` holds them to it. All methods may be called from several threads.

    Any method may raise StoreUnavailable, and nothing was written then.
    """

    def read_ledgers(self) -> tuple[PartitionLedger, ...]:
        """The books of every partition of every stream, by stream and partition."""
        ...

    def close(self) -> None:
        """Let go of every connection."""
        ...


class NamedQueries(Protocol):
    """What an engine answers by name; both have the same names, parameters and columns. Instants are texts."""

    def ask(self, name: str, **values: Any) -> list[tuple[Any, ...]]:
        """Run a named statement that reads."""
        ...

    def tell(self, name: str, **values: Any) -> list[tuple[Any, ...]]:
        """Run a named statement that writes, in a transaction of its own."""
        ...

    def count_rows(self, row_class: type, **place: Any) -> tuple[int, int]:
        """The rows of a class in a range of a partition, and how many of them no commit of the ledger accounts for."""
        ...

    def find_row_faults(self, row_classes: tuple[type, ...], **place: Any) -> list[tuple[Any, ...]]:
        """Commits in a range that appended another number of rows of these classes than there are of them."""
        ...

    def rows_at(self, row_class: type, stream_id: int, partition_id: str, number: int) -> list[tuple[Any, ...]]:
        """Ordinal (None for a state), commit number and columns of the rows that carry a number."""
        ...


class OwnershipStore(Protocol):
    """What an engine keeps for consumers that share partitions outside the Functions host."""

    def read_ownerships(self, stream: Stream) -> tuple[Ownership, ...]:
        """Every ownership of the stream that this partition belongs to."""
        ...

    def claim_ownership(self, claim: OwnershipClaim) -> bool:
        """Make an ownership if the expected etag still stands; False, and nothing changed, if not."""
        ...

    def read_checkpoints(self, stream: Stream) -> Mapping[PartitionId, tuple[SequenceNumber, str]]:
        """Sequence number and offset of every partition's checkpoint in the stream."""
        ...


class AppStore(Store, LetterStore, Protocol):
    """What the app works with."""


class Engine(AppStore, OwnershipStore, ReplayStore, Protocol):
    """What an engine keeps of events, letters, owners and replays."""


class DatabaseEngine(Engine, NamedQueries, Protocol):
    """An engine over a database: operators' queries are run there too."""
