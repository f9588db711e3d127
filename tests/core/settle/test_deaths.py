import os
import queue
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.errors import CheckpointConflict
from core.ingest.ingest import Ingestion, ingest_batch
from core.model.commits import Settled
from core.model.events import Event, EventBatch, PartitionId
from core.model.rows import ReferenceKey, References, Row
from core.model.transforms import Transform
from core.settle.attempts import ALONE, StoredJournal
from core.settle.child_process import LONGEST_WAIT, MOST, Child, Children
from core.settle.isolate import Isolation
from core.settle.settle import ChildNotFree, ChildNotStarted, EventKilled, KeyOrder, reference_keys, settle
from core.store.database import Database, _must_end_at, invocation, seconds_left
from core.store.script import Named, Outcome, Script
from core.transforms.loading import load_transform
from examples.home_security.transform import Home, SensorReading
from tests.fakes.builders import STREAM, event, events, partition, reading, stamps
from tests.fakes.faulty_database import OverDatabase
from tests.fakes.store import MemoryStore, Store
from tests.patience import MOMENT, Patience, allowed
from tests.simulation.seeds import seeds


class Died(KeyboardInterrupt):
    """The process died: none of its handlers may act."""


class Process:
    """One process. Its threads take turns by chance, at each call of the store and each event."""

    def __init__(self, chance: random.Random, risk: float = 0.0) -> None:
        self.is_dead = False
        self._chance = chance
        self._risk = risk  # of an innocent death at a step
        self._waiting: list[threading.Lock] = []
        self._done = _taken()

    def die(self) -> None:
        self.is_dead = True
        raise Died

    def step(self) -> None:
        """Let a different thread run. Raises Died once the process is dead."""
        if self._waiting and not self.is_dead:
            own = _taken()
            self._waiting.append(own)
            self._next()
            own.acquire()
        if self.is_dead or self._chance.random() < self._risk:
            self.die()

    def run(self, actors: Mapping[str, Callable[[], None]]) -> bool:
        """Run all actors, one step of one at a time. Return False when the process died."""
        faults: list[BaseException] = []

        def act(actor: Callable[[], None], own: threading.Lock) -> None:
            own.acquire()
            try:
                actor()
            except Died:
                pass
            except BaseException as fault:  # noqa: BLE001 - shown below
                faults.append(fault)
                self.is_dead = True
            self._next()

        for name, actor in actors.items():
            own = _taken()
            self._waiting.append(own)
            threading.Thread(target=act, args=(actor, own), name=name, daemon=True).start()
        self._next()
        self._done.acquire()
        if faults:
            raise faults[0]
        return not self.is_dead

    def _next(self) -> None:
        if self._waiting:
            self._waiting.pop(self._chance.randrange(len(self._waiting))).release()
        else:
            self._done.release()


def _taken() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


class MortalDatabase(OverDatabase):
    """A database that a process reaches until it dies. It stays open for the next process."""

    def __init__(self, database: Database, process: Process) -> None:
        super().__init__(database)
        self._process = process

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        self._process.step()
        return super().ask(statement, **values)

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        self._process.step()
        outcome = super().run(script, rehearse)
        self._process.step()
        return outcome


MOST_DEATHS = 2  # by any number of killers in half an hour: the batch of the first one may leave no mark


@dataclass
class Life:
    """Partitions of one stream, and process after process that ingests them and dies of their killers.

    By chance, a process or its child is killed from outside. Nothing on the machine outlives a process.
    """

    killers: dict[str, frozenset[int]]
    count: int
    chance: random.Random
    sizes: tuple[int, int]
    risk: float = 0.0
    refused: frozenset[int] = frozenset()  # their rows are refused by the database
    parents: frozenset[int] = frozenset()  # killers that also end the process whose child tries them
    unlucky: set[int] = field(default_factory=set)  # innocent events that were alone in hand at a death
    store: MemoryStore = field(default_factory=MemoryStore)
    deaths: int = 0  # of processes, by killers
    innocent: int = 0

    def live(self, most: int) -> None:
        """Start processes until all events are accounted for. Fail after too many deaths by killers."""
        while not self._process():
            assert self.deaths <= most, f"{self.deaths} deaths and still not through"
        assert self.deaths <= most
        self._assert_accounted()

    def _process(self) -> bool:
        process = Process(self.chance, self.risk)
        before = self.deaths
        store = Store(MortalDatabase(self.store.database, process))
        own = stamps(1 + 1_000 * self.innocent + self.deaths)
        journal = StoredJournal(store, own, partial(self._in_child, process))

        def actor(place: str) -> None:
            def transform(event: Event, references: References) -> tuple[SensorReading, ...]:
                process.step()
                if event.sequence_number in self.killers[place]:
                    self.deaths += 1
                    process.die()
                return self._rows(event)

            means = Ingestion(
                store, Transform("test/1", transform), stamps(self.chance.getrandbits(60)), journal=journal
            )
            self._deliver(place, means)

        survived = process.run({place: partial(actor, place) for place in self.killers})
        if not survived and self.deaths == before:
            self.innocent += 1
            marks = self.store.sql(
                "SELECT last_sequence_number FROM batch_attempt"
                " WHERE first_sequence_number = last_sequence_number AND deaths >= ? AND verdict IS NULL", ALONE
            )  # fmt: skip
            self.unlucky |= {number for (number,) in marks}
        return survived

    @contextmanager
    def _in_child(self, process: Process, transform: Transform, look_again: object) -> Iterator[Transform]:
        def rows_of(event: Event, references: References) -> Iterable[Row]:
            number = event.sequence_number
            process.step()
            if number in self.parents:
                self.deaths += 1
                process.die()
            if number in self.killers[event.body.decode()]:
                raise EventKilled(number, "it ended two children")
            return self._rows(event)

        yield replace(transform, rows_of=rows_of)

    def _rows(self, event: Event) -> tuple[SensorReading, ...]:
        return (reading(ppm=2**80 if event.sequence_number in self.refused else 1),)

    def _deliver(self, place: str, means: Ingestion) -> None:
        partition = STREAM.partition(PartitionId(place))
        checkpoint = means.store.read_partition(partition).checkpoint
        first = 0 if checkpoint is None else checkpoint.sequence_number + 1
        while first < self.count:
            last = min(first + self.chance.randint(*self.sizes), self.count) - 1
            ingest_batch(EventBatch(partition, events(first, last, place), "call"), means)
            first = last + 1

    def _assert_accounted(self) -> None:
        for place, killers in self.killers.items():
            letters = [one for one in self.store.letters() if one.partition_id == place]
            crashes = [one for one in letters if one.error_class == "crash"]
            crashed = {one.sequence_number for one in crashes}
            assert killers <= crashed <= killers | self.unlucky
            assert {one.sequence_number for one in letters} == crashed | self.refused
            assert all((one.status, one.error_type) == ("exhausted", "core.errors.ProcessDied") for one in crashes)
            spans = [(one.first, one.last) for one in self.store.ledger() if one.partition_id == place]
            assert [number for first, last in spans for number in range(first, last + 1)] == list(range(self.count))
            written = self.store.sql("SELECT sequence_number FROM sensor_reading WHERE partition_id = ?", place)
            assert sorted(written) == [(one,) for one in range(self.count) if one not in crashed | self.refused]
        assert self.store.sql("SELECT COUNT(*) FROM batch_attempt") == [(0,)]
        assert all(books.balanced for books in self.store.read_ledgers())


@settings(max_examples=min(30, settings().max_examples))
@given(count=st.integers(1, 500), killers=st.sets(st.integers(0, 499), max_size=6))
def test_all_killers_of_a_batch_cost_one_death(count: int, killers: set[int]) -> None:
    own = frozenset(number for number in killers if number < count)
    Life({"0": own}, count, random.Random(0), (500, 500)).live(min(len(own), 1))


@pytest.mark.slow
@settings(max_examples=30)
@example(seed=0, killers={250, 590}, least=10, more=30)
@example(seed=1, killers={599}, least=1, more=200)
@example(seed=18456, killers={70, 73, 572}, least=57, more=63)
@given(
    seed=st.integers(0, 10**9),
    killers=st.sets(st.integers(0, 599), max_size=5),
    least=st.integers(1, 600),
    more=st.integers(0, 600),
)
def test_killers_of_many_batches_cost_two_deaths_at_most(seed: int, killers: set[int], least: int, more: int) -> None:
    sizes = (least, min(least + more, 600))
    Life({"0": frozenset(killers)}, 600, random.Random(seed), sizes).live(MOST_DEATHS)


@pytest.mark.parametrize("seed", seeds(range(6), 1))
def test_eight_partitions_with_killers_cost_two_deaths_at_most(seed: int) -> None:
    chance = random.Random(seed)
    killers = {str(place): frozenset(chance.sample(range(60), 2)) for place in range(8)}
    life = Life({**killers, "8": frozenset()}, 60, chance, (10, 60))
    life.live(MOST_DEATHS)
    assert life.deaths >= 1


@pytest.mark.parametrize("seed", seeds(range(4), 1))
def test_a_killer_that_takes_its_parent_along_costs_a_death_more_than_it_takes_to_try_events_alone(seed: int) -> None:
    chance = random.Random(seed)
    killer = chance.randrange(60)
    life = Life({"0": frozenset({killer})}, 60, chance, (10, 60), parents=frozenset({killer}))
    life.live(ALONE + 1)
    assert life.deaths == ALONE + 1


@pytest.mark.slow
@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**9),
    killers=st.sets(st.integers(0, 299), max_size=2),
    refused=st.sets(st.integers(0, 299), max_size=2),
)
def test_deaths_of_innocents_and_children_make_no_letter(seed: int, killers: set[int], refused: set[int]) -> None:
    own = {"0": frozenset(killers), "1": frozenset(killers)}
    life = Life(own, 300, random.Random(seed), (100, 300), 0.002, frozenset(refused - killers))
    life.live(MOST_DEATHS * 2 * len(killers))


MODULE, KILLER = "tests.fakes.hostile_transform", "tests.fakes.killing_transform"
HERE, KILLING = load_transform(MODULE), load_transform(KILLER)
LIMIT = timedelta(seconds=60)


@pytest.fixture(scope="module")
def own() -> Iterator[Children]:
    with closing(Children(MODULE, 100, LIMIT, seconds_left)) as children:
        yield children


@pytest.fixture(scope="module")
def deadly() -> Iterator[Children]:
    with closing(Children(KILLER, 100, timedelta(seconds=1), seconds_left)) as children:
        yield children


def run(*bodies: str, key: str | None = None) -> tuple[Event, ...]:
    return tuple(event(number, body, key=key) for number, body in enumerate(bodies))


def homes() -> References:
    return References({ReferenceKey(Home, ("reading",)): Home("reading", "Asia/Tokyo", False)})


def nothing(*_: object) -> None:
    """Ask for no references."""


def settled(
    children: Children, transform: Transform, events: tuple[Event, ...], asked: Callable[..., object] = nothing
) -> list[Settled]:
    """Settle events as an invocation does: each run ends with an event that kills, or with the last one.

    Before a run is settled, `asked` is called with it and its transform, as the reader of references is.
    """
    isolation, done = Isolation(), list[Settled]()
    while events:
        part = isolation.next_run(events)
        with children.in_child(transform, nothing) as in_child:
            around = isolation.around(in_child)
            try:
                asked(part, around)
                done.append(settle(part, homes(), around))
            except EventKilled as killer:
                isolation.note_killer(killer)
                continue
        events = events[len(part) :]
    return done


def made(done: Settled) -> list[SensorReading]:
    return [cast(SensorReading, row) for _, _, row in done.rows[SensorReading]]


def deaths(caplog: pytest.LogCaptureFixture) -> int:
    return sum(getattr(line, "action", "") == "child_died" for line in caplog.records)


def test_a_child_settles_every_event_as_this_process_does(own: Children) -> None:
    bodies = ["reading", "old", "new", "old", "poison", "key", "missing", "asks oddly", "leave", "print", "many"]
    given = run(*bodies, "last")
    limited = replace(HERE, rows_limit=100, takes_signals=lambda: False)
    with own.in_child(limited, nothing) as in_child:
        there = settle(given, homes(), in_child, KeyOrder({}))
        keys = reference_keys(given, in_child)
    assert there == replace(settle(given, homes(), limited, KeyOrder({})), unknown_fields=there.unknown_fields)
    assert list(keys) == list(reference_keys(given, limited))
    assert [letter.error_type.rpartition(".")[2] for letter in there.letters] == [
        "PoisonEvent", "KeyError", "MissingReference", "TypeError", "SystemExit", "TooManyRows",
    ]  # fmt: skip
    assert [row.kind for row in made(there)][:3] == ["Asia/Tokyo", "none", "Europe/Berlin"]
    with own.in_child(HERE, nothing) as in_child:
        held = settle(run("reading", "poison", "reading", key="a"), homes(), in_child, KeyOrder({})).letters
    assert [letter.status for letter in held] == ["exhausted", "held"], "later events of a key wait"


def test_a_child_outlives_what_a_transform_prints_raises_signals_asks_in_threads_and_leaves_behind(
    own: Children, caplog: pytest.LogCaptureFixture
) -> None:
    ways = ("print", "signal", "interrupt", "thread", "leave", "stays", "unknown field", "unknown field", "threads")
    (done,) = settled(own, HERE, run(*ways))
    assert [letter.error_type for letter in done.letters[:2]] == ["builtins.KeyboardInterrupt", "builtins.SystemExit"]
    (stays,) = done.letters[2:]
    assert (stays.event.sequence_number, stays.error_class, stays.error) == (5, "unknown", "this text stays here")
    assert (done.written, done.unknown_fields, deaths(caplog)) == (6, {"coupon": 2}, 0)
    assert made(done)[-1].home_id == "." * 100, "it answers for one event at a time also to threads"


@pytest.mark.slow
def test_a_child_gives_back_rows_of_a_hundred_megabytes(own: Children) -> None:
    (done,) = settled(own, HERE, run("huge", "last"))
    huge, last = (row.home_id for row in made(done))
    assert (len(huge), last) == (100_000_000, "last")


def test_a_child_is_kept_for_the_next_run_and_ended_with_the_app() -> None:
    with closing(Children(MODULE, 100, LIMIT, seconds_left)) as children:
        pids = []
        for _ in range(2):
            settled(children, HERE, run("reading"))
            pids.append(children._free[0]._process.pid)
        assert pids[0] == pids[1]
        assert Path(f"/proc/{pids[0]}/oom_score_adj").read_text() == "1000\n", "the first that the kernel takes"
        assert os.getsid(pids[0]) == os.getpgid(pids[0]) == pids[0] != os.getsid(0), "signals leave the parent"
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_a_child_ends_with_its_parent() -> None:
    code = (
        "from datetime import timedelta; from core.settle.child_process import Children;"
        f"own = Children({MODULE!r}, 1, timedelta(seconds=60));"
        "child = own.start(); print(child._process.pid, flush=True); import os; os._exit(9)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert ended.returncode == 9, ended.stderr
    patience, words = Patience(20.0), Path(f"/proc/{ended.stdout.strip()}/cmdline")
    while words.exists() and b"child" in words.read_bytes():
        patience.pause(lambda: ended.stdout, 0.05)


HANG = "it did not return within 1 s (TRANSFORM_DEADLINE_SECONDS)"
WORDS = {
    "exit": "its process ended with status 9",
    "segfault": "its process ended by SIGSEGV",
    "overflow": "its process ended by SIGSEGV",
    "killed": "its process ended by SIGKILL, as when the memory of the machine runs out",
    "memory": "its process had no memory left (MemoryError)",
    **dict.fromkeys(("loop", "regex", "join"), HANG),
}
FAST = ("segfault", "memory", "loop")  # one death, one hang


@pytest.mark.parametrize("way", [way if way in FAST else pytest.param(way, marks=pytest.mark.slow) for way in WORDS])
def test_an_event_that_kills_is_a_letter_after_two_deaths_or_one_hang_and_the_others_are_written(
    deadly: Children, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = settled(deadly, KILLING, run("fine", "fine", way, "fine", "fine"))
    (letter,) = first.letters
    assert (letter.event.sequence_number, letter.error_class, letter.status) == (2, "crash", "exhausted")
    is_hang = WORDS[way] == HANG  # which is not tried twice
    assert letter.error == WORDS[way] + ("" if is_hang else ", each of the 2 times that it tried this event")
    assert (first.written, second.written, deaths(caplog)) == (2, 2, 1 if is_hang else 2)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["quiet exit", "close", "terminate", "dies early"])
def test_an_event_that_kills_by_an_unusual_way_is_a_letter_too(own: Children, way: str) -> None:
    first, second = settled(own, HERE, run("reading", way, "reading"), reference_keys)
    assert [letter.error_class for letter in first.letters] == ["crash"]
    assert (first.written, second.written) == (1, 1)


@pytest.mark.slow
def test_a_late_killer_is_not_mistaken_for_the_event_after_it(own: Children, caplog: pytest.LogCaptureFixture) -> None:
    """A thread that one event leaves may end the child while it works on the next one."""
    (done,) = settled(own, HERE, run("late exit", "slow", "reading"))
    assert (done.letters, deaths(caplog)) == ([], 1)


def test_a_child_that_is_killed_from_outside_costs_its_event_one_more_try_and_an_idle_one_nothing(
    deadly: Children, caplog: pytest.LogCaptureFixture
) -> None:
    settled(deadly, KILLING, run("fine"))
    idle = deadly._free[-1]._process
    idle.kill()
    idle.wait()
    settled(deadly, KILLING, run("fine"))
    assert deaths(caplog) == 0
    used = deadly._free[-1]._process
    with deadly.in_child(KILLING, nothing) as in_child:

        def rows_of(event: Event, references: References) -> Iterable[Row]:
            if event.sequence_number == 3:
                used.kill()
                used.wait()
            return in_child.rows_of(event, references)

        done = settle(run(*["fine"] * 5), homes(), replace(in_child, rows_of=rows_of))
    assert (done.letters, done.written, deaths(caplog)) == ([], 5, 1)


def test_no_second_child_tries_an_event_that_another_owner_has_written(deadly: Children) -> None:
    def look_again() -> None:
        raise CheckpointConflict(partition(), None)

    with deadly.in_child(KILLING, look_again) as in_child, pytest.raises(ChildNotFree, match="another owner committed"):
        settle(run("fine", "exit"), homes(), in_child)


def test_children_that_cannot_be_started_leave_the_events_to_the_process_itself_and_say_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for module in ("tests.fakes.no_such_module", "tests.fakes.deadly_import"):
        with closing(Children(module, 100, LIMIT)) as children, children.in_child(HERE, nothing) as in_child:
            assert in_child is HERE
    assert [getattr(line, "action", None) for line in caplog.records] == ["child", "child"]
    children = Children(KILLER, 100, LIMIT)
    with children.in_child(KILLING, nothing) as in_child:
        children.module = "tests.fakes.no_such_module"
        with pytest.raises(ChildNotStarted, match="status 1"):  # a run that had a child is for the host
            settle(run("fine", "exit"), homes(), in_child)


def test_a_wait_for_a_child_ends_before_the_invocation_has_to(own: Children) -> None:
    """An event that hangs has to end within the invocation too."""

    def leave(seconds: float) -> None:
        _must_end_at.set(sum((time.monotonic(), LIMIT.total_seconds(), seconds)))

    began = time.monotonic()
    with invocation(timedelta(seconds=14)):  # an activity: its waits for the store are shorter than the invocation
        assert own.refuse_late() > LONGEST_WAIT
        with ExitStack() as taken, pytest.raises(ChildNotFree, match=r"^no child process was free"):
            for _ in range(MOST):
                taken.enter_context(own.in_child(HERE, nothing))
            leave(MOMENT)
            own.in_child(HERE, nothing).__enter__()
        leave(-MOMENT)
        with pytest.raises(ChildNotFree, match="too old for an event that may hang"):
            own.in_child(HERE, nothing).__enter__()
    assert time.monotonic() - began < allowed(30.0)
    with invocation(LIMIT), own.in_child(HERE, nothing) as in_child:
        _must_end_at.set(0.0)
        with pytest.raises(ChildNotFree):  # no event is left to the process itself
            settle(run("reading"), homes(), in_child)


def test_a_process_has_three_children_at_most(own: Children) -> None:
    entered, leave = queue.Queue[bool](), threading.Event()

    def work() -> None:
        with own.in_child(HERE, nothing):
            entered.put(True)
            leave.wait()

    threads = [threading.Thread(target=work) for _ in range(MOST + 1)]
    for thread in threads:
        thread.start()
    for _ in range(MOST):
        entered.get(timeout=allowed(60))
    with pytest.raises(queue.Empty):
        entered.get(timeout=10 * MOMENT)
    leave.set()
    for thread in threads:
        thread.join()
    assert len(own._free) <= MOST


def test_a_child_gets_the_path_of_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "room_of_a_person.py").write_text(Path(HERE.rows_of.__code__.co_filename).read_text())
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir("/")
    child = Child("room_of_a_person", 100, 5.0)
    child.await_ready()
    assert child.ask("rows", event(0, "reading"), homes())[0] == "rows"
    child.close()
