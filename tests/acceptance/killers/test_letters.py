"""A letter that ends its process costs one process, with the durable keeper and with the worker."""

import subprocess
from pathlib import Path

from tests.acceptance.gaps.apps import App, working
from tests.acceptance.killers.supervised import Supervisor, start_host
from tests.acceptance.worker.started import TIMES, start

MOST_DEATHS = 1
QUICK = {
    "TRANSFORM": "tests.fakes.killing_transform",
    "DEAD_LETTER_BASE_SECONDS": "0.2",
    "DEAD_LETTER_CEILING_SECONDS": "1",
    "DEAD_LETTER_ATTEMPTS": "100",
    "DEAD_LETTER_LOOK_SECONDS": "0.2",
    "DEAD_LETTER_LEASE_SECONDS": "1",
    "AzureFunctionsJobHost__extensions__eventHubs__minEventBatchSize": "1",
}


def statuses(app: App) -> dict[int, tuple[str, str]]:
    """Return status and class of each letter of partition 0."""
    letters = [each for each in app.engine.letters() if each.partition_id == "0"]
    return {letter.sequence_number: (letter.status, letter.error_class) for letter in letters}


def isolate(app: App, supervisor: Supervisor) -> None:
    """Publish a deadly letter among others, arm it, and see it alone, the others settled, and the process at work."""
    app.send("0", [b"fine", b"late", b"late", b"deadly", b"late", b"late"])
    supervisor.until(lambda: len(statuses(app)) == 5)
    assert supervisor.statuses == []
    Path(f"{app.folder}/armed").touch()
    supervisor.until(lambda: statuses(app)[3] == ("exhausted", "crash"))
    supervisor.until(lambda: [statuses(app)[number][0] for number in (1, 2, 4, 5)] == ["resolved"] * 4)
    deaths = len(supervisor.statuses)
    assert set(supervisor.statuses) == {9}
    Path(f"{app.folder}/armed").unlink()
    app.send("0", [b"late", b"fine"])
    supervisor.until(lambda: 6 in statuses(app))
    Path(f"{app.folder}/armed").touch()
    supervisor.until(lambda: statuses(app)[6][0] == "resolved")
    assert len(supervisor.statuses) == deaths, "the letter killed again"
    assert statuses(app)[3] == ("exhausted", "crash")


def settings_of(app: App) -> dict[str, str]:
    return {**QUICK, "DEADLY": f"{app.folder}/armed"}


def test_the_durable_keeper_isolates_a_deadly_letter_and_the_host_does_not_loop(tmp_path: Path) -> None:
    with working(tmp_path) as app:
        isolate(app, Supervisor(lambda: start_host(app, **settings_of(app)), MOST_DEATHS))  # the app ends its last host


def test_the_worker_isolates_a_deadly_letter(tmp_path: Path) -> None:
    with working(tmp_path) as app:
        settings = {**app.settings(), **settings_of(app)}
        supervisor = Supervisor(lambda: start(settings, *TIMES, output=subprocess.DEVNULL), MOST_DEATHS)
        try:
            isolate(app, supervisor)
        finally:
            supervisor.end()
