"""Read a range as pieces: events from the hub in one go, and what letters kept or a job staged."""

from collections.abc import Generator
from itertools import islice

from core.model.commits import PartitionState
from core.model.events import Event
from core.model.spans import SequenceNumber, Span
from core.replay.pieces import Piece
from core.replay.port import ReplayStore

PIECE = 500  # events, each piece its own transaction: as many as a batch of the trigger


class PieceReader:
    """Cuts what is left of a range into pieces; a number that no letter, nothing staged and not the hub has is gone.

    Where several have an event, the letter's is taken, for it is the one that failed; then the staged one.
    """

    def __init__(
        self, store: ReplayStore, state: PartitionState, events: Generator[Event, None, None], most: int = PIECE
    ) -> None:
        self._store = store
        self._state = state
        self._events = events
        self._most = most
        self._read: list[Event] = []  # of the hub, and not in a piece yet

    def next_piece(self, left: Span) -> Piece:
        """The events of the first part of a range that is not empty; it begins where the piece before ended."""
        self._read += islice(self._events, self._most - len(self._read))
        last = self._read[-1].sequence_number if len(self._read) == self._most else left.last
        kept = self._store.read_kept_events(self._state, Span(left.first, last), self._most)
        if len(kept) == self._most:
            last = min(last, kept[-1].sequence_number)
        found = {event.sequence_number: event for event in (*self._read, *kept) if event.sequence_number <= last}
        numbers = sorted(found)
        if len(numbers) > self._most:
            last = numbers[self._most - 1]
        self._read = [event for event in self._read if event.sequence_number > last]
        events = tuple([found[number] for number in numbers[: self._most]])
        return Piece(Span(left.first, SequenceNumber(last)), events)

    def close(self) -> None:
        """Let the hub go."""
        self._events.close()
