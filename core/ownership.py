"""The owners of partitions, for consumers outside the Functions host: values that the store holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from core.model.events import Partition


@dataclass(frozen=True, slots=True)
class Ownership:
    """The owner of a partition; an empty `owner_id` means that it was released. `etag` changes with every claim."""

    partition: Partition
    owner_id: str
    etag: str
    last_modified_at: datetime


@dataclass(frozen=True, slots=True)
class OwnershipClaim:
    """A new ownership, and the etag that the store must still have: None for a partition that was never owned."""

    ownership: Ownership
    expected_etag: str | None


def surplus(standing: Sequence[Ownership], owner_id: str) -> int:
    """Count the partitions of an owner above an even share; an owner that has gone counts until it is replaced."""
    owners = {one.owner_id for one in standing if one.owner_id} | {owner_id}
    share = -(-len(standing) // len(owners))
    return max(0, sum(one.owner_id == owner_id for one in standing) - share)
