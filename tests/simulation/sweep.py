"""The nth-failure sweep: fail the first, the second, … possible point of an act, until none is left.

A point is a read or a transaction that is not reached, each of its statements, its commit, and the answer after it; at
each of them the database fails or the process dies. Then the ordinary retry follows: the act is called again.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache
from typing import Any

from core.errors import InfrastructureFault
from core.model.ports import Clock
from core.store.script import Script
from tests.fakes.builders import FakeClock, stamps
from tests.fakes.faulty_database import Killed
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.store import Store
from tests.simulation.faults import (
    COMMITTED,
    DEATH_AFTER,
    DEATH_BEFORE,
    DEATH_INSIDE,
    NOT_COMMITTED,
    NOT_REACHED,
    STATEMENT_FAILS,
    Fault,
    ProcessDatabase,
)
from tests.simulation.watch import WatchedStore

LEASE = timedelta(minutes=10)  # longer than any claim
VOLATILE = ("_at", "_until", "_id", "_by")  # ends of columns that no two runs share
STEADY = ("stream_id", "partition_id", "home_id", "sensor_id")
OWN_TO_A_TRY = {
    "attempts of sequence_gap",
    "attempts of partition_stop",
    "submits of aggregation_run",
    "aggregation_failure",
    "history of task",
    "task_key of task",  # of a replay: its id
    "replay_state",  # those of jobs that are over stay until the next end, when the answer of their deletion is lost
}


def points_of(script: Script | None) -> tuple[Fault, ...]:
    """Return all ways in which one call can fail."""
    if script is None:
        return NOT_REACHED, DEATH_BEFORE
    inside = [replace(fault, place=at) for at in range(len(script.steps)) for fault in (STATEMENT_FAILS, DEATH_INSIDE)]
    return NOT_REACHED, DEATH_BEFORE, *inside, NOT_COMMITTED, COMMITTED, DEATH_AFTER


@dataclass(slots=True)
class NthPoint:
    """Draws one fault, at the nth point."""

    left: int
    struck: Fault | None = None

    def __call__(self, script: Script | None) -> Fault | None:
        if self.struck is not None:
            return None
        points = points_of(script)
        if self.left < len(points):
            self.struck = points[self.left]
            return self.struck
        self.left -= len(points)
        return None


@dataclass(slots=True)
class Bench:
    """A database, a hub and a clock, on which a subject is prepared and acts; `jobs` are those of a Spark engine."""

    store: WatchedStore = field(default_factory=WatchedStore)
    clock: FakeClock = field(default_factory=FakeClock)
    hub: MemoryHub = field(default_factory=lambda: MemoryHub({"0": (), "1": ()}))
    jobs: dict[str, str] = field(default_factory=dict)
    own: Clock = field(init=False)

    def __post_init__(self) -> None:
        self.own = stamps(11, self.clock)


@dataclass(slots=True)
class Process:
    """A process with its own memory, on a database that may fail once."""

    bench: Bench
    draw: Callable[[Script | None], Fault | None] = lambda _: None
    database: ProcessDatabase = field(init=False)
    store: Store = field(init=False)

    def __post_init__(self) -> None:
        self.database = ProcessDatabase(self.bench.store.database, self.draw)
        self.store = Store(self.database).remembering(timedelta(minutes=1), self.bench.clock.monotonic)


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a sweep: `act` may be called again at any time, because a retry follows each fault.

    `points` is the least number of points; a sweep with fewer no longer reaches its subject. Without `counts_commits`,
    the commits after a fault may be cut differently, and only their sums are compared.
    """

    prepare: Callable[[Bench], None]
    act: Callable[[Process], object]
    points: int
    turns: int = 2  # of the act: one for the fault, the others for the retries
    counts_commits: bool = True
    allows: tuple[str, ...] = ()  # how the violations begin that it alone may commit


def sweep(subject: Subject) -> Iterator[tuple[int, Fault, str | None]]:
    """Yield each point with its fault, and how the final state differs from that without a fault."""
    prepared = Bench()
    subject.prepare(prepared)
    image = prepared.store.image()
    expected, _ = final_state(subject, Bench(WatchedStore(image), hub=prepared.hub), None)
    number = 0
    while True:
        state, fault = final_state(subject, Bench(WatchedStore(image), hub=prepared.hub), NthPoint(number))
        if fault is None:
            return
        yield number, fault, None if state == expected else difference(expected, state)
        number += 1


def final_state(subject: Subject, bench: Bench, point: NthPoint | None) -> tuple[dict[str, list[Any]], Fault | None]:
    """Return the tables after a run with one fault and its retries."""
    process = Process(bench, point) if point else Process(bench)
    for _ in range(subject.turns):
        try:
            subject.act(process)
        except InfrastructureFault:
            pass
        except Killed:
            process = Process(bench)
        bench.clock.advance(LEASE.total_seconds())
    found = bench.store.sql("SELECT * FROM sim_violation")
    violations = [one for one in found if not one[0].startswith(subject.allows or ("nothing",))]
    assert not violations, violations
    return dump(bench.store, subject.counts_commits), point.struck if point else None


def dump(store: WatchedStore, counts_commits: bool) -> dict[str, list[Any]]:
    """Return all tables, without the times and ids that no two runs share."""
    return {table: sorted(map(repr, store.sql(statement))) for table, statement in _statements(counts_commits)}


@cache
def _statements(counts_commits: bool) -> list[tuple[str, str]]:
    store, found = WatchedStore(), []
    for (table,) in store.sql("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sim_%'"):
        names = [name for (name,) in store.sql(f"SELECT name FROM pragma_table_info('{table}')")]
        kept = [f"[{name}]" for name in names if _is_kept(name, table, counts_commits)]
        if table == "batch_ledger" and not counts_commits:
            sums = [f"SUM({name})" for name in ("written", "filtered", "dead_lettered", "absent", "rows_written")]
            found.append((table, f"SELECT kind, {', '.join(sums)} FROM {table} GROUP BY kind"))
        elif kept:
            found.append((table, f"SELECT {', '.join(kept)} FROM {table}"))
    return found


def _is_kept(name: str, table: str, counts_commits: bool) -> bool:
    if {table, f"{name} of {table}"} & OWN_TO_A_TRY or (not counts_commits and "commit_number" in name):
        return False
    return name in STEADY or not name.endswith(VOLATILE)


def difference(expected: dict[str, list[Any]], state: dict[str, list[Any]]) -> str:
    """Return the rows of each table that only one of two states has."""
    return "\n".join(
        f"{table}: only without a fault {sorted(set(expected[table]) - set(rows))}, only with one"
        f" {sorted(set(rows) - set(expected[table]))}"
        for table, rows in state.items()
        if rows != expected[table]
    )
