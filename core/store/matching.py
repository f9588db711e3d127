"""The letters that an operator's request is about: those that fit a filter, or those of a selection."""

import json
from collections.abc import Sequence

from core.letters.listing import LetterFilter
from core.model.commits import LetterStatus
from core.model.events import PartitionId
from core.model.letters import LetterPosition
from core.model.spans import SequenceNumber
from core.store.listing import filter_values
from core.store.named import NamedStream


class LetterMatching:
    """A MatchingStore over one stream of an engine."""

    def __init__(self, stream: NamedStream) -> None:
        self._stream = stream

    def count_matching(self, wanted: LetterFilter, statuses: Sequence[LetterStatus]) -> int:
        """See MatchingStore."""
        found = self._stream.ask("count_matching", **filter_values(wanted), statuses=json.dumps(statuses))
        return int(found[0][0]) if found else 0

    def find_matching(
        self, wanted: LetterFilter, statuses: Sequence[LetterStatus], most: int
    ) -> tuple[LetterPosition, ...]:
        """See MatchingStore."""
        given = {**filter_values(wanted), "statuses": json.dumps(statuses), "most": most}
        return _positions(self._stream.ask("find_matching", **given))

    def find_selected(
        self, positions: Sequence[LetterPosition], statuses: Sequence[LetterStatus]
    ) -> tuple[LetterPosition, ...]:
        """See MatchingStore."""
        named = [{"partition_id": one.partition_id, "sequence_number": one.sequence_number} for one in positions]
        given = {"positions": json.dumps(named), "statuses": json.dumps(statuses)}
        return _positions(self._stream.ask("find_selected", **given))


def _positions(found: list[tuple[str, int]]) -> tuple[LetterPosition, ...]:
    return tuple(LetterPosition(PartitionId(id), SequenceNumber(number)) for id, number in found)
