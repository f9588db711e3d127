"""The open letters and the open gaps of a partition, as the burn-down counts them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from core.model.events import PartitionId
from core.model.spans import SequenceNumber

Kind = Literal["kept", "unkept", "gap"]  # a letter with a stored body, a letter without, a gap
LETTERS: tuple[Kind, ...] = ("kept", "unkept")


@dataclass(frozen=True, slots=True)
class OpenCount:
    """The open letters or gaps of one kind in a partition. The hub no longer holds the events of `gone`; a gap is gone
    with its first event. Of the others, the first event was enqueued at `first_at`, and `by_cut` counts the events that
    were enqueued up to each of the cuts."""

    partition_id: PartitionId
    kind: Kind
    open: int
    gone: int
    first_at: datetime | None
    by_cut: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OpenGap:
    """An open gap: its first number, and a time before which the event of that number was not enqueued."""

    partition_id: PartitionId
    first: SequenceNumber
    after_at: datetime
