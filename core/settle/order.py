"""Keep the events of a partition key in order: while one of them is an open letter, the later ones are held."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from core.errors import EarlierLetterOpen
from core.model.commits import DeadLetter, ErrorClass, error_type
from core.model.events import Event, order_key
from core.model.spans import SequenceNumber


@dataclass(frozen=True, slots=True)
class OpenLetter:
    """An open letter that later events of its partition key wait for."""

    sequence_number: SequenceNumber
    error_class: ErrorClass


class KeyOrder:
    """The last open letter of each partition key, while a run is settled event by event.

    `discarded` events stay discarded when they fail again, so no event waits for them.
    """

    __slots__ = ("_discarded", "last")

    def __init__(self, last: Mapping[str, OpenLetter], discarded: AbstractSet[SequenceNumber] = frozenset()) -> None:
        self.last = dict(last)
        self._discarded = discarded

    def hold(self, event: Event) -> DeadLetter | None:
        """Return the held letter of an event whose key has an open letter, or None: the event can be tried."""
        key = order_key(event)
        earlier = None if key is None else self.last.get(key)
        if earlier is None:
            return None
        held = _held_letter(event, earlier)
        self.note(held)
        return held

    def note(self, letter: DeadLetter) -> None:
        """Let the later events of its key wait for this letter."""
        key, number = order_key(letter.event), letter.event.sequence_number
        if key is not None and number not in self._discarded:
            self.last[key] = OpenLetter(number, letter.error_class)


def _held_letter(event: Event, earlier: OpenLetter) -> DeadLetter:
    number = earlier.sequence_number
    return DeadLetter(
        event=event,
        error_class=earlier.error_class,
        error_type=error_type(EarlierLetterOpen),
        error=f"event {number} of the same partition key is an open letter: this event is tried after it",
        fingerprint="held",
        status="held",
        held_behind=number,
    )
