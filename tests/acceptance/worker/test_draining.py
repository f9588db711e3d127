"""A worker that receives SIGTERM loses and doubles no event, and releases its partitions at once."""

import asyncio
import json
import signal
import subprocess
import threading
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from core.app import Sources
from core.remote.hub.reader import SdkHubReader
from core.settings import read_settings
from core.store.script import Outcome, Script
from core.store.sqlite.database import SqliteDatabase
from core.worker.__main__ import ENDED_EARLY
from core.worker.health import main as ask
from core.worker.work import Terms, check_and_work
from tests.acceptance.worker.started import (
    DEADLINE,
    PARTITIONS,
    Workplace,
    send_to_the_end,
    settings_of,
)
from tests.fakes.plain_transform import PLAIN
from tests.patience import allowed, ended

UNTIL_OWNED, UNTIL_WRITTEN = "claims its first partitions", "writes its first batches"
TERMS = Terms(timedelta(seconds=0.5), timedelta(seconds=3), None)


def end(place: Workplace, worker: "subprocess.Popen[str]", moment: str) -> None:
    """Send signals from a moment on, and assert that the worker ends in order."""
    before = sum(place.accounted())
    place.until(lambda: bool(place.shares()) if moment == UNTIL_OWNED else sum(place.accounted()) > before)
    send_to_the_end(worker)
    _, errors = ended(worker, DEADLINE)
    assert (worker.returncode, errors) == (0, ""), moment
    assert place.shares() == [], f"it still owns partitions after a signal when it {moment}"


@pytest.mark.proof("worker")
def test_a_signal_under_load_loses_nothing_and_releases_every_partition(place: Workplace) -> None:
    for moment in (UNTIL_WRITTEN, UNTIL_OWNED):
        place.publish(500)
        end(place, place.start_worker(), moment)
    assert sum(place.accounted()) < PARTITIONS * place.published, "every signal came after the load"
    place.start_worker()
    place.until_all_accounted()
    place.assert_each_event_once()


def test_a_signal_before_the_worker_is_ready_ends_it(place: Workplace) -> None:
    worker = place.start_worker()
    place.until(lambda: catches(worker.pid, signal.SIGTERM))
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(allowed(DEADLINE)) == 0


class SlowStart(SqliteDatabase):
    """A database that holds the statement of a start until the test releases it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.running, self.go_on, self.ran = threading.Event(), threading.Event(), threading.Event()

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        is_held = script.steps[0].statement == "open_stream"
        if is_held:
            self.running.set()
            assert self.go_on.wait(allowed(DEADLINE))
        outcome = super().run(script, rehearse)
        if is_held:
            self.ran.set()
        return outcome


def test_a_start_that_is_cancelled_waits_for_the_thread_at_the_database(place: Workplace) -> None:
    settings = read_settings(settings_of(place.emulator.connection_string, place.engine.path))

    async def has_waited() -> bool:
        with closing(SlowStart(place.engine.path)) as database, closing(SdkHubReader(settings)) as hub:
            working = asyncio.ensure_future(check_and_work(Sources(settings, database, hub, PLAIN), TERMS))
            assert await asyncio.to_thread(database.running.wait, allowed(DEADLINE))
            working.cancel()
            asyncio.get_running_loop().call_later(0.1, database.go_on.set)
            with suppress(asyncio.CancelledError):
                await working
            return database.ran.is_set()

    assert asyncio.run(has_waited())


def catches(pid: int, number: signal.Signals) -> bool:
    """Return True when a process has a handler of a signal."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    mask = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(mask >> (number - 1) & 1)


def test_a_batch_that_hangs_does_not_hold_a_worker_that_is_told_to_end(place: Workplace) -> None:
    place.send("0", b"sleep")
    place.send("1", b"any other")
    killing = {"TRANSFORM": "tests.fakes.killing_transform", "BATCH_LINES_PER_MINUTE": "0"}
    worker = place.start_worker("--grace", "1", apart=False, **killing)
    place.until(
        lambda: place.engine.sql("SELECT COUNT(*) FROM batch_attempt") == [(1,)] and sum(place.accounted()) == 1
    )
    worker.send_signal(signal.SIGTERM)
    printed, _ = ended(worker, 20)  # below the default of --grace
    assert worker.returncode == ENDED_EARLY
    assert [json.loads(line).get("batches") for line in printed.splitlines()][-2:] == [1, None], printed
    assert sum(place.accounted()) == 1
    place.start_worker()
    place.until(lambda: sum(place.accounted()) == 2)


def test_a_worker_that_is_asked_answers_until_it_hangs(place: Workplace) -> None:
    worker = place.start_worker("--health", "127.0.0.1:0")
    assert worker.stdout is not None
    address = next(json.loads(line)["health"] for line in worker.stdout if "worker ready" in line)
    assert ask([address]) == 0
    place.until(lambda: len(place.shares()) == 1)
    place.freeze(worker)
    assert ask([address]) == 1
    worker.send_signal(signal.SIGCONT)
    assert ask([address]) == 0
