"""Letters by filter, page and cause, from named statements of either engine."""

import json
from collections.abc import Sequence
from dataclasses import replace
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
from core.letters.redrive import RedriveCause, RedriveRange
from core.model.commits import LetterStatus
from core.model.events import PartitionId
from core.model.letters import LetterPosition
from core.model.spans import SequenceNumber, Span
from core.model.values import shown_properties
from core.settle.cause import differing_values
from core.store.columns import instant_of, instant_text
from core.store.decoding import decoded, decoder
from core.store.stream import OneStream

MOST_ATTEMPTS = 500
SAMPLED = 20  # letters of a cause whose values are shown


class LetterListing:
    """The letters of one stream, as operators list and choose them."""

    def __init__(self, stream: OneStream) -> None:
        self._stream = stream

    def find_stream(self) -> int | None:
        """Return the id of the stream whose letters are found; it may have been closed some seconds ago."""
        return self._stream.find()

    def list_letters(self, wanted: LetterFilter, behind: LetterKey, most: int) -> tuple[ListedLetter, ...]:
        """List letters by the narrowest index that fits the filter."""
        name = "list_letters_of_status" if wanted.status else "list_letters"
        name = "list_letters_of_cause" if wanted.fingerprint else name
        found = self._stream.ask(name, **filter_values(wanted), **_key_values(behind), most=most)
        return decoded(ListedLetter, found)

    def group_letters(self, wanted: LetterFilter, most: int) -> tuple[LetterGroup, ...]:
        """Group letters by cause; a group that loses its last letter between the reads is left out."""
        given = filter_values(wanted)
        if wanted.error_class is None and wanted.partition_key is None:
            lean = {name: value for name, value in given.items() if name not in ("error_class", "partition_key")}
            found = self._stream.ask("group_letters", **lean, most=most)
        else:
            found = self._stream.ask("group_letters_of_kind", **given, most=most)
        return self._groups(wanted, found)

    def group_values(self, wanted: LetterFilter, most: int) -> tuple[LetterGroup, ...]:
        """Group the letters of one cause by the values of their messages."""
        return self._groups(wanted, self._stream.ask("group_values", **filter_values(wanted), most=most))

    def _groups(self, wanted: LetterFilter, found: Sequence[Sequence[Any]]) -> tuple[LetterGroup, ...]:
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
        return WholeLetter(letter, offset, shown_properties(properties), decoded(LetterAttempt, attempts))

    def read_letter_body(self, partition_id: PartitionId, sequence_number: SequenceNumber, most: int) -> bytes:
        """Return the first `most` bytes of a letter's body; empty when there is no letter."""
        position = {"partition_id": partition_id, "sequence_number": sequence_number}
        found = self._stream.ask("read_letter_body", **position, most=most)
        return bytes(found[0][0] or b"") if found else b""  # SQLite's SUBSTR of no octets is NULL

    def count_matching(self, wanted: LetterFilter, statuses: Sequence[LetterStatus]) -> int:
        """Count the letters that fit a filter."""
        found = self._stream.ask("count_matching", **filter_values(wanted), statuses=json.dumps(statuses))
        return int(found[0][0]) if found else 0

    def find_matching(
        self, wanted: LetterFilter, statuses: Sequence[LetterStatus], most: int
    ) -> tuple[LetterPosition, ...]:
        """Return the positions of letters that fit a filter; the letters that failed first come first."""
        given = {**filter_values(wanted), "statuses": json.dumps(statuses), "most": most}
        return decoded(LetterPosition, self._stream.ask("find_matching", **given))

    def range_matching(self, wanted: LetterFilter, statuses: Sequence[LetterStatus]) -> tuple[RedriveRange, ...]:
        """Return the letters that fit a filter, as ranges of partitions."""
        found = self._stream.ask("span_matching", **filter_values(wanted), statuses=json.dumps(statuses))
        return tuple(RedriveRange(PartitionId(id), Span(first, last), letters) for id, first, last, letters in found)

    def cause_matching(
        self, wanted: LetterFilter, statuses: Sequence[LetterStatus], most: int
    ) -> tuple[RedriveCause, ...]:
        """Return the largest causes; one that loses its last letter between the reads is left out."""
        given = {**filter_values(wanted), "statuses": json.dumps(statuses), "most": most}
        causes = [(*cause, self._newest(wanted, cause[0], 1)) for cause in self._stream.ask("cause_matching", **given)]
        return tuple(RedriveCause(fingerprint, count, newest[0]) for fingerprint, count, newest in causes if newest)

    def sample_matching(
        self, wanted: LetterFilter, statuses: Sequence[LetterStatus], most: int
    ) -> tuple[ListedLetter, ...]:
        """Return the letters that fit a filter and failed first."""
        positions = self.find_matching(wanted, statuses, most)
        read = [self.read_letter(one.partition_id, one.sequence_number) for one in positions]
        return tuple(whole.letter for whole in read if whole is not None)

    def _newest(self, wanted: LetterFilter, fingerprint: str, most: int = SAMPLED) -> tuple[ListedLetter, ...]:
        """Return the letters of a cause that failed last: of the cause itself, or of a value that the filter names."""
        own = filter_values(replace(wanted, fingerprint=max(fingerprint, wanted.fingerprint or "", key=len)))
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


def filter_values(wanted: LetterFilter) -> dict[str, Any]:
    """Return the parameters of every statement with a filter."""
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
