"""The replay commands against the real app over a hub: a dry run and its diff, the replay, and what stops it."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from examples.home_security.transform import SensorReading
from tests.acceptance.cli.terminal import hubledger
from tests.acceptance.gaps.apps import SELDOM, App, working

pytestmark = pytest.mark.slow

WHY = ("--reason", "version 2 corrects the unit")
NO_DRIVER = {**SELDOM, "TASK_SCHEDULE": "0 0 0 1 1 *"}  # a job that no request starts waits
READING = "sensor_reading"
READINGS = [(0, 0), (1, 1), (2, 2)]  # a reading has the number of its event as its value


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """An app that has written three readings of each partition."""
    with working(tmp_path_factory.mktemp("app")) as app:
        app.start(**NO_DRIVER)
        app.publish(3)
        app.until_all_accounted()
        yield app


@pytest.fixture
def damaged(app: App) -> App:
    """The app, with one reading of partition 0 changed and one deleted by hand."""
    app.engine.sql("UPDATE sensor_reading SET ppm = 700 WHERE partition_id = '0' AND sequence_number = 1")
    app.engine.sql("DELETE FROM sensor_reading WHERE partition_id = '0' AND sequence_number = 2")
    return app


def command(app: App, *words: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
    """Run a command that ends with this code."""
    done = hubledger(app.address, *words, COLUMNS="200")
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def last(done: "subprocess.CompletedProcess[str]") -> Any:
    """Return the last line of an output as JSON."""
    return json.loads(done.stdout.splitlines()[-1])


def readings(app: App) -> list[tuple[int, int]]:
    found = [kept for kept in app.engine.rows(SensorReading) if kept.partition_id == "0"]
    return [(kept.sequence_number, kept.row.ppm) for kept in found]  # type: ignore[attr-defined]


def test_a_dry_run_shows_the_rows_that_would_change_and_changes_none(damaged: App) -> None:
    before = readings(damaged)
    done = command(damaged, "replay", "start", "--partition", "0", *WHY)
    assert "dry run: nothing was changed" in done.stdout
    cells = [line.split() for line in done.stdout.splitlines()]
    changed, added = (line for line in cells if line[2:4] in (["changed", READING], ["added", READING]))
    assert (changed[:4], changed[-4:]) == (["0", "1", "changed", READING], ["ppm:", "700", "→", "1"])
    assert added[:4] == ["0", "2", "added", READING]
    assert readings(damaged) == before != READINGS


def test_a_dry_run_is_shown_again_with_its_diff_as_json(damaged: App) -> None:
    job = last(command(damaged, "replay", "start", "--partition", "0", *WHY, "--no-wait", "--json"))
    assert (job["dry_run"], job["reason"], job["total"]) == (True, WHY[1], 3)
    damaged.until(lambda: last(command(damaged, "tasks", "show", job["task_id"], "--json"))["status"] == "done")
    assert WHY[1] in command(damaged, "tasks", "show", job["task_id"]).stdout
    diff = last(command(damaged, "tasks", "diff", job["task_id"], "--json"))
    assert [(one["sequence_number"], len(one["changed"]), len(one["added"])) for one in diff["events"]] == [
        ("1", 1, 0),
        ("2", 0, 1),
    ]
    assert job["task_id"] in command(damaged, "tasks", "list", "--all").stdout


def test_a_replay_for_real_comes_after_its_dry_run_and_a_yes(damaged: App) -> None:
    before = readings(damaged)
    refused = command(damaged, "replay", "start", "--partition", "0", "--for-real", *WHY, code=2)
    assert "--yes" in refused.stderr
    assert readings(damaged) == before
    done = command(damaged, "replay", "start", "--partition", "0", "--for-real", "--yes", "--json", *WHY)
    jobs = [one for one in map(json.loads, done.stdout.splitlines()) if "status" in one]
    assert [(one["dry_run"], one["status"]) for one in jobs] == [(True, "done"), (False, "done")]
    assert readings(damaged) == READINGS
