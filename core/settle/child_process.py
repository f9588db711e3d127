"""Try events in a child process, so that an event that kills costs a child and no more.

The parent settles such a run as any other, with one change: the functions of its transform ask a child process, event
by event. A child that dies, or that does not answer within the limit, names the event that it was asked about. After a
death, the event is tried once more in a new child, because another event, or a person, may have killed the first one. A
hang is not tried twice. Then EventKilled leaves `settle`, and `Isolation` makes the event a letter.

A child has a socket to its parent, and what the transform prints does not reach that socket. A child has a session of
its own, so a signal to its group leaves the parent. The kernel takes the child first when memory runs out, and ends it
when an event outlasts the limit, even if the parent has died meanwhile.
"""

import contextlib
import json
import logging
import math
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic
from typing import Any

from core.errors import StoreFault
from core.model.commits import DeadLetter
from core.model.events import Event
from core.model.rows import ReferenceKey, References, RowType
from core.model.transforms import Transform, count_unknown_fields, counting_unknown_fields, unwatched
from core.settle.settle import ChildNotFree, ChildNotStarted, EventKilled, LetterOfChild, dead_letter
from core.transforms.loading import load_transform

GRACE = 5.0  # seconds after the limit: the parent, which says more, comes first
REASON = tuple(name for name in DeadLetter.__dataclass_fields__ if name != "event")  # what the parent gets of a letter
OUT_OF_MEMORY = 12  # status of a process without memory: ENOMEM
IDLE = 60  # seconds without an event, after which the process ends


class AskedReferences(References):
    """References that the parent process looks up."""

    __slots__ = ("_alone", "_connection")

    def __init__(self, connection: Connection) -> None:
        super().__init__({})
        self._connection = connection
        self._alone = threading.Lock()  # a transform may have threads, and each needs its own answer

    def find(self, row_class: type[RowType], *key: object) -> RowType | None:
        wanted = ReferenceKey(row_class, key)
        hash(wanted)  # a key that cannot be hashed is a fault of this event
        with self._alone:
            self._connection.send(("find", wanted))
            found: RowType | None = self._connection.recv()
        return found


def serve(connection: Connection, transform: Transform, limit: float) -> None:
    """Answer the parent until it closes the connection, or asks nothing for a while."""
    references = AskedReferences(connection)
    connection.send(("ready", transform.version))
    while True:
        try:
            question, event = connection.recv()
        except (EOFError, BlockingIOError):
            return
        signal.setitimer(signal.ITIMER_REAL, limit + GRACE)
        connection.send_bytes(_pickled_answer(question, event, references, transform))
        signal.setitimer(signal.ITIMER_REAL, 0)


def _pickled_answer(question: str, event: Event, references: References, transform: Transform) -> bytes:
    """Return the rows or the references of an event, or the letter of its error, and the counts of unknown fields."""
    with counting_unknown_fields() as unknown:
        try:
            if question == "references" and transform.references_of is not None:
                return pickle.dumps((question, tuple(transform.references_of(event)), dict(unknown)))
            made = tuple(islice(transform.rows_of(event, references), transform.rows_limit + 1))
            return pickle.dumps((question, made, dict(unknown)))
        except MemoryError:
            raise
        except BaseException as error:  # noqa: BLE001 - any error of a transform is the outcome of this event
            letter = dead_letter(event, error, transform)
            return pickle.dumps(("letter", [getattr(letter, name) for name in REASON], dict(unknown)))


def main(descriptor: int, module: str, rows_limit: int, limit: float) -> None:
    """Serve the parent at the other end of a socket. End without waiting for threads of the transform."""
    with socket.socket(fileno=os.dup(descriptor)) as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", IDLE, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a person who ends the program ends the parent
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    with contextlib.suppress(OSError):  # not on every system
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    status = 1
    try:
        serve(Connection(descriptor), load_transform(module, rows_limit), limit)
        status = 0
    except MemoryError:
        status = OUT_OF_MEMORY
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


log = logging.getLogger("hubledger.children")
TRIES = 2  # children that an event may end
MOST = 3  # children of a process at a time
READY = 60.0  # seconds until a child must have loaded the transform
LONGEST_WAIT = 120.0  # seconds for a child that is free
LAST = 5.0  # seconds until a child that has closed its end must have ended
START = (
    "import sys, json; a = json.loads(sys.argv[1]); sys.path[:] = a[0];"
    " from core.settle.child_process import main; main(*a[1])"
)


class ChildDied(Exception):
    """The child ended, or did not answer in time. The words say how."""

    def __init__(self, how: str, is_hang: bool = False) -> None:
        super().__init__(how)
        self.is_hang = is_hang


class Child:
    """A child process. One thread at a time asks it. Close it, and it is killed."""

    def __init__(self, module: str, rows_limit: int, limit: float) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            given = [sys.path, [theirs.fileno(), module, rows_limit, limit]]
            command = [sys.executable, "-c", START, json.dumps(given)]
            try:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
                )
            except BaseException:
                ours.close()
                raise
        self._socket = ours
        self._connection = Connection(os.dup(ours.fileno()))
        self._limit = limit

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def await_ready(self) -> None:
        """Wait until the child has loaded the transform. ChildDied when it cannot."""
        self._wait_at_most(READY)
        self._receive()
        self._wait_at_most(self._limit)

    def ask(self, question: str, event: Event, references: References | None = None) -> tuple[str, Any]:
        """Return the answer of the child, and answer its own questions for references meanwhile."""
        self._send((question, event))
        while True:
            kind, content, *unknown = self._receive()
            if kind != "find" or references is None:
                count_unknown_fields(*unknown)
                return kind, content
            self._send(references.find(content.row_class, *content.key))

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._connection.close()
        self._socket.close()

    def _wait_at_most(self, seconds: float) -> None:
        """Limit each wait for the child. It is an option of the socket, because `poll` takes longer than an event."""
        wait = struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, wait)

    def _send(self, given: Any) -> None:
        try:
            self._connection.send(given)
        except OSError:
            raise self._death() from None

    def _receive(self) -> Any:
        try:
            return self._connection.recv()
        except BlockingIOError:
            self._process.kill()
            raise self._hang() from None
        except (EOFError, OSError):
            raise self._death() from None

    def _death(self) -> ChildDied:
        try:
            status = self._process.wait(LAST)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return ChildDied("its process closed the connection")
        if status == -signal.SIGALRM:  # its own timer, where the parent was late
            return self._hang()
        if status == OUT_OF_MEMORY:
            return ChildDied("its process had no memory left (MemoryError)")
        name = next((f"by {one.name}" for one in signal.Signals if one == -status), f"with status {status}")
        why = ", as when the memory of the machine runs out" if status == -signal.SIGKILL else ""
        return ChildDied(f"its process ended {name}{why}")

    def _hang(self) -> ChildDied:
        return ChildDied(f"it did not return within {self._limit:g} s (TRANSFORM_DEADLINE_SECONDS)", is_hang=True)


@dataclass(slots=True)
class ChildSlot:
    """One attempt's place among the children of a process. `child` is None after a death."""

    children: "Children"
    child: Child | None
    look_again: Callable[[], None]

    def ask(self, question: str, event: Event, references: References | None = None) -> Any:
        """Return the rows or the references of an event. Raises LetterOfChild, EventKilled and ChildNotStarted."""
        deaths, began = 0, monotonic()
        while True:
            self.children.refuse_late()
            self.child = child = self.child or self.children.start()
            try:
                kind, content = child.ask(question, event, references)
            except ChildDied as death:
                self.child, deaths = None, deaths + 1
                child.close()
                facts = {"action": "child_died", "sequence_number": event.sequence_number, "error": str(death)}
                log.warning("a child process died; its event is tried once more, or becomes a letter", extra=facts)
                if deaths == TRIES or death.is_hang:
                    times = "" if death.is_hang else f", each of the {TRIES} times that it tried this event"
                    raise EventKilled(event.sequence_number, f"{death}{times}", monotonic() - began) from death
                try:
                    self.look_again()
                except StoreFault as fault:
                    raise ChildNotFree(str(fault)) from fault
            except BaseException:  # what the child still sends would be taken for the next answer
                self.child = None
                child.close()
                raise
            else:
                if kind == "letter":
                    raise LetterOfChild(DeadLetter(event, *content))
                return content


@dataclass(slots=True)
class Children:
    """The children of a process, at most three at a time. Several threads may use them. Close them with the app."""

    module: str
    rows_limit: int
    deadline: timedelta
    seconds_left: Callable[[], float] = lambda: math.inf  # until the invocation has to end
    _places: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(MOST))
    _free: list[Child] = field(default_factory=list)

    @contextmanager
    def in_child(self, transform: Transform, look_again: Callable[[], None]) -> Iterator[Transform]:
        """Give the transform whose functions run in a child, or the transform itself where no child can be started.

        Waits for a child no longer than the invocation allows. Then raises ChildNotFree.
        """
        wait = min(self.refuse_late(), LONGEST_WAIT)
        if not self._places.acquire(timeout=wait):
            raise ChildNotFree(f"no child process was free within {wait:.0f} s; the next try goes on")
        slot = ChildSlot(self, None, look_again)
        try:
            try:
                slot.child = self._take()
            except ChildNotStarted as fault:
                log.error("no child process; suspects are tried here", extra={"action": "child", "error": str(fault)})
                yield transform
                return
            references_of = None if transform.references_of is None else partial(slot.ask, "references")
            yield replace(transform, rows_of=partial(slot.ask, "rows"), references_of=references_of, watch=unwatched)
        finally:
            if slot.child is not None:
                self._free.append(slot.child)
            self._places.release()

    def start(self) -> Child:
        """Start a child. Raises ChildNotStarted."""
        try:
            child = Child(self.module, self.rows_limit, self.deadline.total_seconds())
        except (OSError, ValueError) as fault:  # Windows hands no socket to a child
            raise ChildNotStarted(str(fault)) from fault
        try:
            child.await_ready()
        except ChildDied as death:
            child.close()
            raise ChildNotStarted(str(death)) from death
        return child

    def refuse_late(self) -> float:
        """Return the seconds until a child has to be asked, so that a hang still ends within the invocation.

        Raises ChildNotFree when that time has passed.
        """
        left = self.seconds_left() - self.deadline.total_seconds()
        if left <= 0:
            raise ChildNotFree("the invocation is too old for an event that may hang; the next try goes on")
        return left

    def close(self) -> None:
        """End the children that have nothing to do."""
        while self._free:
            self._free.pop().close()

    def _take(self) -> Child:
        while self._free:
            child = self._free.pop()
            if child.is_alive:
                return child
            child.close()
        return self.start()
