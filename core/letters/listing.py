"""List dead letters by filter, page and cause."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import structs

from core.model.commits import ErrorClass, LetterStatus
from core.model.events import PartitionId, SequenceNumber, Span
from core.model.letters import (
    LetterKey,
    LetterPosition,
)
from core.model.property_values import shown_properties
from core.model.shapes import Instant, PartitionText, Shape, utc
from core.settle.cause import differing_values, template_of
from core.store.columns import decoded, decoder, instant_of, instant_text
from core.store.database import OneStream

BEGINNING, END = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)


Fingerprint = Annotated[
    str, msgspec.Meta(pattern=r"^[0-9A-Za-z_.-]{1,40}\Z", description="A cause, or one value of it.")
]
PartitionKeyText = Annotated[str, msgspec.Meta(max_length=2_000)]


class LetterChoice(Shape):
    """The letters that fit every given field. A filter by partition key reveals whether a key has letters, and so does
    one by the hash of the values of a message."""

    REVEALING = ("partition_key",)
    MARKED: ClassVar = {"fingerprint": "."}

    status: LetterStatus | None = None
    error_class: ErrorClass | None = None
    fingerprint: Fingerprint | None = None
    partition_id: PartitionText | None = None
    failed_from: Instant | None = None
    failed_before: Instant | None = None  # excluded, while `failed_from` is included
    partition_key: PartitionKeyText | None = None


def filter_of(given: LetterChoice, where: str = "") -> LetterChoice:
    """Return the filter of a request with its instants in UTC. `where` is its place in the body."""
    own = {name: getattr(given, name) for name in LetterChoice.__struct_fields__}
    instants = {name: utc(own[name], f"{where}{name}") for name in ("failed_from", "failed_before")}
    return LetterChoice(**own | instants)


FIRST_PAGE = LetterKey(END, PartitionId(""), SequenceNumber(0))  # all letters come after it


@dataclass(frozen=True, slots=True)
class ListedLetter:
    """A letter without its body. `body_bytes` is the length of a body that was stored.

    A held letter waits for the letter `held_behind`, the one before it of its partition key. Other letters have None.
    `erased_by` is the erasure that blanked it.
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
    erased_by: str | None = None

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
    """A letter with its attempts and all parts of its event except the body. Its properties are JSON with tags."""

    letter: ListedLetter
    offset: str
    properties: Mapping[str, object]
    system_properties: Mapping[str, object]
    attempts: tuple[LetterAttempt, ...]


@dataclass(frozen=True, slots=True)
class LetterGroup:
    """The letters of one cause, or of one value of it. They have `variants` different values.

    `sample` is the letter that failed last, and `examples` are values of the last letters.
    """

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


MOST_ATTEMPTS = 500
SAMPLED = 20  # letters of a cause whose values are shown


@dataclass(frozen=True, slots=True)
class RedriveCause:
    """The letters of one cause that a job would move. `sample` is one letter of the cause."""

    fingerprint: str
    letters: int
    sample: ListedLetter


@dataclass(frozen=True, slots=True)
class RedriveRange:
    """The letters of one partition at the request, with the `numbers` of a selection, or None for a filter."""

    partition_id: PartitionId
    span: Span
    letters: int
    numbers: tuple[SequenceNumber, ...] | None = None


class LetterListing:
    """The letters of one stream, as operators list and choose them."""

    def __init__(self, stream: OneStream) -> None:
        self._stream = stream

    def find_stream(self) -> int | None:
        """Return the id of the stream whose letters are found. It may have been closed some seconds ago."""
        return self._stream.find()

    def list_letters(self, wanted: LetterChoice, behind: LetterKey, most: int) -> tuple[ListedLetter, ...]:
        """List letters by the narrowest index that fits the filter."""
        name = "list_letters_of_status" if wanted.status else "list_letters"
        name = "list_letters_of_cause" if wanted.fingerprint else name
        found = self._stream.ask(name, **filter_values(wanted), **_key_values(behind), most=most)
        return decoded(ListedLetter, found)

    def group_letters(self, wanted: LetterChoice, most: int) -> tuple[LetterGroup, ...]:
        """Group letters by cause. A group that loses its last letter between the reads is left out."""
        given = filter_values(wanted)
        if wanted.error_class is None and wanted.partition_key is None:
            lean = {name: value for name, value in given.items() if name not in ("error_class", "partition_key")}
            found = self._stream.ask("group_letters", **lean, most=most)
        else:
            found = self._stream.ask("group_letters_of_kind", **given, most=most)
        return self._groups(wanted, found)

    def group_values(self, wanted: LetterChoice, most: int) -> tuple[LetterGroup, ...]:
        """Group the letters of one cause by the values of their messages."""
        return self._groups(wanted, self._stream.ask("group_values", **filter_values(wanted), most=most))

    def _groups(self, wanted: LetterChoice, found: Sequence[Sequence[Any]]) -> tuple[LetterGroup, ...]:
        groups = []
        for fingerprint, letters, variants, settled, retryable, first, last in found:
            if newest := self._newest(wanted, fingerprint):
                times, examples = (instant_of(first), instant_of(last)), differing_values([one.error for one in newest])
                counts = (fingerprint, letters, variants, settled, retryable)
                groups.append(LetterGroup(*counts, *times, newest[0], examples))
        return tuple(groups)

    def read_letter(self, partition_id: PartitionId, sequence_number: SequenceNumber) -> WholeLetter | None:
        """Return one letter with all its attempts."""
        position = {"partition_id": partition_id, "sequence_number": sequence_number}
        found = self._stream.ask("read_letter", **position)
        if not found:
            return None
        attempts = self._stream.ask("read_attempts", **position, most=MOST_ATTEMPTS)
        *listed, offset, properties = found[0]
        letter = decoder(ListedLetter)(listed)
        return WholeLetter(letter, offset, *shown_properties(properties), decoded(LetterAttempt, attempts))

    def read_letter_body(self, partition_id: PartitionId, sequence_number: SequenceNumber, most: int) -> bytes:
        """Return the first `most` bytes of a letter's body. They are empty when there is no letter."""
        position = {"partition_id": partition_id, "sequence_number": sequence_number}
        found = self._stream.ask("read_letter_body", **position, most=most)
        return bytes(found[0][0] or b"") if found else b""  # SQLite's SUBSTR of no octets is NULL

    def count_matching(self, wanted: LetterChoice, statuses: Sequence[LetterStatus]) -> int:
        """Count the letters that fit a filter."""
        found = self._stream.ask("count_matching", **filter_values(wanted), statuses=json.dumps(statuses))
        return int(found[0][0]) if found else 0

    def find_matching(
        self, wanted: LetterChoice, statuses: Sequence[LetterStatus], most: int
    ) -> tuple[LetterPosition, ...]:
        """Return the positions of letters that fit a filter. The letters that failed first come first."""
        given = {**filter_values(wanted), "statuses": json.dumps(statuses), "most": most}
        return decoded(LetterPosition, self._stream.ask("find_matching", **given))

    def range_matching(self, **given: str | None) -> tuple[RedriveRange, ...]:
        """Return the letters that fit the values of a filter, as ranges of partitions."""
        found = self._stream.ask("span_matching", **given)
        return tuple(RedriveRange(PartitionId(id), Span(first, last), letters) for id, first, last, letters in found)

    def cause_matching(
        self, wanted: LetterChoice, statuses: Sequence[LetterStatus], most: int
    ) -> tuple[RedriveCause, ...]:
        """Return the largest causes. A cause that loses its last letter between the reads is left out."""
        given = {**filter_values(wanted), "statuses": json.dumps(statuses), "most": most}
        causes = [(*cause, self._newest(wanted, cause[0], 1)) for cause in self._stream.ask("cause_matching", **given)]
        return tuple(RedriveCause(fingerprint, count, newest[0]) for fingerprint, count, newest in causes if newest)

    def sample_matching(
        self, wanted: LetterChoice, statuses: Sequence[LetterStatus], most: int
    ) -> tuple[ListedLetter, ...]:
        """Return the letters that fit a filter and failed first."""
        positions = self.find_matching(wanted, statuses, most)
        read = [self.read_letter(one.partition_id, one.sequence_number) for one in positions]
        return tuple(whole.letter for whole in read if whole is not None)

    def _newest(self, wanted: LetterChoice, fingerprint: str, most: int = SAMPLED) -> tuple[ListedLetter, ...]:
        """Return the letters of a cause that failed last: of the cause itself, or of a value that the filter names."""
        own = filter_values(structs.replace(wanted, fingerprint=max(fingerprint, wanted.fingerprint or "", key=len)))
        return decoded(
            ListedLetter, self._stream.ask("list_letters_of_cause", **own, **_key_values(FIRST_PAGE), most=most)
        )

    def find_selected(
        self, positions: Sequence[LetterPosition], statuses: Sequence[LetterStatus]
    ) -> tuple[LetterPosition, ...]:
        """Return those of these positions that have a letter in one of these statuses."""
        named = [{"partition_id": one.partition_id, "sequence_number": one.sequence_number} for one in positions]
        given = {"positions": json.dumps(named), "statuses": json.dumps(statuses)}
        return decoded(LetterPosition, self._stream.ask("find_selected", **given))


def filter_values(wanted: LetterChoice) -> dict[str, Any]:
    """Return the parameters of every statement with a filter."""
    return {
        "fingerprint": wanted.fingerprint,
        "status": wanted.status,
        "error_class": wanted.error_class,
        "partition_id": wanted.partition_id,
        "partition_key": wanted.partition_key,
        "since_at": instant_text(wanted.failed_from or BEGINNING),
        "until_at": instant_text(wanted.failed_before or END),
    }


def _key_values(key: LetterKey) -> dict[str, Any]:
    return {
        "before_at": instant_text(key.failed_at),
        "before_partition": key.partition_id,
        "before_number": key.sequence_number,
    }
