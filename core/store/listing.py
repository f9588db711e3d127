"""Letters by filter, page and cause, from named statements of either engine."""

import json
from typing import Any

from core.letters.listing import (
    FIRST_PAGE,
    LetterAttempt,
    LetterFilter,
    LetterGroup,
    LetterKey,
    ListedLetter,
    WholeLetter,
)
from core.model.events import PartitionId
from core.model.spans import SequenceNumber
from core.store.named import NamedStream, instant_or_none
from core.store.records import instant_of, instant_text

LISTED = 17  # columns of a listed letter
MOST_ATTEMPTS = 500


class LetterListing:
    """A ListingStore over one stream of an engine."""

    def __init__(self, stream: NamedStream) -> None:
        self._stream = stream

    def list_letters(self, wanted: LetterFilter, behind: LetterKey, most: int) -> tuple[ListedLetter, ...]:
        """See ListingStore; by the narrowest index that the filter has a use for."""
        name = "list_letters_of_status" if wanted.status else "list_letters"
        name = "list_letters_of_fingerprint" if wanted.fingerprint else name
        found = self._stream.ask(name, **filter_values(wanted), **_key_values(behind), most=most)
        return tuple(listed_letter(row) for row in found)

    def group_letters(self, wanted: LetterFilter, most: int) -> tuple[LetterGroup, ...]:
        """See ListingStore; a group that lost its last letter while it was read is left out."""
        given = filter_values(wanted)
        if wanted.error_class is None and wanted.partition_key is None:
            lean = {name: value for name, value in given.items() if name not in ("error_class", "partition_key")}
            found = self._stream.ask("group_letters", **lean, most=most)
        else:
            found = self._stream.ask("group_letters_of_kind", **given, most=most)
        groups = []
        for fingerprint, letters, settled, first, last in found:
            own = {**given, "fingerprint": fingerprint}
            sample = self._stream.ask("list_letters_of_fingerprint", **own, **_key_values(FIRST_PAGE), most=1)
            if sample:
                newest = listed_letter(sample[0])
                groups.append(LetterGroup(fingerprint, letters, settled, instant_of(first), instant_of(last), newest))
        return tuple(groups)

    def read_letter(self, partition_id: PartitionId, sequence_number: SequenceNumber) -> WholeLetter | None:
        """See ListingStore."""
        position = {"partition_id": partition_id, "sequence_number": sequence_number}
        found = self._stream.ask("read_letter", **position)
        if not found:
            return None
        attempts = self._stream.ask("read_attempts", **position, most=MOST_ATTEMPTS)
        listed, (offset, properties) = found[0][:LISTED], found[0][LISTED:]
        return WholeLetter(listed_letter(listed), offset, json.loads(properties), tuple(map(_attempt, attempts)))

    def read_letter_body(self, partition_id: PartitionId, sequence_number: SequenceNumber, most: int) -> bytes:
        """See ListingStore."""
        position = {"partition_id": partition_id, "sequence_number": sequence_number}
        found = self._stream.ask("read_letter_body", **position, most=most)
        return bytes(found[0][0]) if found else b""


def filter_values(wanted: LetterFilter) -> dict[str, Any]:
    """What every statement with a filter binds."""
    return {
        "fingerprint": wanted.fingerprint,
        "status": wanted.status,
        "error_class": wanted.error_class,
        "partition_id": wanted.partition_id,
        "partition_key": wanted.partition_key,
        "since_at": instant_text(wanted.failed_from),
        "until_at": instant_text(wanted.failed_before),
    }


def _key_values(key: LetterKey) -> dict[str, Any]:
    return {
        "before_at": instant_text(key.failed_at),
        "before_partition": key.partition_id,
        "before_number": key.sequence_number,
    }


def listed_letter(row: tuple[Any, ...]) -> ListedLetter:
    """One answer of the statements that list letters."""
    values = list(row)
    for at in _INSTANTS:
        values[at] = instant_or_none(values[at])
    values[-1] = bool(values[-1])
    return ListedLetter(*values)


def _attempt(row: tuple[Any, ...]) -> LetterAttempt:
    values = list(row)
    values[-1] = instant_of(values[-1])
    return LetterAttempt(*values)


_INSTANTS = (2, 11, 12, 13)  # columns of a listed letter: enqueued, due, failed, settled
