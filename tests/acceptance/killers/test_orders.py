"""Events that kill only under a new version of the transform: a replay, its dry run and a redrive isolate them too."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.gaps.apps import SELDOM, STREAM, App, working
from tests.acceptance.killers.supervised import CRASHED, SETTINGS, WAYS, accounted, letters

OFTEN = {
    **SELDOM,
    "TASK_SCHEDULE": "* * * * * *",
    "DEAD_LETTER_LOOK_SECONDS": "0.5",
    "DEAD_LETTER_LEASE_SECONDS": "5",
    "AzureFunctionsJobHost__extensions__eventHubs__minEventBatchSize": "1",
}
MOST_DEATHS = 2


def replayed(app: App, dry_run: bool) -> None:
    """Replay everything, and see each killer among the letters of the answer."""
    job = app.open_task("replay", reason="a new version", dry_run=dry_run)
    app.until(lambda: task_of(app, job).get("status") == "done")
    counts = task_of(app, job)["counts"]
    assert (counts["dead_lettered"], counts["written"]) == (len(WAYS), 18 * len(WAYS))


def task_of(app: App, job: str) -> Any:
    """Return a task; nothing while no worker answers."""
    try:
        return app.request(f"api/tasks/{job}")
    except OSError:
        return {}


def dry_run(app: App) -> None:
    replayed(app, dry_run=True)
    assert letters(app.engine) == {}


def replay(app: App) -> None:
    replayed(app, dry_run=False)
    assert letters(app.engine) == {way.decode(): CRASHED for way in WAYS}


def redrive(app: App) -> None:
    chosen = {"move": "retry", "filter": {"status": "waiting"}, "expected_count": len(WAYS), "reason": "a new version"}
    app.open_task("redrive", **chosen)
    app.until(lambda: set(letters(app.engine).values()) == {CRASHED})


@pytest.mark.parametrize(("order", "before"), [(dry_run, "not"), (replay, "not"), (redrive, "fails")])
def test_eight_killers_cost_two_workers_at_most_and_the_host_stays(
    tmp_path: Path, order: Callable[[App], None], before: str
) -> None:
    with working(tmp_path, len(WAYS)) as app:
        for id, way in enumerate(WAYS):
            app.send(str(id), [*[b"fine"] * 9, way, *[b"fine"] * 9])
        app.start_host(**OFTEN, **SETTINGS, KILLS=before)
        app.until(lambda: accounted(app.engine, STREAM) == app.published)
        app.start_host("--like-azure", **OFTEN, **SETTINGS)
        order(app)
        assert len(app.lines("worker_died")) <= MOST_DEATHS
        assert app.host is not None and app.host.poll() is None and app.lines("host_recycled") == []
        assert app.engine.sql("SELECT COUNT(*) FROM batch_attempt") == [(0,)]
