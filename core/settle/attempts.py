"""Record attempts at events in SQL, so that the events of a dead process are tried in a child process.

Every caller of a transform opens an attempt: a batch, a retry, a replay and its dry run. An attempt leaves a mark with
its numbers until its process has written as many numbers in a row, of the partition and for this caller, as one batch
may hold. A number that a different owner wrote begins a new row. An attempt leaves a mark too when its caller says that
it comes again: the attempt before it may have died. The end of the attempt deletes the mark. A mark that stays tells of
a death. It is a row in SQL, because a container that ends takes its disk along.

An attempt runs in a child process when a death may be near:

* a process died with one of its numbers in hand, as a mark or the caller says,
* a different process has left a mark in the stream within half an hour, and before this process began,
* it comes again, and its process has written nothing of the partition for this caller yet,
* its process has found an event that kills, or has run out of memory, within half an hour.

An event that kills in a child becomes a mark with the words of its letter before anything else happens. So no second
death takes this verdict, and the next run ends with the letter, without a child. The mark of a range counts the deaths.
A killer may take its parent along: after the third death the events are tried one at a time, each with a mark, so that
a death names its event.

The host of Azure Functions ends after three deaths of its worker in half an hour.
"""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from core.errors import CheckpointConflict, StoreFault
from core.model.commits import PartitionState
from core.model.events import BATCH_EVENTS, Partition, PartitionId, SequenceNumber, Span
from core.model.ports import Clock
from core.model.transforms import InChild, Transform
from core.settle.isolate import Attempt, AttemptRequest, Journal, RunChanged
from core.settle.settle import ChildNotFree, EventKilled
from core.store.columns import cut, decoded, instant_text, place_of, span_values, storable
from core.store.database import Database, write

log = logging.getLogger("hubledger.attempts")
VERDICT_LENGTH = 2_000  # characters of a verdict that are stored
WINDOW = timedelta(minutes=30)  # in which three deaths of its worker end the host
ALONE = 3  # deaths with a range in hand; from the last one of them on, its events are tried one at a time
NOBODY = UUID(int=0)  # in a mark that was put back: it counts deaths, and no attempt has it in hand
TAKES_PARENT = "the process of the app died when it tried this event alone, after it had died with it in hand before"


@dataclass(frozen=True, slots=True)
class AttemptMark:
    """An attempt at events of a partition. It is stored until they are written.

    All marks of a process have one `attempt_id`: it knows its own marks, and those of others tell of a death. `deaths`
    counts the deaths before the attempt. A `verdict` says how its one event kills under this version of the transform.
    """

    partition_id: PartitionId
    tried: Span
    attempt_id: UUID
    begun_at: datetime
    deaths: int
    transform_version: str
    verdict: str | None = None


class Attempts:
    """The marks of a stream, one for each partition and last number. A marked commit deletes its marks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read_marks(self, state: PartitionState) -> tuple[AttemptMark, ...]:
        """Return the marks of all partitions of a stream, in order of partition and last number."""
        return decoded(AttemptMark, self._database.ask("read_marks", stream_id=state.stream_id))

    def begin_attempt(self, state: PartitionState, mark: AttemptMark) -> None:
        """Set a mark, in the place of the one with the same last number."""
        values = {
            **place_of(state),
            **span_values(mark.tried),
            "attempt_id": str(mark.attempt_id),
            "begun_at": instant_text(mark.begun_at),
            "deaths": mark.deaths,
            "transform_version": mark.transform_version,
            "verdict": None if mark.verdict is None else cut(storable(mark.verdict), VERDICT_LENGTH),
        }
        write(self._database, str(state.partition), "begin_attempt", **values)

    def end_attempt(self, state: PartitionState, last: SequenceNumber, by: UUID) -> None:
        """Delete the mark of an attempt, unless a different process has set one since."""
        own = {**place_of(state), "last_sequence_number": last, "attempt_id": str(by)}
        write(self._database, str(state.partition), "end_attempt", **own)

    def clear_attempts(self, state: PartitionState, written: Span) -> None:
        """Delete the marks that end in these numbers."""
        write(self._database, str(state.partition), "clear_attempts", **place_of(state), **span_values(written))


@dataclass(frozen=True, slots=True)
class _Proof:
    """Numbers that a process wrote in a row: the last one, and how many are left until it is not suspicious."""

    last: SequenceNumber
    left: int


class StoredJournal(Journal):
    """The journal of a process, with its marks in the store. `in_child` gives the transform that runs in a child."""

    def __init__(self, store: Attempts, clock: Clock, in_child: InChild) -> None:
        self._store = store
        self._clock = clock
        self._in_child = in_child
        self._own = clock.new_id()  # in the marks of this process
        self._proofs: dict[tuple[Partition, str], _Proof] = {}
        self._owed: list[tuple[PartitionState, SequenceNumber]] = []  # own marks that could not be taken back
        self._in_hand: list[tuple[Partition, Span]] = []  # suspects that attempts of this process try
        self._in_child_until = datetime.min.replace(tzinfo=UTC)
        self._began: datetime | None = None  # its first look: later marks are of processes that live beside it

    @contextmanager
    def attempt(self, asked: AttemptRequest, transform: Transform) -> Iterator[Attempt]:
        """Begin an attempt. A suspicious one leaves a mark, and runs in a child when a death may be near."""
        if asked.isolation.has_passed(asked.tried):
            yield from self._tried(asked, Attempt(transform, is_marked=True), 0, is_near=True)
            return
        is_alone = asked.tried.first <= asked.isolation.alone_to
        is_marked = self._left(asked) > 0 or asked.comes_again or asked.is_suspect or is_alone
        self._take_back_owed()
        deaths, is_near = self._look(asked, transform) if is_marked else (0, False)
        is_new = asked.comes_again and (asked.state.partition, asked.caller) not in self._proofs
        with ExitStack() as stack:
            if deaths:
                stack.enter_context(self._having(asked.state.partition, asked.tried))
            if deaths or is_near or is_new or self._clock.now() < self._in_child_until:
                transform = stack.enter_context(self._in_child(transform, asked.look_again))
            if deaths:
                asked.look_again()
            if is_marked:
                self._store.begin_attempt(asked.state, self._mark(asked, transform, deaths))
            yield from self._tried(asked, Attempt(transform, is_marked), deaths, is_near)

    def has_in_hand(self, state: PartitionState, since: datetime) -> bool:
        """Return True while this process tries suspects of a partition, or another process began one since a time."""
        if any(partition == state.partition for partition, _ in self._in_hand):
            return True
        return any(
            mark.partition_id == state.partition.partition_id
            and mark.tried.last >= state.next_number
            and self._is_foreign(mark, since)
            for mark in self._store.read_marks(state)
        )

    def _left(self, asked: AttemptRequest) -> int:
        """Return how many numbers the process has to write in a row until it is not suspicious."""
        row, known = self._proofs.get((asked.state.partition, asked.caller)), asked.state.checkpoint
        if row is None or row.last not in (asked.tried.first - 1, known and known.sequence_number):
            return BATCH_EVENTS
        return row.left

    def _is_foreign(self, mark: AttemptMark, since: datetime) -> bool:
        """Return True for the mark of a different process that began its attempt after a time."""
        return mark.attempt_id not in (self._own, NOBODY) and mark.begun_at > since

    def _look(self, asked: AttemptRequest, transform: Transform) -> tuple[int, bool]:
        """Return the number of deaths with one of these numbers in hand, and True when a death may be near.

        Raises RunChanged when a mark names an event that kills, and when the events are to be tried one at a time.
        """
        tried, isolation = asked.tried, asked.isolation
        now, deaths, is_near = self._clock.now(), int(asked.is_suspect), False
        self._began = self._began or now
        for mark in self._store.read_marks(asked.state):
            is_near = is_near or (mark.begun_at <= self._began and self._is_foreign(mark, now - WINDOW))
            if mark.partition_id != asked.state.partition.partition_id or mark.tried.overlap(tried) is None:
                continue
            if mark.verdict is None:
                deaths = max(deaths, mark.deaths + (mark.attempt_id != self._own))
                if mark.tried.length == 1 and mark.deaths >= ALONE and mark.attempt_id not in (self._own, NOBODY):
                    self._note_killer(asked, transform, EventKilled(mark.tried.first, TAKES_PARENT))
            elif mark.transform_version == transform.version and mark.tried.first not in isolation.killed:
                isolation.killed[mark.tried.first] = mark.verdict
                raise RunChanged
        if deaths >= ALONE and tried.first > isolation.alone_to:
            isolation.alone_to = tried.last
            self._store.begin_attempt(asked.state, self._mark(asked, transform, deaths))
            raise RunChanged
        if deaths:
            place = {"action": "attempt_died", "partition": str(asked.state.partition), "caller": asked.caller}
            facts = {**place, "invocation_id": asked.invocation_id, "first": tried.first, "last": tried.last}
            log.warning("attempt died; its events are tried in a child process", extra=facts)
        return deaths, is_near

    def _tried(self, asked: AttemptRequest, attempt: Attempt, deaths: int, is_near: bool) -> Iterator[Attempt]:
        """Try events. While a death may be near, they are no proof for the events after them."""
        try:
            yield attempt
        except EventKilled as killer:
            self._note_killer(asked, attempt.transform, killer)
        except BaseException as fault:
            has_died = isinstance(fault, MemoryError)
            if has_died:
                self._in_child_until = self._clock.now() + WINDOW
            is_written = isinstance(fault, CheckpointConflict)  # by a different owner, so nothing more is to be counted
            self._put_back(asked, attempt, 0 if is_written else deaths + has_died)
            raise
        if attempt.done_to is None:
            self._put_back(asked, attempt, deaths)
            return
        written, left = Span(asked.tried.first, attempt.done_to), self._left(asked)
        row = _Proof(attempt.done_to, left if is_near else left - written.length)
        self._proofs[asked.state.partition, asked.caller] = row
        if attempt.is_marked and not attempt.is_cleared:
            with suppress(StoreFault):
                self._store.clear_attempts(asked.state, written)

    def _note_killer(self, asked: AttemptRequest, transform: Transform, killer: EventKilled) -> None:
        """Store the verdict on an event, and raise RunChanged."""
        asked.isolation.note_killer(killer)
        self._in_child_until = self._clock.now() + WINDOW
        mark = replace(self._mark(asked, transform, 0), tried=Span(killer.number, killer.number), verdict=str(killer))
        self._store.begin_attempt(asked.state, mark)
        raise RunChanged from killer

    def _put_back(self, asked: AttemptRequest, attempt: Attempt, deaths: int) -> None:
        """Take back the mark of an attempt that has ended, but keep the deaths that it counts.

        The mark of an event that was tried alone would name it, so nothing of it stays. A verdict stays as it is.
        """
        if not attempt.is_marked or asked.isolation.has_passed(asked.tried):
            return
        try:
            if deaths and (asked.tried.length > 1 or deaths < ALONE):
                mark = replace(self._mark(asked, attempt.transform, deaths - 1), attempt_id=NOBODY)
                self._store.begin_attempt(asked.state, mark)
            else:
                self._store.end_attempt(asked.state, asked.tried.last, self._own)
        except StoreFault:
            self._owed.append((asked.state, asked.tried.last))

    def _take_back_owed(self) -> None:
        """Take back the marks of attempts that ended while the store could not be reached: they tell of no death.

        Attempts run side by side, so each takes a mark from the list before it asks the store.
        """
        while self._owed:
            try:
                state, last = self._owed.pop()
            except IndexError:
                return  # a different attempt took the last one
            try:
                self._store.end_attempt(state, last, self._own)
            except StoreFault:
                self._owed.append((state, last))
                return

    def _mark(self, asked: AttemptRequest, transform: Transform, deaths: int) -> AttemptMark:
        id = asked.state.partition.partition_id
        return AttemptMark(id, asked.tried, self._own, self._clock.now(), deaths, transform.version)

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
