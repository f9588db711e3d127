import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest

from core.errors import CheckpointConflict
from core.model.commits import Settled
from core.model.events import Event
from core.model.rows import ReferenceKey, References, Row
from core.model.transforms import Transform
from core.settle.child_process import LONGEST_WAIT, MOST, Child, Children
from core.settle.isolate import Isolation
from core.settle.settle import ChildNotFree, ChildNotStarted, EventKilled, KeyOrder, reference_keys, settle
from core.store.database import _must_end_at, invocation, seconds_left
from core.transforms.loading import load_transform
from examples.home_security.transform import Home, SensorReading
from tests.fakes.builders import event, partition
from tests.patience import MOMENT, Patience, allowed

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
