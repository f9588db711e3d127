"""From the trigger to workers and back, as docs/scale-out.md has it: nothing is lost, and nothing written twice."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.acceptance.gaps.apps import DEADLINE, HUB, SELDOM, App
from tests.acceptance.worker.started import TIMES, start
from tests.patience import allowed

TRIGGER_OFF = {"AzureWebJobs.ingest.Disabled": "true", **SELDOM}


@contextmanager
def worker_of(app: App) -> "Iterator[subprocess.Popen[str]]":
    """Start a worker with the settings of the app, and end it with a signal."""
    with start(app.settings(), *TIMES, output=subprocess.DEVNULL) as worker:
        try:
            yield worker
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(allowed(DEADLINE)) == 0
        finally:
            worker.kill()


def test_the_app_moves_to_a_worker_and_back_while_events_arrive(app: App) -> None:
    app.start(**SELDOM)
    app.publish(300)
    app.until(lambda: sum(app.accounted().values()) > 0)
    app.start_host(**TRIGGER_OFF)
    app.until(lambda: app.emulator.reader_count(HUB) == 0)
    app.publish(100)
    with worker_of(app):
        app.until_all_accounted()
        app.publish(100)
        app.until_all_accounted()
        app.publish(100)
    app.publish(100)
    app.start_host(**SELDOM)
    app.until_all_accounted()
    app.assert_each_number_once()
