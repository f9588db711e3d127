"""Hubledger's own function_app on our worker and on Microsoft's."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.functions_host.conftest import WORKERS
from tests.fakes.rooms import migrate_examples
from tests.patience import allowed

APP = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module", params=WORKERS)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The status and the replay of one run."""
    return _run("real_app", request.param, tmp_path_factory.mktemp("real") / "hubledger.db")


def test_the_app_commits_a_batch_and_reports_its_status(found: Any) -> None:
    status = found["status"]
    assert (status["written"], status["dead_lettered"], status["ledger_balanced"]) == (2, 1, True)
    assert status["partitions"][0]["checkpoint"] == "2"
    assert status["hub_fault"] is not None  # no hub listens at this address, and the books are shown all the same
    assert found["reads_times_fast"] is True


@pytest.mark.proof("replay")
def test_a_replay_is_driven_to_its_end_by_its_orchestration(found: Any) -> None:
    job = found["job"]
    assert (job["status"], job["fault"], job["done"]) == ("done", None, 3)
    names = ("written", "dead_lettered", "letters_added", "rows_retracted")
    assert [job["counts"][name] for name in names] == [2, 1, 0, 3]
    assert [one["move"] for one in job["history"]] == ["begin"]


@pytest.mark.slow
@pytest.mark.parametrize("worker", WORKERS)
def test_a_keeper_that_is_ended_purged_and_doubled_settles_every_letter_once(worker: str, tmp_path: Path) -> None:
    database = tmp_path / "hubledger.db"
    assert [status for status, _ in _run("keeper_app", worker, database)] == ["resolved"] * 7
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM sensor_reading").fetchone() == (7,)
        resolved = "SELECT COUNT(*) FROM dead_letter_attempt WHERE status = 'resolved'"
        assert connection.execute(resolved).fetchone() == (7,)


def _run(script: str, worker: str, database: Path) -> Any:
    migrate_examples(database)
    settings = {
        "EVENTHUB": "Endpoint=sb://localhost:9;SharedAccessKeyName=k;SharedAccessKey=s;UseDevelopmentEmulator=true",
        "EVENTHUB_NAME": "telemetry",
        "EVENTHUB_CONSUMER_GROUP": "hubledger",
        "STORE_CONNECTION": f"sqlite:{database}",
        "DEAD_LETTER_BASE_SECONDS": "0.2",
        "DEAD_LETTER_CEILING_SECONDS": "0.5",
        "DEAD_LETTER_ATTEMPTS": "100",
        "DEAD_LETTER_LOOK_SECONDS": "0.2",
        "DEAD_LETTER_LEASE_SECONDS": "2",
        "AzureFunctionsJobHost__extensions__eventHubs__minEventBatchSize": "1",
    }
    command = [sys.executable, "-m", f"tests.acceptance.functions_host.{script}", worker, str(APP), str(database)]
    done = subprocess.run(
        command,
        cwd=APP,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=allowed(120),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
