"""Who reads a partition, for consumers outside the Functions host: values that the store keeps."""

from dataclasses import dataclass
from datetime import datetime

from core.events import Partition


@dataclass(frozen=True, slots=True)
class Ownership:
    """One partition's owner; an empty `owner_id` means that it was released. `etag` changes with every claim."""

    partition: Partition
    owner_id: str
    etag: str
    last_modified_at: datetime


@dataclass(frozen=True, slots=True)
class OwnershipClaim:
    """An ownership to be made, and the etag that must still stand for it: None for a partition never owned before."""

    ownership: Ownership
    expected_etag: str | None
