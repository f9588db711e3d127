"""The child process that tries suspects: it runs the transform for one event at a time, as its parent asks.

It is started by `core/settle/children.py`, with a socket to its parent. What the transform prints does not reach that
socket. The kernel takes this process first when memory runs out, and ends it when an event outlasts the limit, even if
the parent has died meanwhile.
"""

import contextlib
import os
import pickle
import signal
import socket
import struct
import sys
import threading
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path

from core.model.bodies import counting_unknown_fields
from core.model.commits import DeadLetter
from core.model.events import Event
from core.model.rows import ReferenceKey, References, RowType
from core.model.transform import Transform
from core.settle.settle import dead_letter
from core.transforms import load_transform

GRACE = 5.0  # seconds after the limit: the parent, which says more, comes first
REASON = tuple(name for name in DeadLetter.__dataclass_fields__ if name != "event")  # what the parent gets of a letter
OUT_OF_MEMORY = 12  # status of a process without memory: ENOMEM
IDLE = 60  # seconds without an event, after which the process ends


class AskedReferences(References):
    """References that the parent process looks up."""

    __slots__ = ("_alone", "_connection", "_process")

    def __init__(self, connection: Connection) -> None:
        super().__init__({})
        self._connection, self._process = connection, os.getpid()
        self._alone = threading.Lock()  # a transform may have threads, and each needs its own answer

    def find(self, row_class: type[RowType], *key: object) -> RowType | None:
        wanted = ReferenceKey(row_class, key)
        hash(wanted)  # a key that cannot be hashed is a fault of this event
        self.end_a_fork()
        with self._alone:
            self._connection.send(("find", wanted))
            found: RowType | None = self._connection.recv()
        return found

    def end_a_fork(self) -> None:
        """End a process that the transform forked and that returns: its parent answers."""
        if os.getpid() != self._process:
            os._exit(0)


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
        with counting_unknown_fields() as unknown:
            answer = _answer(question, event, references, transform)
        references.end_a_fork()
        connection.send_bytes(answer)
        connection.send(dict(unknown))
        signal.setitimer(signal.ITIMER_REAL, 0)


def _answer(question: str, event: Event, references: References, transform: Transform) -> bytes:
    """Return what the transform makes of an event; its error, as the letter says it, where it raises one."""
    try:
        if question == "references" and transform.references_of is not None:
            return pickle.dumps((question, tuple(transform.references_of(event))))
        made = transform.rows_of(event, references)
        return pickle.dumps((question, tuple(islice(made, transform.rows_limit + 1))))
    except MemoryError:
        raise
    except BaseException as error:  # noqa: BLE001 - any error of a transform is the outcome of this event
        letter = dead_letter(event, error, transform)
        return pickle.dumps(("letter", [getattr(letter, name) for name in REASON]))


def main(descriptor: int, module: str, rows_limit: int, limit: float) -> None:
    """Serve the parent at the other end of a socket; end without waiting for threads of the transform."""
    _prepare_process(descriptor)
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


def _prepare_process(descriptor: int) -> None:
    with socket.socket(fileno=os.dup(descriptor)) as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", IDLE, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a person who ends the program ends the parent
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    with contextlib.suppress(OSError):  # not on every system
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
