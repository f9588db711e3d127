"""Events that kill the local host, which is started again each time: they become letters, and all else is written."""

from pathlib import Path

import pytest

from tests.acceptance.gaps.apps import SELDOM, STREAM, App, working
from tests.acceptance.killers.supervised import CRASHED, SETTINGS, Supervisor, accounted, letters, start_host

pytestmark = pytest.mark.slow
AT_ONCE = {"AzureFunctionsJobHost__extensions__eventHubs__minEventBatchSize": "1"}


class Hosts:
    """Host after host of an app, each without a wait for more events than there are."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._supervisor = Supervisor(lambda: start_host(app, **SELDOM, **SETTINGS, **AT_ONCE))

    def deaths(self) -> list[int]:
        """Run until all is accounted for; return how each host ended that has died meanwhile."""
        before = len(self._supervisor.statuses)
        return self._supervisor.until(lambda: accounted(self._app.engine, STREAM) == self._app.published)[before:]


def test_an_event_that_ends_its_process_is_found_in_its_batch_within_ten_deaths(tmp_path: Path) -> None:
    with working(tmp_path) as app:
        app.send("0", [b"fine"] * 61 + [b"exit"] + [b"fine"] * 38)
        app.send("1", [b"fine"] * 100)
        statuses = Hosts(app).deaths()
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
        app.send("1", [b"fine"] * 7 + [b"leave"])
        hosts = Hosts(app)
        for way, statuses in ((b"killed", [-9] * 3), (b"sleep", [70] * 3), (b"memory", [])):
            app.send("0", [way])
            app.send("1", [b"fine"] * 8)
            assert hosts.deaths() == statuses, way
        crashed = dict.fromkeys(("killed", "sleep", "memory"), CRASHED)
        assert letters(app.engine) == {**crashed, "leave": ("unknown", "SystemExit", "waiting")}
        hung = app.lines("hang")
        assert [(line["partition"], line["first"]) for line in hung] == [("telemetry/hubledger/0", 1)] * 3
