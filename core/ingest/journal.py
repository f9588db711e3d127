"""The journal: know which events may have killed a process, and try those in a child process.

Every caller of a transform opens an attempt: a batch, a retry, a replay and its dry run. The attempt notes its numbers
in the flight record of the process, which outlives it. It is suspicious while its process has not written as many
numbers of the partition for this caller as one batch may hold, and when its caller says that it comes again: the
attempt before it may have died. Only such an attempt looks into the flight records of dead processes and at the marks
in the store. It leaves a mark of its own, because a machine may die with its records. Its end deletes the mark.

Numbers that a dead process had in hand are suspects: their transform runs in a child process. An event that kills there
becomes a mark with the words of its letter before anything else happens. So no second death takes this verdict, and the
next run ends with the letter, without a child. The mark of a range counts the deaths. A killer may take its parent
along: after the third death the events are tried one at a time, each with a mark, so that a death names its event.

From the second death in half an hour on, every attempt runs in a child: the host of Azure Functions ends after the
third one. Memory that runs out counts as a death.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from core.errors import StoreFault
from core.ingest.store import AttemptMark, Attempts
from core.model.clock import Clock
from core.model.commits import PartitionState
from core.model.events import BATCH_EVENTS, Partition
from core.model.spans import SequenceNumber, Span
from core.model.transform import Lone, Transform
from core.settle.isolate import Attempt, AttemptRequest, Journal, RunChanged
from core.settle.settle import ChildNotFree, EventKilled
from core.transforms.flight import Flight

CAREFUL = 2  # deaths in the window; from the last one of them on, each attempt runs in a child
ALONE = 3  # deaths with a range in hand; from the last one of them on, its events are tried one at a time
NOBODY = UUID(int=0)  # in a mark that was put back: it counts deaths, and no attempt has it in hand
TAKES_PARENT = "the process of the app died when it tried this event alone, after it had died with it in hand before"


class StoredJournal(Journal):
    """The journal of a process, with its marks in the store.

    `lone` and `careful` give the transform that runs in a child: for suspects, and for any attempt of a careful
    process.
    """

    def __init__(self, store: Attempts, clock: Clock, flight: Flight, lone: Lone, careful: Lone) -> None:
        self._store = store
        self._clock = clock
        self._flight = flight
        self._lone = lone
        self._careful = careful
        self._own = clock.new_id()  # in the marks of this process
        self._unproven: dict[tuple[Partition, str], int] = {}  # numbers left to write until it is not suspicious
        self._in_hand: list[tuple[Partition, Span]] = []  # suspects that attempts of this process try
        self._is_careful = False

    @contextmanager
    def attempt(self, asked: AttemptRequest, transform: Transform) -> Iterator[Attempt]:
        """Begin an attempt. A suspicious one leaves a mark, and suspects run in a child."""
        if asked.isolation.has_passed(asked.tried):
            yield from self._noted(asked, Attempt(transform, is_marked=True))
            return
        is_marked = self._is_suspicious(asked)
        deaths = max(self._deaths(asked, transform), int(asked.is_suspect)) if is_marked else 0
        with ExitStack() as stack:
            if deaths:
                stack.enter_context(self._having(asked.state.partition, asked.tried))
                transform = stack.enter_context(self._lone(transform, asked.look_again))
                asked.look_again()
            elif self._is_careful:
                self._is_careful = self._flight.look().deaths >= CAREFUL
                transform = stack.enter_context(self._careful(transform, asked.look_again))
            if is_marked:
                self._store.begin_attempt(asked.state, self._mark(asked, transform, deaths))
            yield from self._noted(asked, Attempt(transform, is_marked), deaths)

    def has_in_hand(self, state: PartitionState, since: datetime) -> bool:
        """Return True while this process tries suspects of a partition, or another process began one since a time."""
        if any(partition == state.partition for partition, _ in self._in_hand):
            return True
        marks = self._store.read_marks(state, Span(state.next_number, SequenceNumber(2**63 - 1)))
        return any(one.attempt_id not in (self._own, NOBODY) and one.begun_at > since for one in marks)

    def _is_suspicious(self, asked: AttemptRequest) -> bool:
        is_alone = asked.tried.first <= asked.isolation.alone_to
        unproven = self._unproven.get((asked.state.partition, asked.caller), BATCH_EVENTS)
        return unproven > 0 or asked.comes_again or asked.is_suspect or is_alone

    def _deaths(self, asked: AttemptRequest, transform: Transform) -> int:
        """Return the number of deaths with one of these events in hand, and learn what the marks say.

        Raises RunChanged when a mark names an event that kills, and when the events are to be tried one at a time.
        """
        partition, tried, isolation = asked.state.partition, asked.tried, asked.isolation
        wreckage = self._flight.look()
        self._is_careful = wreckage.deaths >= CAREFUL
        deaths = int(wreckage.holds(partition.partition_id, tried))
        for mark in self._store.read_marks(asked.state, tried):
            if mark.verdict is None:
                deaths = max(deaths, mark.deaths + (mark.attempt_id != self._own))
                if mark.tried.length == 1 and mark.deaths >= ALONE and mark.attempt_id not in (self._own, NOBODY):
                    self._note_killer(asked, transform, EventKilled(mark.tried.first, TAKES_PARENT))
            elif mark.transform_version == transform.version and mark.tried.first not in isolation.killed:
                isolation.killed[mark.tried.first] = mark.verdict
                raise RunChanged
        if tried.first <= isolation.alone_to:
            return deaths
        if deaths >= ALONE:
            isolation.alone_to = tried.last
            self._store.begin_attempt(asked.state, self._mark(asked, transform, deaths))
            raise RunChanged
        if deaths:
            place = {"action": "attempt_died", "partition": str(partition), "invocation_id": asked.invocation_id}
            self._flight.tell({**place, "first": tried.first, "last": tried.last, "caller": asked.caller})
        return deaths

    def _noted(self, asked: AttemptRequest, attempt: Attempt, deaths: int = 0) -> Iterator[Attempt]:
        """Try events, with a note in the flight record, and with a mark in the store if the attempt is marked."""
        slot = self._flight.begin(asked.state.partition.partition_id, asked.tried)
        try:
            yield attempt
        except MemoryError:
            self._unproven.pop((asked.state.partition, asked.caller), None)
            self._flight.leave(slot)
            self._put_back(asked, attempt, deaths)
            raise
        except EventKilled as killer:
            self._flight.end(slot)
            self._note_killer(asked, attempt.transform, killer)
        except BaseException:
            self._flight.end(slot)
            self._put_back(asked, attempt, deaths - 1)
            raise
        self._flight.end(slot)
        if attempt.done_to is None:
            self._put_back(asked, attempt, deaths - 1)
        else:
            self._note_end(asked, attempt, Span(asked.tried.first, attempt.done_to))

    def _note_killer(self, asked: AttemptRequest, transform: Transform, killer: EventKilled) -> None:
        """Store the verdict on an event, and raise RunChanged."""
        asked.isolation.note_killer(killer)
        mark = replace(self._mark(asked, transform, 0), tried=Span(killer.number, killer.number), verdict=str(killer))
        self._store.begin_attempt(asked.state, mark)
        raise RunChanged from killer

    def _note_end(self, asked: AttemptRequest, attempt: Attempt, written: Span) -> None:
        """Delete the marks that end in these numbers, and count the numbers as proven."""
        key = (asked.state.partition, asked.caller)
        self._unproven[key] = self._unproven.get(key, BATCH_EVENTS) - written.length
        if attempt.is_marked and not attempt.is_cleared:
            with suppress(StoreFault):
                self._store.clear_attempts(asked.state, written)

    def _put_back(self, asked: AttemptRequest, attempt: Attempt, deaths: int) -> None:
        """Take back the mark of an attempt that has ended, but keep the deaths that it counts.

        The mark of an event that was tried alone would name it, so nothing of it stays. A verdict stays as it is.
        """
        if not attempt.is_marked or asked.isolation.has_passed(asked.tried):
            return
        is_kept = deaths >= 0 and (asked.tried.length > 1 or deaths < ALONE - 1)
        with suppress(StoreFault):
            self._store.end_attempt(asked.state, asked.tried.last, self._own, deaths if is_kept else None)

    def _mark(self, asked: AttemptRequest, transform: Transform, deaths: int) -> AttemptMark:
        return AttemptMark(
            asked.tried, self._own, self._clock.now(), asked.invocation_id, deaths, transform.version, None
        )

    @contextmanager
    def _having(self, partition: Partition, tried: Span) -> Iterator[None]:
        """Have suspects in hand. Raises ChildNotFree while another attempt of this process has one of them."""
        if any(other == partition and one.overlap(tried) for other, one in self._in_hand):
            raise ChildNotFree(f"another attempt tries events {tried.first} to {tried.last} of {partition}")
        self._in_hand.append((partition, tried))
        try:
            yield
        finally:
            self._in_hand.remove((partition, tried))
