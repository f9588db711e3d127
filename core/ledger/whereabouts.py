"""Everything that the store knows about one sequence number."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from core.letters.listing import WholeLetter
from core.model.commits import GapStatus
from core.model.events import SequenceNumber

MOST_CHANGES = 100


@dataclass(frozen=True, slots=True)
class LedgerRange:
    """One row of the ledger."""

    commit_number: int
    kind: Literal["batch", "retry", "replay"]
    first: SequenceNumber
    last: SequenceNumber
    written: int
    filtered: int
    dead_lettered: int
    held: int
    absent: int
    rows_written: int
    transform_version: str
    invocation_id: str
    committed_at: datetime


@dataclass(frozen=True, slots=True)
class Purged:
    """How far a partition is purged: the ledger rows up to a commit are gone, whose numbers begin at `first`, the first
    of the partition, and end at `last`. `at` is the time of the last purge of them."""

    commit_number: int
    first: SequenceNumber
    last: SequenceNumber
    at: datetime | None


NOT_PURGED = Purged(0, SequenceNumber(0), SequenceNumber(-1), None)


@dataclass(frozen=True, slots=True)
class NotedGap:
    """A gap that a number is part of."""

    first: SequenceNumber
    last: SequenceNumber
    status: GapStatus
    found_at: datetime
    attempts: int


@dataclass(frozen=True, slots=True)
class WrittenRow:
    """A row that carries the number. `ordinal` counts the appended rows of an event, and is None for a state."""

    table: str
    ordinal: int | None
    commit_number: int
    columns: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """The facts that the store has about a number. `range` is the last range that begins at or before the number, and
    may end before it. `changes` are the later replays and retries that touched the number, the newest first. `purged`
    says how far the partition is purged. `erased` counts rows that an erasure took away."""

    checkpoint: SequenceNumber
    range: LedgerRange | None
    changes: tuple[LedgerRange, ...]
    letter: WholeLetter | None
    gap: NotedGap | None
    rows: tuple[WrittenRow, ...]
    states_declared: bool
    purged: Purged = NOT_PURGED
    erased: int = 0
