"""Hubledger's own function_app on our worker and on Microsoft's."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.store.schema import migrate_sqlite
from tests.acceptance.functions_host.conftest import MICROSOFT_S

APP = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("worker", ["builtin", pytest.param("microsoft", marks=MICROSOFT_S)])
def test_the_app_commits_a_batch_and_tells_its_status(worker: str, tmp_path: Path) -> None:
    status = _run(worker, tmp_path / "hubledger.db")
    assert (status["written"], status["dead_lettered"], status["ledger_balanced"]) == (2, 1, True)
    assert status["partitions"][0]["checkpoint"] == "2"
    assert status["hub_fault"] is not None  # no hub listens at this address, and the books are shown all the same
    assert status["reads_times_fast"] is True


@pytest.mark.parametrize("worker", ["builtin", pytest.param("microsoft", marks=MICROSOFT_S)])
def test_a_replay_is_driven_to_its_end_by_its_orchestration(worker: str, tmp_path: Path) -> None:
    job = _run(worker, tmp_path / "hubledger.db", "real_replay")
    assert (job["status"], job["fault"], job["done"]) == ("done", None, 3)
    counts = job["counts"]
    assert (counts["written"], counts["dead_lettered"], counts["letters_added"], counts["rows_retracted"]) == (
        2,
        1,
        0,
        3,
    )
    assert [one["move"] for one in job["history"]] == ["begin"]


def _run(worker: str, database: Path, script: str = "real_app") -> dict:
    migrate_sqlite(database)
    settings = {
        "EVENTHUB": "Endpoint=sb://localhost:9;SharedAccessKeyName=k;SharedAccessKey=s;UseDevelopmentEmulator=true",
        "EVENTHUB_NAME": "telemetry",
        "EVENTHUB_CONSUMER_GROUP": "hubledger",
        "STORE_CONNECTION": f"sqlite:{database}",
    }
    command = [sys.executable, "-m", f"tests.acceptance.functions_host.{script}", worker, str(APP)]
    done = subprocess.run(
        command, cwd=APP, env={**os.environ, **settings}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
