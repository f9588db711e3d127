"""Letters as an operator looks at them: by filter and page, by cause, and one whole."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from core.model.commits import ErrorClass, LetterStatus
from core.model.events import PartitionId
from core.model.spans import SequenceNumber

BEGINNING, END = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
SETTLED: tuple[LetterStatus, ...] = ("resolved", "discarded")
OPEN: tuple[LetterStatus, ...] = ("waiting", "retrying", "held", "exhausted")


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Which letters are meant: those that fit all that is given; times are of the failure, the second one excluded."""

    fingerprint: str | None = None
    status: LetterStatus | None = None
    error_class: ErrorClass | None = None
    partition_id: PartitionId | None = None
    partition_key: str | None = None
    failed_from: datetime = BEGINNING
    failed_before: datetime = END


@dataclass(frozen=True, slots=True)
class LetterKey:
    """Where a letter stands in the order of pages: by the time it failed, then by position."""

    failed_at: datetime
    partition_id: PartitionId
    sequence_number: SequenceNumber


FIRST_PAGE = LetterKey(END, PartitionId(""), SequenceNumber(0))  # all letters come behind it


@dataclass(frozen=True, slots=True)
class ListedLetter:
    """A letter without its body; `body_bytes` is how long that is, where it was kept."""

    partition_id: PartitionId
    sequence_number: SequenceNumber
    enqueued_at: datetime
    partition_key: str | None
    error_class: ErrorClass
    error_type: str
    error: str
    fingerprint: str
    transform_version: str
    status: LetterStatus
    attempts: int
    due_at: datetime | None
    failed_at: datetime
    settled_at: datetime | None
    settled_why: str | None
    body_bytes: int
    body_kept: bool

    @property
    def key(self) -> LetterKey:
        """Its place in the order of pages."""
        return LetterKey(self.failed_at, self.partition_id, self.sequence_number)


@dataclass(frozen=True, slots=True)
class LetterAttempt:
    """What was tried with a letter, or asked of it: what it became, by whom and why, and the error of a retry."""

    attempt: int
    kind: str
    status: str
    error_class: str | None
    error_type: str | None
    error: str | None
    transform_version: str
    commit_number: int | None
    done_by: str
    why: str | None
    done_at: datetime


@dataclass(frozen=True, slots=True)
class WholeLetter:
    """A letter with what its event carried beside the body, and its attempts."""

    letter: ListedLetter
    offset: str
    properties: Mapping[str, object]
    attempts: tuple[LetterAttempt, ...]


@dataclass(frozen=True, slots=True)
class LetterGroup:
    """The letters of one cause; `sample` is the one that failed last."""

    fingerprint: str
    letters: int
    settled: int
    first_failed_at: datetime
    last_failed_at: datetime
    sample: ListedLetter


class ListingStore(Protocol):
    """What a store tells of the letters of its stream. Every method reads what is committed, in one statement."""

    def list_letters(self, wanted: LetterFilter, behind: LetterKey, most: int) -> tuple[ListedLetter, ...]:
        """Letters behind a key, those that failed last first."""
        ...

    def group_letters(self, wanted: LetterFilter, most: int) -> tuple[LetterGroup, ...]:
        """The largest groups of one cause."""
        ...

    def read_letter(self, partition_id: PartitionId, sequence_number: SequenceNumber) -> WholeLetter | None:
        """One letter."""
        ...

    def read_letter_body(self, partition_id: PartitionId, sequence_number: SequenceNumber, most: int) -> bytes:
        """The first `most` octets of a letter's body; empty where there is no letter."""
        ...
