"""`make demo` and `make run` as a person starts them: whole processes, a real hub over AMQP, the app in its host."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from local.processes import APP

DEADLINE = 120.0  # seconds
KEYS = [
    "published",
    "accounted",
    "written",
    "filtered",
    "dead_lettered",
    "letters",
    "gaps",
    "redelivered_dropped",
    "ledger_balanced",
    "seconds",
    "events_per_second",
]

pytestmark = pytest.mark.slow


class Started:
    """A command and all that it starts: they share a mark in their environment."""

    def __init__(self, *command: str) -> None:
        self._mark = f"HUBLEDGER_TEST={uuid.uuid4()}"
        name, _, value = self._mark.partition("=")
        self._popen = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=APP,
            env={**os.environ, name: value},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait(self, deadline: float = DEADLINE) -> "Ended":
        out, err = self._popen.communicate(timeout=deadline)
        return Ended(self._popen.returncode, out.splitlines(), err)

    def stop(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    def wait_for_line(self, holds: Callable[[str], bool]) -> str:
        """The first line of its standard output that holds."""
        assert self._popen.stdout is not None
        alarm = threading.Timer(DEADLINE, self._popen.kill)
        alarm.start()
        try:
            return next(line for line in self._popen.stdout if holds(line))
        finally:
            alarm.cancel()

    def left(self) -> list[int]:
        """The processes with the mark that are still there."""
        return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and self._marked(entry)]

    def _marked(self, entry: Path) -> bool:
        try:
            return self._mark.encode() in (entry / "environ").read_bytes()
        except OSError:
            return False

    def end(self) -> None:
        """Whatever a test left, it leaves nothing behind."""
        if self._popen.poll() is None:
            self._popen.terminate()
            self._popen.communicate(timeout=DEADLINE)


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: list[str]
    err: str


Start = Callable[..., Started]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts commands and ends those that still run."""
    started: list[Started] = []

    def starting(*command: str) -> Started:
        started.append(Started(*command))
        return started[-1]

    yield starting
    for each in started:
        each.end()


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port


def test_a_small_demo_proves_that_every_event_is_accounted_for(start: Start, tmp_path: Path) -> None:
    demo = start("local.demo", "--events", "2000", "--folder", str(tmp_path))
    ended = demo.wait()
    assert ended.code == 0, ended.err
    figures = json.loads(ended.out[-1])
    assert list(figures) == KEYS
    assert figures["published"] == figures["accounted"] == 2_000
    assert figures["written"] + figures["filtered"] + figures["dead_lettered"] == 2_000
    assert figures["dead_lettered"] > 0 and figures["ledger_balanced"] is True
    letters = figures["letters"]
    assert letters["resolved"] > 0 and letters["waiting"] == 0
    assert letters["resolved"] + letters["exhausted"] == figures["dead_lettered"]
    assert figures["gaps"] == {"healed": 0, "absent": 0}
    assert demo.left() == []
    assert list(tmp_path.iterdir()) == []


def test_a_demo_whose_host_is_killed_on_the_way_proves_it_too(start: Start, tmp_path: Path) -> None:
    demo = start("local.demo", "--events", "4000", "--kill", "1", "--rate", "2000", "--folder", str(tmp_path))
    ended = demo.wait()
    assert ended.code == 0, ended.err
    figures = json.loads(ended.out[-1])
    assert list(figures) == [*KEYS, "kills"]
    assert figures["published"] == figures["accounted"] == 4_000
    assert figures["kills"] == 1
    assert any(line.startswith("killing the functions host") for line in ended.out)
    assert demo.left() == []


def test_a_demo_with_workers_of_which_one_is_killed_proves_it_too(start: Start, tmp_path: Path) -> None:
    options = ("--events", "2000", "--rate", "1000", "--folder", str(tmp_path))
    demo = start("local.demo", "--workers", "2", "--kill", "1", *options)
    ended = demo.wait()
    assert ended.code == 0, ended.err
    figures = json.loads(ended.out[-1])
    assert list(figures) == [*KEYS, "kills", "workers"]
    assert figures["published"] == figures["accounted"] == 2_000
    assert (figures["kills"], figures["workers"], figures["ledger_balanced"]) == (1, 2, True)
    assert any(line.startswith("killing worker-") for line in ended.out)
    assert demo.left() == []


@pytest.mark.parametrize("transform", ["home_security", "flight_info"])
def test_a_demo_in_chaos_proves_it_too_and_has_healed_what_the_host_lost(
    start: Start, tmp_path: Path, transform: str
) -> None:
    options = ("--events", "4000", "--rate", "2000", "--transform", transform, "--folder", str(tmp_path))
    demo = start("local.demo", "--chaos", "--kill", "1", *options)
    ended = demo.wait()
    assert ended.code == 0, ended.err
    figures = json.loads(ended.out[-1])
    assert list(figures) == [*KEYS, "kills", "chaos"]
    assert figures["published"] == figures["accounted"] >= 4_000
    assert figures["gaps"]["healed"] > 0 == figures["gaps"]["absent"]
    assert figures["chaos"].pop("skipped_batches") >= 16, "the first of each partition at least"
    assert (figures["kills"], figures["chaos"]) == (1, {"cuts": 2, "locks": 1})
    for told in ("killing the functions host", "skipping: the host loses", "cutting every", "locking the store"):
        assert any(line.startswith(told) for line in ended.out), told
    assert demo.left() == []


@pytest.mark.parametrize("more", [(), ("--workers", "2")], ids=["host", "workers"])
def test_a_demo_of_flights_proves_it_too(start: Start, tmp_path: Path, more: tuple[str, ...]) -> None:
    demo = start("local.demo", "--events", "2000", "--transform", "flight_info", "--folder", str(tmp_path), *more)
    ended = demo.wait()
    assert ended.code == 0, ended.err
    figures = json.loads(ended.out[-1])
    assert figures["published"] == figures["accounted"] == 2_000
    assert figures["written"] + figures["dead_lettered"] == 2_000
    assert figures["dead_lettered"] > 0 and figures["filtered"] == 0
    assert demo.left() == []


def test_a_demo_whose_worker_dies_by_itself_says_so_and_leaves_no_process_behind(start: Start, tmp_path: Path) -> None:
    options = ("--events", "1000000", "--rate", "500", "--workers", "2", "--folder", str(tmp_path))
    demo = start("local.demo", *options)
    demo.wait_for_line(lambda line: line.startswith("publishing"))
    worker = next(pid for pid in demo.left() if b"core.worker" in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(worker, signal.SIGKILL)
    ended = demo.wait()
    assert ended.code == 1
    assert "ended with code -9" in ended.err and "demo: worker-" in ended.err
    assert demo.left() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_demo_that_is_stopped_leaves_no_process_behind(start: Start, tmp_path: Path, number: signal.Signals) -> None:
    demo = start("local.demo", "--events", "1000000", "--rate", "500", "--folder", str(tmp_path))
    demo.wait_for_line(lambda line: line.startswith("publishing"))
    assert len(demo.left()) >= 4
    demo.stop(number)
    ended = demo.wait()
    assert ended.code == 128 + number
    assert f"stopped by {number.name}" in ended.err
    assert demo.left() == []


def test_a_demo_whose_emulator_dies_says_so_and_leaves_no_process_behind(start: Start, tmp_path: Path) -> None:
    demo = start("local.demo", "--events", "1000000", "--rate", "500", "--folder", str(tmp_path))
    demo.wait_for_line(lambda line: line.startswith("publishing"))
    emulator = next(pid for pid in demo.left() if b"local.event_hubs" in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(emulator, signal.SIGKILL)
    ended = demo.wait()
    assert ended.code == 1
    assert "demo: emulator ended with code -9" in ended.err
    assert demo.left() == []


def test_a_run_tells_its_progress_and_goes_on_where_it_was_stopped(start: Start, tmp_path: Path) -> None:
    for turn in ("first", "second"):
        options = ["--hub-port", str(free_port()), "--port", str(free_port()), "--folder", str(tmp_path)]
        run = start("local.run", *options, "--rate", "400", "--homes", "500")
        line = run.wait_for_line(lambda line: line.startswith("published") and accounted(line) > 500)
        assert "ledger balanced" in line, turn
        run.stop(signal.SIGINT)
        ended = run.wait()
        assert (ended.code, ended.err) == (0, ""), turn
        assert run.left() == []


def accounted(line: str) -> int:
    return int(line.split("accounted ")[1].split()[0].replace(",", ""))


def test_a_second_run_in_the_same_folder_is_refused(start: Start, tmp_path: Path) -> None:
    first = start("local.run", "--hub-port", str(free_port()), "--port", str(free_port()), "--folder", str(tmp_path))
    first.wait_for_line(lambda line: line.startswith("status: http://localhost:"))
    second = start("local.run", "--hub-port", str(free_port()), "--port", str(free_port()), "--folder", str(tmp_path))
    ended = second.wait()
    assert ended.code == 1
    assert "another run uses" in ended.err
