"""Isolate the events whose rows the database refuses: halve the run until each of them stands alone.

A refused commit says that its run holds at least one bad event. The next commit takes the first half of it. If that is
committed, the bad event is in the other half; if it is refused, in this one: one call halves the suspects, so one bad
event in a run of n costs log2(n) + 1 calls more than its refusal and the commit that stands, and never keeps the others
from committing. From the second bad event on, a commit reaches as far as the last two lay apart, and twice as far after
each success: where most events are bad, most of them are tried alone at once.
"""

from bisect import bisect_left
from dataclasses import dataclass, field
from operator import attrgetter

from core.errors import DataRefused, RowsRefused
from core.model.commits import BatchCommit
from core.model.events import Event
from core.model.rows import References, Row
from core.model.spans import SequenceNumber
from core.model.transform import Transform

MOST_REFUSALS = 200  # in one invocation; what is left is for the host's retry, which drops what was committed


@dataclass(slots=True)
class Isolation:
    """What is known of a batch's refused events.

    `suspects_end` is the number behind the run that surely holds one; `reach` is how many events to try at once
    where none is suspected, None for all.
    """

    refused: dict[SequenceNumber, str] = field(default_factory=dict)
    suspects_end: int = 0
    reach: int | None = None
    refusals: int = 0

    def next_run(self, run: tuple[Event, ...]) -> tuple[Event, ...]:
        """The part of a run to commit next: the first half of the suspects; without any, what is in reach."""
        suspects = bisect_left(run, self.suspects_end, key=attrgetter("sequence_number"))
        return run[: max(1, suspects // 2)] if suspects > 0 else run[: self.reach]

    def note_refusal(self, commit: BatchCommit, fault: DataRefused) -> None:
        """Nothing of this commit was written; raises the fault again when it has been refused too often."""
        self.refusals += 1
        if self.refusals > MOST_REFUSALS:
            raise fault
        last = commit.last.sequence_number
        if commit.events > 1:
            self.suspects_end = last + 1
            return
        if last in self.refused:  # its letter is refused as well: not the rows' fault
            raise fault
        if self.refused:
            self.reach = max(1, last - max(self.refused))
        self.refused[last] = str(fault)
        self.suspects_end = 0

    def note_commit(self, commit: BatchCommit) -> None:
        """This commit stands; one that holds a refused event's letter is no sign of better times."""
        lettered = (letter.event.sequence_number for letter in commit.settled.letters)
        if self.reach is not None and not any(number in self.refused for number in lettered):
            self.reach *= 2

    def around(self, transform: Transform) -> Transform:
        """The same transform, but for the events that stand alone: they are refused with the database's words."""
        if not self.refused:
            return transform

        def rows_of(event: Event, references: References) -> "tuple[Row, ...] | list[Row]":
            words = self.refused.get(event.sequence_number)
            if words is not None:
                raise RowsRefused(words)
            return tuple(transform.rows_of(event, references))

        return Transform(transform.version, rows_of, transform.references_of)
