"""The letters that operators read: by filter and page, by cause, and single letters with all their attempts."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from core.model.commits import ErrorClass, LetterStatus
from core.model.events import PartitionId
from core.model.spans import SequenceNumber
from core.settle.cause import template_of

BEGINNING, END = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
SETTLED: tuple[LetterStatus, ...] = ("resolved", "discarded")
OPEN: tuple[LetterStatus, ...] = ("waiting", "retrying", "held", "exhausted")


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Selects the letters that fit all given fields. `failed_from` is included, `failed_before` is excluded."""

    fingerprint: str | None = None
    status: LetterStatus | None = None
    error_class: ErrorClass | None = None
    partition_id: PartitionId | None = None
    partition_key: str | None = None
    failed_from: datetime = BEGINNING
    failed_before: datetime = END


@dataclass(frozen=True, slots=True)
class LetterKey:
    """The place of a letter in the order of pages: by the time of its failure, then by position."""

    failed_at: datetime
    partition_id: PartitionId
    sequence_number: SequenceNumber


FIRST_PAGE = LetterKey(END, PartitionId(""), SequenceNumber(0))  # all letters come after it


@dataclass(frozen=True, slots=True)
class ListedLetter:
    """A letter without its body; `body_bytes` is the length of a body that was stored.

    A held letter waits for the letter `held_behind`, the one before it of its partition key; other letters have None.
    """

    partition_id: PartitionId
    sequence_number: SequenceNumber
    enqueued_at: datetime
    partition_key: str | None
    error_class: ErrorClass
    error_type: str
    error: str
    error_at: str | None
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
    held_behind: SequenceNumber | None = None

    @property
    def key(self) -> LetterKey:
        return LetterKey(self.failed_at, self.partition_id, self.sequence_number)


@dataclass(frozen=True, slots=True)
class LetterAttempt:
    """A retry or a move of a letter: the status after it, its author and reason, and the error of a retry."""

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
    """A letter with its attempts and all parts of its event except the body; its properties as JSON that holds tags."""

    letter: ListedLetter
    offset: str
    properties: Mapping[str, object]
    attempts: tuple[LetterAttempt, ...]


@dataclass(frozen=True, slots=True)
class LetterGroup:
    """The letters of one cause, or of one value of it. They have `variants` different values; `sample` is the letter
    that failed last, and `examples` are values of the last ones."""

    fingerprint: str
    letters: int
    variants: int
    settled: int
    retryable: int
    first_failed_at: datetime
    last_failed_at: datetime
    sample: ListedLetter
    examples: tuple[str, ...]

    @property
    def template(self) -> str:
        """The message of the cause, with a gap in place of each value."""
        return template_of(self.sample.error)
