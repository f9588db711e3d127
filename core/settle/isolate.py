"""Isolate the events that fail their whole run: those whose rows the database refuses, and those that kill.

A run whose rows the database refuses is halved until each bad event is alone.

A refused transaction shows that its run holds at least one bad event. The next transaction takes the first half of that
run. If it is committed, the bad event is in the other half. If it is refused, the bad event is in this half. Each call
halves the suspects. One bad event in a run of n therefore costs log2(n) + 1 calls besides the first refusal and the
last commit, and all other events are committed. From the second bad event on, a transaction takes as many events as lay
between the last two bad ones, and twice as many after each success: where many events are bad, they are soon tried
alone.

An event that kills is known by its number. The next run ends with it: it is a letter there, and is not tried again.
Where even the deaths of child processes name no event, the events are tried one at a time.

Every caller of a transform (a batch, a retry, a replay) opens an attempt of the `Journal`, and tries the transform that
the attempt gives.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, Protocol, TypeVar

from core.errors import DataRefused, InfrastructureFault, ProcessDied, RowsRefused
from core.model.commits import PartitionState
from core.model.events import Event, SequenceNumber, Span, number_of
from core.model.rows import ReferenceKey, References, Row
from core.model.transforms import Transform
from core.settle.settle import EventKilled

LONGEST = 240.0  # seconds: the host ends an invocation after ten minutes


class Numbered(Protocol):
    """An event, or a letter of one."""

    @property
    def sequence_number(self) -> SequenceNumber: ...


Item = TypeVar("Item", bound=Numbered)


@dataclass(slots=True)
class Isolation:
    """The refused events found so far, and the place of the next suspects. Runs are in order of sequence number.

    `suspects_end` is the number after the run that is known to hold a bad event. `reach` is the number of events to try
    at once when none is suspected. None: all. After `limit` refusals the fault goes to the caller. None: never.
    `killed` are the events that kill, with the words of their letters, and the newest of them ends the next run. Up to
    the number `alone_to`, events are tried one at a time. When the children that events ended have lived for longer
    than LONGEST together, the caller has to come again for the events after them.
    """

    limit: int | None = None
    refused: dict[SequenceNumber, str] = field(default_factory=dict)
    killed: dict[SequenceNumber, str] = field(default_factory=dict)
    alone_to: int = -1
    spent: float = 0.0  # seconds of the children that were killed
    suspects_end: int = 0
    reach: int | None = None
    refusals: int = 0

    def next_run(self, run: tuple[Item, ...]) -> tuple[Item, ...]:
        """Return the part of a run to try next: the first half of the suspects, or all events in reach if none are."""
        to_killer = run[: bisect_right(run, max(self.killed, default=-1), key=number_of)]
        if self.spent > LONGEST and not to_killer:
            raise InfrastructureFault(f"events that hang took {self.spent:.0f} s; the next try goes on after them")
        if not to_killer and run and run[0].sequence_number <= self.alone_to:
            return run[:1]
        run = to_killer or run
        suspects = bisect_left(run, self.suspects_end, key=number_of)
        return run[: max(1, suspects // 2)] if suspects > 0 else run[: self.reach]

    def note_refusal(self, run: Sequence[Numbered], fault: DataRefused) -> None:
        """Note that nothing of this run was written.

        Raises the fault again after too many refusals. Also raises it when an event is refused alone although it is
        already a letter: then its rows are not the cause.
        """
        self.refusals += 1
        if not run or (self.limit is not None and self.refusals > self.limit):
            raise fault
        last = run[-1].sequence_number
        if len(run) > 1:
            self.suspects_end = last + 1
            return
        if last in self.refused:
            raise fault
        if self.refused:
            self.reach = max(1, last - max(self.refused))
        self.refused[last] = str(fault)
        self.suspects_end = 0

    def note_killer(self, killer: EventKilled) -> None:
        """Note that nothing was written of the run of an event that kills."""
        self.killed[killer.number] = str(killer)
        self.spent += killer.seconds

    def has_passed(self, tried: Span) -> bool:
        """Return True for the run that ends with an event that kills: a child has tried all events before it."""
        return bool(self.killed) and tried.last <= max(self.killed)

    def note_commit(self, run: Iterable[Numbered]) -> None:
        """Note that this run was committed, and double the reach unless the run holds a refused event."""
        if self.reach is not None and not any(one.sequence_number in self.refused for one in run):
            self.reach *= 2

    def around(self, transform: Transform) -> Transform:
        """Return the transform with one change: it refuses the isolated events, with the reason of each."""
        if not self.refused and not self.killed:
            return transform
        ask = transform.references_of

        def rows_of(event: Event, references: References) -> Iterable[Row]:
            if (words := self.killed.get(event.sequence_number)) is not None:
                raise ProcessDied(words)
            if (words := self.refused.get(event.sequence_number)) is not None:
                raise RowsRefused(words)
            return transform.rows_of(event, references)

        def references_of(event: Event) -> Iterable[ReferenceKey]:
            return () if ask is None or event.sequence_number in self.killed else ask(event)

        return replace(transform, rows_of=rows_of, references_of=None if ask is None else references_of)


class RunChanged(Exception):
    """The isolation has learned something about the run of an attempt. Nothing was written: take the next run."""


def nothing_new() -> None:
    """Find no other owner."""


@dataclass(frozen=True, slots=True)
class AttemptRequest:
    """The events that a caller is about to try.

    `comes_again`: an attempt before this one may have died. `is_suspect`: the caller knows that they may kill.
    `look_again` raises the caller's conflict when another owner has done the work meanwhile.
    """

    caller: Literal["batch", "retry", "replay"]
    state: PartitionState
    tried: Span
    isolation: Isolation
    invocation_id: str = ""
    comes_again: bool = False
    is_suspect: bool = False
    look_again: Callable[[], None] = nothing_new


@dataclass(slots=True)
class Attempt:
    """One attempt at events: the transform to try them with, and its outcome.

    `is_marked`: it has a mark in the store. `done_to` is the last number that was written. `is_cleared`: the commit
    deletes the mark.
    """

    transform: Transform
    is_marked: bool = False
    done_to: SequenceNumber | None = None
    is_cleared: bool = False


class Journal:
    """Records attempts at events. This class itself records none, and suspects no event."""

    def attempt(self, asked: AttemptRequest, transform: Transform) -> AbstractContextManager[Attempt]:
        """Begin an attempt. The caller sets `done_to` when the outcome is written.

        Raises RunChanged, also at the beginning, ChildNotStarted and the conflict of `look_again`.
        """
        if asked.is_suspect:
            asked.look_again()
        return nullcontext(Attempt(transform))

    def has_in_hand(self, state: PartitionState, since: datetime) -> bool:
        """Return True while an attempt tries suspects of a partition, or another process began one since a time."""
        return False


NOT_JOURNALED = Journal()
