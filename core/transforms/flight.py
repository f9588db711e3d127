"""The flight record: the events that each process of this machine tries. After a death, the next process reads it.

Each process has a small file in the temp folder, and holds a lock on it for as long as it lives. The file is mapped
into memory: to note a range of events costs no call of the system, and the note outlives the process. A file whose lock
is free is that of a dead process, and the ranges in it are suspects: one of their events may have killed it. The file
then stays for half an hour, the time in which the host of Azure Functions counts the deaths of its worker.

Without such a file (the temp folder is full, read-only or missing) the process goes on, after one line in the log.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.model.events import PartitionId
from core.model.spans import SequenceNumber, Span

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

    `folder` is the folder of the stream, as `flight_folder` names it; None: nothing is recorded.
    """

    def __init__(self, folder: Path | None, now: Callable[[], float] = time.time) -> None:
        self._folder, self._now = folder, now
        self._name = uuid.uuid4().hex if folder else ""
        self._left: list[int] = []
        self._free: list[int] = []
        self._descriptor = -1
        self._memory: Any = b"" if folder is None else self._open(folder)

    def begin(self, partition_id: PartitionId, tried: Span) -> int:
        """Note that events are tried from now on; return the slot of the note."""
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
            return self._go_without(new, fault)
        self._free += [place * SLOT.size for place in reversed(range(SLOTS))]
        return memory

    def _go_without(self, new: Path, fault: Exception) -> bytes:
        facts = {"action": "flight", "folder": str(new.parent), "error": str(fault)}
        log.warning("no flight record; an event that kills may cost one more process", extra=facts)
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)
        return b""

    def _look_at(self, path: Path) -> Iterator[tuple[Suspect, ...]]:
        """Yield the suspects of a death in the window; remove what is too old, or says nothing."""
        if path.stem == self._name or path.suffix not in (NEW, OWN, DEAD):
            return
        if path.suffix == OWN:
            path = _buried(path, self._now())
        is_old = self._now() - path.stat().st_mtime >= WINDOW
        if is_old and path.suffix != OWN:
            path.unlink()
        elif path.suffix == DEAD:
            yield _read(path)


def _buried(path: Path, now: float) -> Path:
    """Return the new name of a dead process's record, whose time is that of its discovery; the old one if it lives.

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
    if not _read(path):
        path.unlink()
    os.utime(path, (now, now))
    return path.rename(path.with_suffix(DEAD))


def _read(path: Path) -> tuple[Suspect, ...]:
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
