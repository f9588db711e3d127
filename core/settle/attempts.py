"""The record of what a process has in hand, so that the next one tries the events of a dead process in a child.

Each process has a small file in the temp folder, and holds a lock on it for as long as it lives. The file is mapped
into memory: to note a range of events costs no call of the system, and the note outlives the process. A file whose lock
is free belongs to a dead process, and the ranges in it are suspects: one of their events may have killed it. The file
then stays for half an hour, the time in which the host of Azure Functions counts the deaths of its worker.

Without such a file (the temp folder is full, read-only or missing) the process goes on, after one line in the log.

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

import contextlib
import hashlib
import logging
import mmap
import os
import struct
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from core.errors import StoreFault
from core.model.commits import PartitionState
from core.model.events import BATCH_EVENTS, Partition, PartitionId, SequenceNumber, Span
from core.model.ports import Clock
from core.model.transforms import Lone, Transform
from core.settle.isolate import Attempt, AttemptRequest, Journal, RunChanged
from core.settle.settle import ChildNotFree, EventKilled
from core.store.columns import cut, decoded, instant_text, place_of, span_values, storable
from core.store.database import Database, write

INVOCATION_LENGTH = 100  # characters of an invocation's id that are stored
VERDICT_LENGTH = 2_000  # characters of a verdict that are stored


@dataclass(frozen=True, slots=True)
class AttemptMark:
    """An attempt at events of a partition. It is stored until they are written.

    All marks of a process have one `attempt_id`: it knows its own marks, and those of others tell of a death. `deaths`
    counts the deaths before the attempt. A `verdict` says how its one event kills under this version of the transform.
    """

    tried: Span
    attempt_id: UUID
    begun_at: datetime
    invocation_id: str
    deaths: int
    transform_version: str
    verdict: str | None


class Attempts:
    """The marks of a partition, one for each last number, without a memory. A marked commit deletes its marks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read_marks(self, state: PartitionState, among: Span) -> tuple[AttemptMark, ...]:
        """Return the marks of a partition that have one of these numbers, in order of their last number."""
        found = self._database.ask("read_marks", **place_of(state), **span_values(among))
        return decoded(AttemptMark, found)

    def begin_attempt(self, state: PartitionState, mark: AttemptMark) -> None:
        """Set a mark, in the place of the one with the same last number."""
        values = {
            **place_of(state),
            **span_values(mark.tried),
            "attempt_id": str(mark.attempt_id),
            "begun_at": instant_text(mark.begun_at),
            "invocation_id": cut(mark.invocation_id, INVOCATION_LENGTH),
            "deaths": mark.deaths,
            "transform_version": mark.transform_version,
            "verdict": None if mark.verdict is None else cut(storable(mark.verdict), VERDICT_LENGTH),
        }
        write(self._database, str(state.partition), "begin_attempt", **values)

    def end_attempt(self, state: PartitionState, last: SequenceNumber, by: UUID, deaths: int | None) -> None:
        """Delete the mark of an attempt. With `deaths`, keep it as the mark of nobody.

        Does nothing when a different process has set one since.
        """
        own = {**place_of(state), "last_sequence_number": last, "attempt_id": str(by)}
        if deaths is None:
            write(self._database, str(state.partition), "end_attempt", **own)
        else:
            write(self._database, str(state.partition), "leave_attempt", **own, deaths=deaths)

    def clear_attempts(self, state: PartitionState, written: Span) -> None:
        """Delete the marks that end in these numbers."""
        write(self._database, str(state.partition), "clear_attempts", **place_of(state), **span_values(written))


log = logging.getLogger("hubledger.flight")
FORM = 1  # of the files; a different form has a different folder
SLOT = struct.Struct("<40sqq")  # partition id, first and last number; without a partition the slot is free
SLOTS = 64  # more attempts at a time than a process has threads
SIZE = SLOTS * SLOT.size
NO_SLOT = -1
LEFT = 8  # ranges of a living process that stay suspects
WINDOW = 1800.0  # seconds: three deaths of its worker in this time end the host
NEW, OWN, DEAD = ".new", ".own", ".dead"

Suspect = tuple[PartitionId, Span]


@dataclass(frozen=True, slots=True)
class Wreckage:
    """The ranges that were in hand at the deaths of the window, and the number of these deaths."""

    suspects: tuple[Suspect, ...] = ()
    deaths: int = 0

    def holds(self, partition_id: PartitionId, tried: Span) -> bool:
        """Return True when a number of this range may have killed a process."""
        return any(id == partition_id and span.overlap(tried) is not None for id, span in self.suspects)


class Flight:
    """The flight record of this process, and of those before it. Several threads may use it. Close it with the app.

    `folder` is the folder of the stream, as `flight_folder` names it. None: nothing is recorded.
    """

    def __init__(self, folder: Path | None, now: Callable[[], float] = time.time) -> None:
        self._folder, self._now = folder, now
        self._name = uuid.uuid4().hex if folder else ""
        self._left: list[int] = []
        self._free: list[int] = []
        self._descriptor = -1
        self._memory: Any = b"" if folder is None else self._open(folder)

    def begin(self, partition_id: PartitionId, tried: Span) -> int:
        """Note that events are tried from now on. Return the slot of the note."""
        try:
            slot = self._free.pop()
        except IndexError:
            return NO_SLOT
        SLOT.pack_into(self._memory, slot, partition_id.encode(), tried.first, tried.last)
        return slot

    def end(self, slot: int) -> None:
        """Note that nothing was wrong with the events of a slot."""
        if slot != NO_SLOT:
            self._memory[slot] = 0
            self._free.append(slot)

    def leave(self, slot: int) -> None:
        """Leave the events of a slot as suspects, although this process has survived them."""
        if slot != NO_SLOT:
            self._left.append(slot)
            if len(self._left) > LEFT:
                self.end(self._left.pop(0))

    def look(self) -> Wreckage:
        """Return the suspects of the processes that died in the window, and of this one."""
        if self._descriptor < 0 or self._folder is None:
            return Wreckage()
        found = [_suspects(self._memory, self._left)]
        with contextlib.suppress(OSError):
            for path in sorted(self._folder.iterdir()):
                with contextlib.suppress(OSError):  # a different process has removed it meanwhile
                    found += self._look_at(path)
        return Wreckage(tuple([one for suspects in found for one in suspects]), len(found) - 1)

    def tell(self, facts: dict[str, object]) -> None:
        """Log that suspects are tried."""
        log.warning("attempt died; its events are tried in a child process", extra=facts)

    def close(self) -> None:
        """Remove the record, unless it has suspects."""
        if self._descriptor >= 0 and self._folder is not None:
            if not self._left:
                (self._folder / (self._name + OWN)).unlink(missing_ok=True)
            self._free.clear()
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)
            with contextlib.suppress(OSError):  # it holds the records of others
                self._folder.rmdir()

    def _open(self, folder: Path) -> "bytes | mmap.mmap":
        new = folder / (self._name + NEW)
        try:
            import fcntl  # here, because Windows has none

            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.write(self._descriptor, bytes(SIZE)) < SIZE:  # a mapped page without room would end the process
                raise OSError("the disk has no room")
            memory = mmap.mmap(self._descriptor, SIZE)
            new.rename(new.with_suffix(OWN))
        except (OSError, ImportError) as fault:
            facts = {"action": "flight", "folder": str(folder), "error": str(fault)}
            log.warning("no flight record; an event that kills may cost one more process", extra=facts)
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1
            with contextlib.suppress(OSError):
                new.unlink(missing_ok=True)
            return b""
        self._free += [place * SLOT.size for place in reversed(range(SLOTS))]
        return memory

    def _look_at(self, path: Path) -> Iterator[tuple[Suspect, ...]]:
        """Yield the suspects of a death in the window. Remove what is too old, or says nothing."""
        if path.stem == self._name or path.suffix not in (NEW, OWN, DEAD):
            return
        if path.suffix == OWN:
            path = _buried(path, self._now())
        is_old = self._now() - path.stat().st_mtime >= WINDOW
        if is_old and path.suffix != OWN:
            path.unlink()
        elif path.suffix == DEAD:
            yield _read_suspects(path)


def _buried(path: Path, now: float) -> Path:
    """Return the new name of a dead process's record, or the old name if the process lives.

    The time of the record becomes the time of its discovery.

    A record without suspects is removed: its process did not die of an event.
    """
    import fcntl

    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return path
    finally:
        os.close(descriptor)
    if not _read_suspects(path):
        path.unlink()
    os.utime(path, (now, now))
    return path.rename(path.with_suffix(DEAD))


def _read_suspects(path: Path) -> tuple[Suspect, ...]:
    content = path.read_bytes()
    return _suspects(content, range(0, SIZE, SLOT.size)) if len(content) == SIZE else ()


def _suspects(content: "bytes | mmap.mmap", slots: "range | list[int]") -> tuple[Suspect, ...]:
    found = [SLOT.unpack_from(content, slot) for slot in slots]
    return tuple(
        [
            (
                PartitionId(id.rstrip(b"\0").decode("ascii", "replace")),
                Span(SequenceNumber(first), SequenceNumber(last)),
            )
            for id, first, last in found
            if id[0]
        ]
    )


def flight_folder(store: str, stream: str) -> Path:
    """Return the folder for the records of a stream in the temp folder, one for each store and each user of the
    machine."""
    key = hashlib.sha256(f"{FORM} {os.path.expanduser('~')} {store} {stream}".encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"hubledger-{key}"


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
        is_alone = asked.tried.first <= asked.isolation.alone_to
        unproven = self._unproven.get((asked.state.partition, asked.caller), BATCH_EVENTS)
        is_marked = unproven > 0 or asked.comes_again or asked.is_suspect or is_alone
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
            return
        written, key = Span(asked.tried.first, attempt.done_to), (asked.state.partition, asked.caller)
        self._unproven[key] = self._unproven.get(key, BATCH_EVENTS) - written.length
        if attempt.is_marked and not attempt.is_cleared:
            with suppress(StoreFault):
                self._store.clear_attempts(asked.state, written)

    def _note_killer(self, asked: AttemptRequest, transform: Transform, killer: EventKilled) -> None:
        """Store the verdict on an event, and raise RunChanged."""
        asked.isolation.note_killer(killer)
        mark = replace(self._mark(asked, transform, 0), tried=Span(killer.number, killer.number), verdict=str(killer))
        self._store.begin_attempt(asked.state, mark)
        raise RunChanged from killer

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
