"""The rows of a store as tests read them: the same values from every engine."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from core.model.commits import PartitionState
from core.model.events import Event
from core.model.property_values import encode_properties
from core.model.rows import Row, row_table
from core.store.columns import instant_text

if TYPE_CHECKING:
    from tests.fakes.store import Store


@dataclass(frozen=True, slots=True)
class KeptRow:
    """A row and its origin; `ordinal` is None for a state."""

    stream_id: int
    partition_id: str
    sequence_number: int
    ordinal: int | None
    commit_number: int
    row: Row


@dataclass(frozen=True, slots=True)
class KeptLetter:
    stream_id: int
    partition_id: str
    sequence_number: int
    offset: str
    enqueued_at: datetime
    partition_key: str | None
    properties: Mapping[str, object]
    body: bytes
    error_class: str
    error_type: str
    error: str
    fingerprint: str
    transform_version: str
    status: str
    attempts: int
    due_at: datetime | None
    failed_at: datetime
    body_kept: bool = True
    lost_claims: int = 0
    claimed_by: str | None = None
    claimed_until: datetime | None = None
    began_at: datetime | None = None
    settled_at: datetime | None = None
    settled_why: str | None = None


@dataclass(frozen=True, slots=True)
class KeptAttempt:
    stream_id: int
    partition_id: str
    sequence_number: int
    attempt: int
    touched_by: str
    kind: str
    status: str
    error_class: str | None
    error: str | None
    commit_number: int | None
    done_by: str
    why: str | None


@dataclass(frozen=True, slots=True)
class KeptRange:
    stream_id: int
    partition_id: str
    commit_number: int
    first: int
    last: int
    written: int
    filtered: int
    dead_lettered: int
    absent: int
    rows_written: int
    transform_version: str
    invocation_id: str
    committed_at: datetime


@dataclass(frozen=True, slots=True)
class KeptRetracted:
    stream_id: int
    partition_id: str
    commit_number: int
    table_name: str
    sequence_number: int
    ordinal: int
    row_commit_number: int
    row: Row

    @staticmethod
    def of(kept: KeptRow, ordinal: int, commit_number: int) -> "KeptRetracted":
        place, table = (kept.stream_id, kept.partition_id), row_table(type(kept.row)).name
        return KeptRetracted(*place, commit_number, table, kept.sequence_number, ordinal, kept.commit_number, kept.row)

    @property
    def position(self) -> tuple[object, ...]:
        place = (self.stream_id, len(self.partition_id), self.partition_id, self.commit_number)
        return (*place, self.table_name, self.sequence_number, self.ordinal)


@dataclass(frozen=True, slots=True)
class KeptGap:
    stream_id: int
    partition_id: str
    first: int
    last: int
    found_at: datetime
    status: str
    attempts: int


STAGED = (
    "stream_id", "partition_id", "sequence_number", "offset_token", "enqueued_at", "partition_key", "properties",
    "body",
)  # fmt: skip


def staged_values(state: PartitionState, event: Event) -> tuple[object, ...]:
    """The values of the STAGED columns of staged_event, as the embedded store has them."""
    place = (state.stream_id, state.partition.partition_id, event.sequence_number)
    properties = encode_properties(event.properties)
    return (*place, event.offset, instant_text(event.enqueued_at), event.partition_key, properties, event.body)


@dataclass(frozen=True, slots=True)
class Dialect:
    """The differences between databases that are right in both; docs/sqlserver.md explains them."""

    pads_texts: bool
    """In a comparison, spaces at the end of a text do not count."""
    limits_texts: bool
    """A column has a length, in units of UTF-16, and refuses a longer text."""


EMBEDDED = Dialect(pads_texts=False, limits_texts=False)
SERVER = Dialect(pads_texts=True, limits_texts=True)


class Engine(Protocol):
    """A database under test: it opens stores, and shows the rows that they wrote, in order of position.

    Each call of `open` returns the store of a different owner. `stage` leaves an event that is staged already as it
    is. `by_hand` runs a statement whose words both engines have.
    """

    @property
    def dialect(self) -> Dialect: ...
    def open(self) -> "Store": ...
    def rows(self, row_class: type) -> list[KeptRow]: ...
    def letters(self) -> list[KeptLetter]: ...
    def ledger(self) -> list[KeptRange]: ...
    def retries(self) -> list[KeptRange]: ...
    def replays(self) -> list[KeptRange]: ...
    def attempts(self) -> list[KeptAttempt]: ...
    def retracted(self) -> list[KeptRetracted]: ...
    def gaps(self) -> list[KeptGap]: ...
    def stage(self, state: PartitionState, events: Iterable[Event]) -> None: ...
    def staged(self) -> list[tuple[str, int]]: ...
    def by_hand(self, statement: str) -> list[tuple[object, ...]]: ...


class PersistentEngine(Engine, Protocol):
    """An engine whose database other processes can open too: tests/fakes/separate.py reads the environment."""

    def environment(self) -> dict[str, str]: ...
