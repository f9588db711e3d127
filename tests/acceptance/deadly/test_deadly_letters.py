"""A letter that ends its process is isolated within ten deaths, by the durable keeper and by the worker."""

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.acceptance.gaps.apps import DEADLINE, App, working
from tests.acceptance.worker.started import start

pytestmark = pytest.mark.slow

MOST_DEATHS, KILLED_BY_LETTER = 10, 9
QUICK = {
    "TRANSFORM": "tests.acceptance.deadly.killing_transform",
    "DEAD_LETTER_BASE_SECONDS": "0.2",
    "DEAD_LETTER_CEILING_SECONDS": "1",
    "DEAD_LETTER_ATTEMPTS": "100",
    "DEAD_LETTER_LOOK_SECONDS": "0.2",
    "DEAD_LETTER_LEASE_SECONDS": "1",
    "AzureFunctionsJobHost__extensions__eventHubs__minEventBatchSize": "1",
}


@dataclass
class Supervisor:
    """Starts a process again whenever it has ended, and counts its deaths."""

    start: Callable[[], "subprocess.Popen[str]"]
    deaths: int = 0
    process: "subprocess.Popen[str]" = field(init=False)

    def __post_init__(self) -> None:
        self.process = self.start()

    def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 2 * DEADLINE
        while not holds():
            assert time.monotonic() < deadline, f"not in time, after {self.deaths} deaths"
            if self.process.poll() is not None:
                _, errors = self.process.communicate()
                assert self.process.returncode == KILLED_BY_LETTER, errors
                self.deaths += 1
                assert self.deaths <= MOST_DEATHS
                self.process = self.start()
            time.sleep(0.02)

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


def statuses(app: App) -> dict[int, tuple[str, str]]:
    """Return status and class of each letter of partition 0."""
    letters = [each for each in app.engine.letters() if each.partition_id == "0"]
    return {letter.sequence_number: (letter.status, letter.error_class) for letter in letters}


def isolate(app: App, supervisor: Supervisor) -> None:
    """Publish a deadly letter among others, arm it, and see it alone, the others settled, and the process at work."""
    app.send("0", [b"reading home-1", b"late home-1", b"late home-2", b"deadly", b"late home-3", b"late home-4"])
    supervisor.until(lambda: len(statuses(app)) == 5)
    assert supervisor.deaths == 0
    Path(f"{app.folder}/armed").touch()
    supervisor.until(lambda: statuses(app)[3] == ("exhausted", "crash"))
    supervisor.until(lambda: [statuses(app)[number][0] for number in (1, 2, 4, 5)] == ["resolved"] * 4)
    deaths = supervisor.deaths
    assert 1 <= deaths <= MOST_DEATHS
    Path(f"{app.folder}/armed").unlink()
    app.send("0", [b"late home-5", b"reading home-1"])
    supervisor.until(lambda: 6 in statuses(app))
    Path(f"{app.folder}/armed").touch()
    supervisor.until(lambda: statuses(app)[6][0] == "resolved")
    assert supervisor.deaths == deaths, "the letter killed again"
    assert statuses(app)[3] == ("exhausted", "crash")
    print(f"isolated after {deaths} deaths")


def settings_of(app: App) -> dict[str, str]:
    return {**QUICK, "DEADLY": f"{app.folder}/armed"}


def test_the_durable_keeper_isolates_a_deadly_letter_and_the_host_does_not_loop(tmp_path: Path) -> None:
    with working(tmp_path) as app:

        def started() -> "subprocess.Popen[str]":
            app.start_host(**settings_of(app))
            assert app.host is not None
            return app.host

        supervisor = Supervisor(started)
        isolate(app, supervisor)  # the app ends its last host


def test_the_worker_isolates_a_deadly_letter(tmp_path: Path) -> None:
    with working(tmp_path) as app:
        settings = {**app.settings(), **settings_of(app)}
        supervisor = Supervisor(
            lambda: start(settings, "--interval", "0.5", "--expiry", "3", output=subprocess.DEVNULL)
        )
        try:
            isolate(app, supervisor)
        finally:
            supervisor.end()
