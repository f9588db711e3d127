"""Who reads a partition, for consumers outside the Functions host: values that the store keeps."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from core.model.events import Partition


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


def surplus(standing: Sequence[Ownership], owner_id: str) -> int:
    """How many partitions an owner has above an even share; one that has gone counts as an owner until replaced."""
    owners = {one.owner_id for one in standing if one.owner_id} | {owner_id}
    share = -(-len(standing) // len(owners))
    return max(0, sum(one.owner_id == owner_id for one in standing) - share)
