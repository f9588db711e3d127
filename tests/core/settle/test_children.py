"""child_process.py and child.py: a child settles as the process itself does, and its death names one event."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
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

MODULE = "tests.fakes.hostile_transform"
HERE = load_transform(MODULE)
KILLING = load_transform("tests.fakes.killing_transform")
LIMIT = timedelta(seconds=60)


@pytest.fixture(scope="module")
def own() -> Iterator[Children]:
    with closing(Children(MODULE, 100, LIMIT, seconds_left)) as children:
        yield children


@pytest.fixture(scope="module")
def deadly() -> Iterator[Children]:
    with closing(Children("tests.fakes.killing_transform", 100, timedelta(seconds=1), seconds_left)) as children:
        yield children


def run(*bodies: str, key: str | None = None) -> tuple[Event, ...]:
    return tuple(event(number, body, key=key) for number, body in enumerate(bodies))


def homes() -> References:
    """Return references that know the home `reading`."""
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


def deaths(caplog: pytest.LogCaptureFixture) -> int:
    return sum(getattr(line, "action", "") == "child_died" for line in caplog.records)


class TestAChild:
    def test_settles_every_event_as_this_process_does(self, own: Children) -> None:
        given = run(
            "reading", "old", "new", "old", "poison", "key", "missing", "asks oddly", "leave", "print", "many", "last"
        )
        limited = replace(HERE, rows_limit=100, takes_signals=lambda: False)
        with own.in_child(limited, nothing) as in_child:
            there = settle(given, homes(), in_child, KeyOrder({}))
            keys = reference_keys(given, in_child)
        here = settle(given, homes(), limited, KeyOrder({}))
        assert (there.rows, there.letters, there.written, there.filtered) == (
            here.rows, here.letters, here.written, here.filtered,
        )  # fmt: skip
        assert list(keys) == list(reference_keys(given, limited))
        assert [letter.error_type.rpartition(".")[2] for letter in there.letters] == [
            "PoisonEvent", "KeyError", "MissingReference", "TypeError", "SystemExit", "TooManyRows",
        ]  # fmt: skip
        kinds = [cast(SensorReading, row).kind for _, _, row in there.rows[SensorReading]]
        assert kinds[:3] == ["Asia/Tokyo", "none", "Europe/Berlin"]

    def test_holds_the_later_events_of_a_key_as_this_process_does(self, own: Children) -> None:
        given = run("reading", "poison", "reading", key="a")
        with own.in_child(HERE, nothing) as in_child:
            there = settle(given, homes(), in_child, KeyOrder({}))
        assert there.letters == settle(given, homes(), HERE, KeyOrder({})).letters
        assert [letter.status for letter in there.letters] == ["exhausted", "held"]

    def test_outlives_a_transform_that_prints_raises_signals_and_leaves_threads(
        self, own: Children, caplog: pytest.LogCaptureFixture
    ) -> None:
        (done,) = settled(own, HERE, run("print", "signal", "interrupt", "thread", "leave", "last"))
        assert [letter.error_type for letter in done.letters] == ["builtins.KeyboardInterrupt", "builtins.SystemExit"]
        assert (done.written, deaths(caplog)) == (4, 0)

    def test_answers_for_one_event_at_a_time_also_to_threads(
        self, own: Children, caplog: pytest.LogCaptureFixture
    ) -> None:
        (done,) = settled(own, HERE, run("one", "threads"))
        made = [cast(SensorReading, row).home_id for _, _, row in done.rows[SensorReading]]
        assert (made, done.letters, deaths(caplog)) == (["one", "." * 100], [], 0)

    def test_counts_the_unknown_fields_of_its_events(self, own: Children) -> None:
        (done,) = settled(own, HERE, run("unknown field", "reading", "unknown field"))
        assert done.unknown_fields == {"coupon": 2}

    @pytest.mark.slow
    def test_gives_back_rows_of_a_hundred_megabytes(self, own: Children) -> None:
        (done,) = settled(own, HERE, run("huge", "last"))
        huge, last = (cast(SensorReading, row).home_id for _, _, row in done.rows[SensorReading])
        assert (len(huge), last) == (100_000_000, "last")

    def test_makes_a_letter_of_rows_that_cannot_be_sent(self, own: Children) -> None:
        (done,) = settled(own, HERE, run("stays", "last"))
        assert [(one.event.sequence_number, one.error_class, one.error) for one in done.letters] == [
            (0, "unknown", "this text stays here")
        ]

    def test_is_kept_for_the_next_run_and_ended_with_the_app(self) -> None:
        with closing(Children(MODULE, 100, LIMIT, seconds_left)) as children:
            pids = []
            for _ in range(2):
                settled(children, HERE, run("reading"))
                pids.append(children._free[0]._process.pid)
            assert pids[0] == pids[1]
        with pytest.raises(ProcessLookupError):
            os.kill(pids[0], 0)

    def test_that_was_killed_while_it_was_idle_costs_nothing(
        self, own: Children, caplog: pytest.LogCaptureFixture
    ) -> None:
        settled(own, HERE, run("reading"))
        own._free[0]._process.kill()
        own._free[0]._process.wait()
        (done,) = settled(own, HERE, run("reading"))
        assert (done.written, deaths(caplog)) == (1, 0)

    def test_is_the_first_that_the_kernel_takes(self, own: Children) -> None:
        settled(own, HERE, run("reading"))
        assert Path(f"/proc/{own._free[0]._process.pid}/oom_score_adj").read_text() == "1000\n"

    def test_has_a_session_of_its_own_so_a_signal_to_its_group_leaves_the_parent(self, own: Children) -> None:
        settled(own, HERE, run("reading"))
        pid = own._free[0]._process.pid
        assert os.getsid(pid) == os.getpgid(pid) == pid != os.getsid(0)

    def test_ends_with_its_parent(self) -> None:
        code = (
            "from datetime import timedelta; from core.settle.child_process import Children;"
            f"own = Children({MODULE!r}, 1, timedelta(seconds=60));"
            "child = own.start(); print(child._process.pid, flush=True); import os; os._exit(9)"
        )
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
        assert ended.returncode == 9, ended.stderr
        patience = Patience(20.0)
        while (
            Path(f"/proc/{ended.stdout.strip()}/cmdline").exists()
            and b"child" in Path(f"/proc/{ended.stdout.strip()}/cmdline").read_bytes()
        ):
            patience.pause(lambda: ended.stdout, 0.05)


WORDS = {
    "exit": "its process ended with status 9",
    "segfault": "its process ended by SIGSEGV",
    "overflow": "its process ended by SIGSEGV",
    "killed": "its process ended by SIGKILL, as when the memory of the machine runs out",
    "memory": "its process had no memory left (MemoryError)",
    "loop": "it did not return within 1 s (TRANSFORM_DEADLINE_SECONDS)",
    "regex": "it did not return within 1 s (TRANSFORM_DEADLINE_SECONDS)",
    "join": "it did not return within 1 s (TRANSFORM_DEADLINE_SECONDS)",
}
HANGS = ("loop", "regex", "join")  # which are not tried twice
FAST = ("segfault", "memory", "loop")  # one death, one hang


class TestAnEventThatKills:
    @pytest.mark.parametrize(
        "way", [way if way in FAST else pytest.param(way, marks=pytest.mark.slow) for way in WORDS]
    )
    def test_is_a_letter_after_two_deaths_or_one_hang_and_the_others_are_written(
        self, deadly: Children, way: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        first, second = settled(deadly, KILLING, run("fine", "fine", way, "fine", "fine"))
        (letter,) = first.letters
        assert (letter.event.sequence_number, letter.error_class, letter.status) == (2, "crash", "exhausted")
        twice = "" if way in HANGS else ", each of the 2 times that it tried this event"
        assert letter.error == WORDS[way] + twice
        assert (first.written, second.written, deaths(caplog)) == (2, 2, 1 if way in HANGS else 2)

    @pytest.mark.slow
    @pytest.mark.parametrize("way", ["quiet exit", "close", "terminate", "dies early"])
    def test_by_an_unusual_way_is_a_letter_too(self, own: Children, way: str) -> None:
        first, second = settled(own, HERE, run("reading", way, "reading"), reference_keys)
        assert [letter.error_class for letter in first.letters] == ["crash"]
        assert (first.written, second.written) == (1, 1)

    @pytest.mark.slow
    def test_is_found_among_others_that_kill(self, deadly: Children) -> None:
        done = settled(deadly, KILLING, run("exit", "fine", "exit", "exit", "fine"))
        assert [[one.event.sequence_number for one in part.letters] for part in done] == [[0], [2], [3], []]

    @pytest.mark.slow
    def test_later_is_not_mistaken_for_the_event_after_it(
        self, own: Children, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A thread that one event leaves may end the child while it works on the next one."""
        (done,) = settled(own, HERE, run("late exit", "slow", "reading"))
        assert (done.letters, deaths(caplog)) == ([], 1)


class TestAChildThatIsKilledFromOutside:
    def test_costs_its_event_one_more_try(self, deadly: Children, caplog: pytest.LogCaptureFixture) -> None:
        settled(deadly, KILLING, run("fine"))
        pid = deadly._free[-1]._process.pid

        with deadly.in_child(KILLING, nothing) as in_child:

            def rows_of(event: Event, references: References) -> Iterable[Row]:
                if event.sequence_number == 3:
                    os.kill(pid, signal.SIGKILL)
                return in_child.rows_of(event, references)

            done = settle(run(*["fine"] * 5), homes(), replace(in_child, rows_of=rows_of))
        assert (done.letters, done.written) == ([], 5)
        assert deaths(caplog) == 1

    def test_is_followed_by_no_second_one_once_another_owner_has_written_the_event(self, deadly: Children) -> None:
        def look_again() -> None:
            raise CheckpointConflict(partition(), None)

        with (
            deadly.in_child(KILLING, look_again) as in_child,
            pytest.raises(ChildNotFree, match="another owner committed"),
        ):
            settle(run("fine", "exit"), homes(), in_child)


class TestChildrenThatCannotBeStarted:
    def test_leave_the_events_to_the_process_itself_and_say_so(self, caplog: pytest.LogCaptureFixture) -> None:
        for module in ("tests.fakes.no_such_module", "tests.fakes.deadly_import"):
            with closing(Children(module, 100, LIMIT)) as children, children.in_child(HERE, nothing) as in_child:
                assert in_child is HERE
        assert [getattr(line, "action", None) for line in caplog.records] == ["child", "child"]

    def test_stop_a_run_that_had_a_child_so_that_the_host_tries_it_again(self) -> None:
        children = Children("tests.fakes.killing_transform", 100, LIMIT)
        with children.in_child(KILLING, nothing) as in_child:
            children.module = "tests.fakes.no_such_module"
            with pytest.raises(ChildNotStarted, match="status 1"):
                settle(run("fine", "exit"), homes(), in_child)


def leave(seconds: float) -> None:
    """Leave so many seconds in which a child may be asked."""
    _must_end_at.set(sum((time.monotonic(), LIMIT.total_seconds(), seconds)))


class TestAWaitForAChild:
    def test_ends_before_the_invocation_has_to(self, own: Children) -> None:
        """An event that hangs has to end within the invocation too."""
        began = time.monotonic()
        with invocation(timedelta(seconds=14)):  # an activity: its waits for the store are shorter than the invocation
            assert own.refuse_late() > LONGEST_WAIT
            with (
                own.in_child(HERE, nothing),
                own.in_child(HERE, nothing),
                own.in_child(HERE, nothing),
                pytest.raises(ChildNotFree, match=r"^no child process was free"),
            ):
                leave(MOMENT)
                own.in_child(HERE, nothing).__enter__()
            leave(-MOMENT)
            with pytest.raises(ChildNotFree, match="too old for an event that may hang"):
                own.in_child(HERE, nothing).__enter__()
        assert time.monotonic() - began < allowed(30.0)

    def test_never_leaves_an_event_to_the_process_itself(self, own: Children) -> None:
        with invocation(LIMIT):
            with own.in_child(HERE, nothing) as in_child:
                _must_end_at.set(0.0)
                with pytest.raises(ChildNotFree):
                    settle(run("reading"), homes(), in_child)
            with pytest.raises(ChildNotFree):
                own.in_child(HERE, nothing).__enter__()


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
