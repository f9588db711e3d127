"""Events that kill the local host, which is started again each time: they become letters, and all else is written."""

from pathlib import Path

import pytest

from tests.acceptance.gaps.apps import SELDOM, STREAM, App, working
from tests.acceptance.killers.supervised import CRASHED, SETTINGS, Supervisor, accounted, letters, start_host

pytestmark = pytest.mark.slow


def run(app: App) -> list[int]:
    """Run host after host until all is accounted for; return how each that died ended."""
    supervisor = Supervisor(lambda: start_host(app, **SELDOM, **SETTINGS))
    return supervisor.until(lambda: accounted(app.engine, STREAM) == app.published)


def test_an_event_that_ends_its_process_is_found_in_its_batch_within_ten_deaths(tmp_path: Path) -> None:
    with working(tmp_path) as app:
        app.send("0", [b"fine"] * 61 + [b"exit"] + [b"fine"] * 38)
        app.send("1", [b"fine"] * 100)
        statuses = run(app)
        assert set(statuses) == {9} and 3 <= len(statuses) <= 10
        assert letters(app.engine) == {"exit": CRASHED}
        died = app.lines("attempt_died")
        assert {line["partition"] for line in died} <= {"telemetry/hubledger/0", "telemetry/hubledger/1"}
        assert (died[-1]["first"], died[-1]["last"], died[-1]["gives_up"]) == (61, 61, True)
        app.publish(100)
        app.until_all_accounted()
        assert app.engine.sql("SELECT COUNT(*) FROM batch_attempt") == [(0,)]


def test_crashes_hangs_and_memory_beyond_the_limit_kill_only_their_own_event(tmp_path: Path) -> None:
    with working(tmp_path) as app:
        app.send("0", [b"segfault"])
        app.send("1", [b"fine"] * 7 + [b"leave"])
        statuses = run(app)
        assert statuses == [-11] * 3
        for way, status in ((b"killed", -9), (b"sleep", 70), (b"regex", 1)):
            app.end()
            app.send("0", [way])
            app.send("1", [b"fine"] * 8)
            assert run(app) == [status] * 3, way
        app.end()
        app.send("0", [b"memory"])
        assert run(app) == []
        crashed = dict.fromkeys(("segfault", "killed", "sleep", "regex", "memory"), CRASHED)
        assert letters(app.engine) == {**crashed, "leave": ("unknown", "SystemExit", "waiting")}
        hung = app.lines("hang")
        assert [(line["partition"], line["first"]) for line in hung] == [("telemetry/hubledger/0", 2)] * 3
