"""A complete search, within stated bounds, of all schedules of a few processes over the real core on SQLite.

A process runs the product's own code in a greenlet. Each call of its Database, and each read of the hub, is a turn: the
process stops before it, and any other process may go on. A turn may also fail, lose its answer, or end its process, as
often as the bounds of the search allow. The search goes depth first. It takes one turn of one process in a savepoint,
searches on from there, and rolls the savepoint back to take a different turn.

The answers that a process has had decide what it does next. So a state of the search consists of the tables, the
answers of each process that still works, and the faults that may still come. The search skips a state that it has met
before.

The search does not try both orders of two turns where the order cannot matter: it takes a read at once if no other
process writes the tables. The search learns which process writes which table. When it learns of one more, it begins
again.
"""

import json
import re
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from hashlib import blake2b
from itertools import count, permutations
from pathlib import Path
from typing import Any, Literal, NamedTuple

from greenlet import getcurrent, greenlet

from core.errors import (
    BatchRefused,
    DataRefused,
    HubUnreachable,
    InfrastructureFault,
    StreamIncarnationChanged,
)
from core.store.columns import instant_text
from core.store.script import Named, Outcome, Script
from core.store.sqlite.database import STORE_TIME, SqliteDatabase
from tests.fakes.builders import FakeClock
from tests.fakes.faulty_database import Killed
from tests.simulation.trouble import COMMITTED, DEATH_BEFORE, NOT_COMMITTED, NOT_REACHED, Fault

OUTSIDE = "outside"  # the hub and the time, as if they were a table
OF_OUTSIDE = frozenset({OUTSIDE})
WRITES = (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE)
TASKS = frozenset({"task", "task_part"})
OF_ONE_TASK = ("advance_part", "advance_replay", "end_task", "find_task", "hold_task", "move_task", "read_parts")
FENCED = ("open_checkpoint", "advance_checkpoint")  # the first statement of a batch: of two rivals one is refused there
OF_RECREATION = (BatchRefused, HubUnreachable, StreamIncarnationChanged)  # faults of a recreated hub
OF_THE_HUB = Fault("hub: unreachable", "before", HubUnreachable)
FAULTS: dict[str, tuple[Fault, ...]] = {  # of a turn, by its kind
    "ask": (NOT_REACHED, DEATH_BEFORE),
    "hub": (OF_THE_HUB, DEATH_BEFORE),
    "rehearse": (NOT_REACHED, DEATH_BEFORE),
    "run": (NOT_REACHED, NOT_COMMITTED, COMMITTED, DEATH_BEFORE),
    "outside": (),
    "begin": (),
}


class Anything(dict[str, Any]):
    """Values for a statement that is planned, and never run."""

    def __missing__(self, name: str) -> None:
        return None


class Outside(NamedTuple):
    """The world beside the tables: the seconds since the search began, and which life of the hub is there."""

    seconds: float = 0.0
    life: int = 0


class NestedDatabase(SqliteDatabase):
    """The embedded engine on one connection, with each transaction inside the savepoints of the search."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(Path(":memory:"), connect=lambda: connection, now=lambda: self.now)
        self.connection, self.outside = connection, Outside()
        self._known: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
        for durable in (True, False):
            self._connection(durable)  # opened before the first savepoint: it sets pragmas

    @property
    def now(self) -> datetime:
        clock = FakeClock()
        clock.advance(self.outside.seconds)
        return clock.now()

    def purpose_of(self, statement: str) -> str:
        """Return the purpose of a statement, as its file has it. A statement that code builds has none."""
        found = self._queries.get(statement)
        return found.purpose if found else ""

    def plant(self, statement: str, text: str, instead: str) -> None:
        """Change the text of a statement."""
        found = self._queries[statement]
        assert found.text.count(text) == 1, (statement, found.text)
        self._queries = {**self._queries, statement: replace(found, text=found.text.replace(text, instead))}

    def tables_of(self, statement: Named, values: Mapping[str, Any]) -> tuple[frozenset[str], frozenset[str]]:
        """Return the tables that a statement reads, and those that it writes, as SQLite names them."""
        text = self._text(statement, Anything(values))
        if text not in self._known:
            reads: set[str] = set()
            writes: set[str] = set()

            def note(action: int, table: str | None, column: str | None, *_: object) -> int:
                if action == sqlite3.SQLITE_READ and table is not None:
                    reads.add(table)
                elif action in WRITES and table is not None:
                    writes.add(table)
                elif action == sqlite3.SQLITE_FUNCTION and column == STORE_TIME:
                    reads.add(OUTSIDE)
                return sqlite3.SQLITE_OK

            self.connection.set_authorizer(note)
            self.connection.text_factory = bytes  # the plan of a statement has texts that are no UTF-8
            try:
                given = (None,) * marks if (marks := text.count("?")) else Anything()
                self.connection.execute(f"EXPLAIN {text}", given).fetchall()
            finally:
                self.connection.text_factory = str
                self.connection.set_authorizer(None)
            self._known[text] = frozenset(reads), frozenset(writes)
        return self._known[text]

    def touched_by(self, statement: Named, values: Mapping[str, Any]) -> tuple[frozenset[str], frozenset[str]]:
        """Return what a statement reads and what it writes, as names of tables. Of a statement about one task, a name
        has the task's id too, because it touches no row of another task."""
        reads, writes = self.tables_of(statement, values)
        if statement not in OF_ONE_TASK:
            return reads, writes
        ids = [values["task_id"]] if "task_id" in values else [id for (id,) in json.loads(values["task_ids"])]

        def of_ids(tables: frozenset[str]) -> frozenset[str]:
            return tables - TASKS | {f"{one} {id}" for one in tables & TASKS for id in ids}

        return of_ids(reads), of_ids(writes)

    @contextmanager
    def _transaction(self, script: Script) -> Iterator[sqlite3.Connection]:
        with savepoint(self.connection) as keep:
            yield self.connection
            keep()

    def _let_others_write(self, changed: int) -> None:
        """Never wait: the search decides who is next."""


@contextmanager
def savepoint(connection: sqlite3.Connection) -> Iterator[Callable[[], None]]:
    """Roll back the changes of the block, unless the block calls the function that it gets."""
    kept: list[bool] = []
    connection.execute("SAVEPOINT one")
    try:
        yield lambda: kept.append(True)
    finally:
        if not kept:
            connection.execute("ROLLBACK TO one")
        connection.execute("RELEASE one")


@dataclass(frozen=True, eq=False)
class Turn:
    """The next act of a process: to begin, a read of the tables, a transaction, a rehearsal, a read of the hub, or a
    change of the world outside. A transaction has its script, and `writes` are tables that the world outside writes."""

    kind: Literal["ask", "run", "rehearse", "hub", "outside", "begin"]
    name: str
    make: Callable[[], Any]
    reads: Callable[[], frozenset[str]] = frozenset
    script: Script | None = None
    writes: frozenset[str] = frozenset()

    def is_like(self, other: "Turn") -> bool:
        """Return True for a turn that does the same."""
        own, others = (
            [(step.statement, step.values, step.many) for step in one.script.steps] if one.script else []
            for one in (self, other)
        )
        return (self.kind, self.name, own) == (other.kind, other.name, others)


class Ended(NamedTuple):
    """The end of a process, in a word. `failed`: the database or another process was the cause."""

    word: str
    failed: bool = False


class Process:
    """A process as its actor sees it: a Database, a clock and the hub.

    The clock shows the time of the last answer, and before it the time at which the process began. So the answers
    decide all that the actor does.
    """

    def __init__(self, database: NestedDatabase) -> None:
        self.clock, self.is_dead, self._database = FakeClock(), False, database

    def begin(self) -> None:
        """Learn the time."""
        self._take(Turn("begin", "begins", lambda: None, lambda: OF_OUTSIDE))

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        database = self._database
        if statement == "read_time":
            return self._take(Turn("ask", "read_time", lambda: [(instant_text(database.now),)], lambda: OF_OUTSIDE))
        reads = lambda: database.touched_by(statement, values)[0]  # noqa: E731
        return self._take(Turn("ask", str(statement), lambda: database.ask(statement, **values), reads))

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        name = ", ".join(dict.fromkeys(str(step.statement) for step in script.steps))
        return self._take(
            Turn("rehearse" if rehearse else "run", name, lambda: self._database.run(script, rehearse), script=script)
        )

    def close(self) -> None:
        """Keep the database: other processes use it."""

    def read_hub(self, name: str, read: Callable[[int], Any]) -> Any:
        """Read the hub. `read` takes the number of its life."""
        return self._take(Turn("hub", name, lambda: read(self._database.outside.life), lambda: OF_OUTSIDE))

    def change_outside(
        self, name: str, outside: Outside, act: Callable[[], object] = lambda: None, writes: Iterable[str] = ()
    ) -> None:
        """Let time pass, let the hub begin its next life, or let a job of Spark write tables."""

        def change() -> None:
            act()
            self._database.outside = outside

        self._take(Turn("outside", name, change, writes=frozenset(writes)))

    def _take(self, turn: Turn) -> Any:
        if self.is_dead:
            raise Killed
        search = getcurrent().parent
        assert search is not None
        answer, self.clock.seconds = search.switch(turn)
        if self.is_dead:
            raise Killed
        if isinstance(answer, BaseException):
            raise answer.with_traceback(None)
        return list(answer) if isinstance(answer, list) else answer


Actor = Callable[[Process], object]
Answers = tuple[tuple[Any, float], ...]  # each with its time, in seconds


class Local(NamedTuple):
    """The state of a process: its answers so far, a hash of them, and its next turn or its end."""

    answers: Answers
    digest: bytes
    next: Turn | Ended

    @property
    def key(self) -> bytes | str:
        return self.next.word if isinstance(self.next, Ended) else self.digest


class State(NamedTuple):
    """A state of the search. `tables` has a hash of each table, `faults` are those that may still come."""

    tables: tuple[bytes, ...]
    outside: Outside
    locals: tuple[Local, ...]
    faults: int

    @property
    def key(self) -> tuple[object, ...]:
        return self.tables, self.outside, tuple(one.key for one in self.locals), self.faults


class Move(NamedTuple):
    """One turn of one process, and the fault that it meets, if any."""

    process: int
    turn: Turn
    fault: Fault | None = None


class Violation(AssertionError):
    """A schedule that breaks the promise. `path` are its turns in words."""

    def __init__(self, path: tuple[str, ...], broken: str) -> None:
        super().__init__("\n".join([*(f"{at:>3}. {line}" for at, line in enumerate(path, 1)), f"     {broken}"]))
        self.path, self.broken = path, broken


@dataclass
class Found:
    """The counts of a search. `schedules` are complete ones, one for each order of turns that can matter."""

    states: int = 0
    turns: int = 0
    tables: int = 0
    ends: int = 0
    schedules: int = 0
    longest: int = 0


@dataclass(frozen=True)
class Promise:
    """The promise. `at_each` checks the tables after each change. `at_end` checks them when all processes have ended,
    and may change them. Both raise AssertionError."""

    at_each: Callable[[Outside], object]
    at_end: Callable[[Outside], object]


class _Broke(NamedTuple):
    """The end of a process by an error that none of its callers expects."""

    error: Exception


class _MoreWritten(Exception):
    """A process has written a table for the first time, so the search begins again."""


class Search:
    """A search of all schedules of some actors with at most so many faults. `longest` bounds the turns of a schedule.
    Without `is_reduced` the search tries both orders of two turns also where the order cannot matter."""

    def __init__(
        self,
        database: NestedDatabase,
        actors: Mapping[str, Actor],
        promise: Promise,
        faults: int,
        longest: int | None = None,
    ) -> None:
        self._database, self._names, self._actors = database, tuple(actors), tuple(actors.values())
        self._promise, self._faults, self.longest = promise, faults, longest
        self._outside, self._is_learning, self.is_reduced = database.outside, False, True
        named = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
        self._tables = {name: at for at, (name,) in enumerate(database.connection.execute(named))}
        self._writes: list[set[str]] = [set() for _ in actors]
        self._next: dict[tuple[int, bytes], Turn | Ended | _Broke] = {}
        self._live: dict[int, tuple[bytes, Process, greenlet]] = {}

    def run(self) -> Found:
        """Search to the end. Raises Violation."""
        while True:
            self.found = Found()
            self._seen: dict[tuple[object, ...], tuple[int, int]] = {}  # the turns that were left, and the schedules
            self.checked: set[object] = set()
            try:
                with savepoint(self._database.connection):
                    tables = tuple(map(self._hash_of, self._tables))
                    began = [self._told(at, Local((), b"", Ended("")), (), ()) for at in range(len(self._actors))]
                    first = State(tables, self._outside, tuple(began), self._faults)
                    if not any(self._writes):
                        self._learn(first)
                    self.found.schedules = self._from(first, ())
                return self.found
            except _MoreWritten:
                continue
            finally:
                self._database.outside = self._outside
                for _, process, body in self._live.values():
                    self._end(process, body)
                self._live.clear()

    def _learn(self, first: State) -> None:
        """Let the processes work one after the other, in each order, to see what they write."""
        self._is_learning = True
        for order in permutations(range(len(self._actors))):
            with savepoint(self._database.connection), suppress(Violation):  # the search itself tells its schedule
                self._database.outside, state = first.outside, first
                for at in order:
                    while isinstance(turn := state.locals[at].next, Turn):
                        state, _ = self._moved(state, Move(at, turn), ())
        self._database.outside, self._is_learning, self.found, self.checked = first.outside, False, Found(), set()

    def _from(self, state: State, path: tuple[str, ...]) -> int:
        """Search all schedules from a state. Return their number."""
        left = sys.maxsize if self.longest is None else self.longest - len(path)
        before, schedules = self._seen.get(state.key, (-1, 0))
        if before >= left:
            return schedules
        self.found.states += before < 0
        self.found.longest = max(self.found.longest, len(path))
        moves = self._moves(state)
        schedules = 0 if moves else 1
        if not moves:
            self._check(self._promise.at_end, (state.tables, state.outside, state.key[2]), state.outside, path)
            self.found.ends += 1
        for move in moves if left > 0 else ():
            with savepoint(self._database.connection):
                self._database.outside = state.outside
                schedules += self._from(*self._moved(state, move, path))
        self._seen[state.key] = left, schedules
        return schedules

    def _moves(self, state: State) -> list[Move]:
        """Return the moves to try in a state: those of all processes. Where one process is about to read what no other
        process can still write, return the moves of that process alone."""
        working = {at: one.next for at, one in enumerate(state.locals) if isinstance(one.next, Turn)}
        begins_first = sorted(working.items(), key=lambda one: one[1].kind != "begin")
        for at, turn in begins_first if self.is_reduced else ():
            others = set[str]().union(*(self._writes[other] for other in working if other != at))
            if turn.kind in ("ask", "hub", "begin") and not _meet(
                OF_OUTSIDE | turn.reads(), others
            ):  # each answer has the time
                working = {at: turn}
                break
        return [
            Move(at, turn, fault)
            for at, turn in working.items()
            for fault in (None, *(FAULTS[turn.kind] if state.faults else ()))
            if not (fault is NOT_COMMITTED and turn.script and turn.script.may_repeat)  # the same as NOT_REACHED
        ]

    def _moved(self, state: State, move: Move, path: tuple[str, ...]) -> tuple[State, tuple[str, ...]]:
        at, turn, fault = move
        local, tables = state.locals[at], state.tables
        self.found.turns += 1
        if fault is DEATH_BEFORE:
            path = (*path, f"{self._names[at]} dies, before it can {self._does(turn)}")
            after = local._replace(answers=(), next=Ended("died"))
        else:
            answer = self._answer(turn, fault)
            said = f". {type(answer).__name__}: {answer}" if isinstance(answer, Exception) else ""
            path = (*path, f"{self._names[at]}: {self._does(turn)}{said}")
            if isinstance(answer, DataRefused) and turn.name.startswith(
                FENCED
            ):  # no event of a log is refused by itself
                raise Violation(
                    path, "the fence let it pass: only the key of a table kept a row from being written twice"
                )
            tables = self._rehashed(at, turn, tables)
            after = self._told(at, local, (*local.answers, (answer, self._database.outside.seconds)), path)
            if isinstance(after.next, Ended) and after.next.failed and not fault and state.faults == self._faults:
                raise Violation(path, f"{self._names[at]} {after.next.word}, although there was no fault")
        if tables != state.tables:
            self._check(self._promise.at_each, (tables, self._database.outside.life), self._database.outside, path)
            self.found.tables = len(self.checked)
        locals = (*state.locals[:at], after, *state.locals[at + 1 :])
        return State(tables, self._database.outside, locals, state.faults - bool(fault)), path

    def _answer(self, turn: Turn, fault: Fault | None) -> Any:
        """Take a turn, and return its answer, which may be an error."""
        try:
            if fault is not None:
                fault.strike(turn.script, turn.make)
            return turn.make()
        except Exception as error:  # noqa: BLE001 - it is the process that has to deal with it
            return error

    def _told(self, at: int, before: Local, answers: Answers, path: tuple[str, ...]) -> Local:
        """Return the state of a process after one more answer. Raises Violation for an end by an unexpected error."""
        digest = _digest_of(before.digest, answers[-1:])
        following = self._next.get((at, digest))
        if following is None:
            following = self._next[at, digest] = self._continued(at, before.digest, digest, answers)
        if isinstance(following, _Broke):
            raise Violation(path, f"{self._names[at]} ends with {following.error!r}") from following.error
        return Local(answers, digest, following)

    def _continued(self, at: int, before: bytes, digest: bytes, answers: Answers) -> Turn | Ended | _Broke:
        """Run a process up to its next turn, and return that turn or how the process ended.

        If the live process has had all answers but the last, it gets that one. Otherwise a new process gets them all.
        """
        stands, process, body = self._live.pop(at, (b"", None, None))
        if process is not None and body is not None and stands == before and answers:
            following = body.switch(answers[-1])
        else:
            self._end(process, body)
            process = Process(self._database)
            body = greenlet(partial(_worked, self._actors[at], process))
            following, told = body.switch(), _digest_of(b"", ())
            for answer in answers:
                known = self._next[at, told]
                is_same = isinstance(following, Turn) and isinstance(known, Turn) and following.is_like(known)
                assert is_same, ("a process does different things after the same answers", following, known)
                following, told = body.switch(answer), _digest_of(told, (answer,))
        if isinstance(following, Turn):
            self._live[at] = digest, process, body
        assert isinstance(following, Turn | Ended | _Broke)
        return following

    @staticmethod
    def _end(process: Process | None, body: greenlet | None) -> None:
        if process is not None and body is not None:
            process.is_dead = True
            body.throw(Killed)

    def _rehashed(self, at: int, turn: Turn, tables: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """Return the hashes of all tables after a turn, and note which tables the process has written."""
        steps = turn.script.steps if turn.kind == "run" and turn.script is not None else ()
        touched = set[str]().union(*(self._database.touched_by(step.statement, step.values)[1] for step in steps))
        touched |= turn.writes | (OF_OUTSIDE if turn.kind == "outside" else set())
        if not touched <= self._writes[at]:
            self._writes[at] |= touched
            if not self._is_learning:
                raise _MoreWritten
        hashes = list(tables)
        written = (self._database.tables_of(step.statement, step.values)[1] for step in steps)
        for table in turn.writes.union(*written):
            hashes[self._tables[table]] = self._hash_of(table)
        return tuple(hashes)

    def _hash_of(self, table: str) -> bytes:
        rows = self._database.connection.execute(f"SELECT * FROM {table}").fetchall()
        return blake2b(repr(sorted(map(repr, rows))).encode(), digest_size=16).digest() if rows else b""

    def _check(
        self, promise: Callable[[Outside], object], key: object, outside: Outside, path: tuple[str, ...]
    ) -> None:
        if key in self.checked:
            return
        self.checked.add(key)
        with savepoint(self._database.connection):
            try:
                promise(outside)
            except Exception as broken:
                raise Violation(path, f"{type(broken).__name__}: {broken}") from broken

    def _does(self, turn: Turn) -> str:
        """Return a turn in words."""
        if turn.kind in ("hub", "outside", "begin"):
            return turn.name
        first, *_ = turn.name.split(", ")
        purpose = re.split(r"[.:;]", self._database.purpose_of(first))[0]
        return f"{purpose[:1].lower()}{purpose[1:]} ({turn.name})" if purpose else turn.name


def _digest_of(before: bytes, answer: Answers) -> bytes:
    """Return the hash of all answers of a process. `before` is the hash without the last answer."""
    return blake2b(before + repr(answer).encode(), digest_size=16).digest()


def _meet(reads: frozenset[str], writes: set[str]) -> bool:
    """Return True if a read may see a write. The rows of one task are part of their table."""
    tables = {one.split()[0] for one in writes if " " in one}
    return any(one in writes or one.split()[0] in writes or one in tables for one in reads)


def shortest(search: Search) -> Violation | None:
    """Return the shortest schedule that breaks the promise, or None where there is none."""
    for search.longest in count(1):
        try:
            found = search.run()
        except Violation as violation:
            return violation
        if found.longest < search.longest:
            return None
    raise AssertionError("unreachable")


def _worked(actor: Actor, process: Process) -> Ended | _Broke:
    try:
        process.begin()
        said = actor(process)
    except Killed:
        return Ended("died")
    except InfrastructureFault as fault:
        return Ended(f"failed: {type(fault).__name__}", failed=not isinstance(fault, OF_RECREATION))
    except Exception as error:  # noqa: BLE001 - the search names the schedule
        return _Broke(error)
    return Ended(f"done: {said}" if said else "done")
