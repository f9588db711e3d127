import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from local.programs import APP
from tests.acceptance.functions_host.conftest import WORKERS
from tests.acceptance.started import AT_ONCE, NO_HUB, settings_of, start
from tests.fakes.rooms import migrate_examples
from tests.patience import ended


@pytest.mark.proof("replay")
@pytest.mark.parametrize("worker", WORKERS)
def test_the_app_commits_a_batch_replays_it_and_settles_every_letter_once_though_its_keeper_is_ended_and_doubled(
    worker: str, tmp_path: Path
) -> None:
    database = tmp_path / "hubledger.db"
    migrate_examples(database)
    quick = {"BASE": "0.2", "CEILING": "0.5", "LOOK": "0.2", "LEASE": "2"}
    settings = settings_of(NO_HUB, database) | {f"DEAD_LETTER_{name}_SECONDS": each for name, each in quick.items()}
    settings |= {**AT_ONCE, "TRANSFORM": "examples.home_security", "DEAD_LETTER_ATTEMPTS": "100"}
    words = ("tests.acceptance.functions_host.real_app", worker, str(APP), str(database))
    process = start(*words, settings=settings)
    out, errors = ended(process, 120)
    assert process.returncode == 0, errors
    found = json.loads(out.splitlines()[-1])
    status, job = found["status"], found["job"]
    assert (status["written"], status["dead_lettered"], status["ledger_balanced"]) == (2, 1, True)
    assert status["partitions"][0]["checkpoint"] == "2"
    assert status["hub_fault"] is not None  # no hub listens at this address, and the books are shown all the same
    assert found["reads_times_fast"] is True
    assert (job["status"], job["fault"], job["done"]) == ("done", None, 3)
    names = ("written", "dead_lettered", "letters_added", "rows_retracted")
    assert [job["counts"][name] for name in names] == [2, 1, 0, 3]
    assert [one["move"] for one in job["history"]] == ["begin"]
    assert found["letters"] == ["resolved"] * 7
    with closing(sqlite3.connect(database)) as connection:
        counted = "SELECT COUNT(*) FROM sensor_reading WHERE partition_id = '0'"
        resolved = "SELECT COUNT(*) FROM dead_letter_attempt WHERE status = 'resolved'"
        assert [connection.execute(each).fetchone() for each in (counted, resolved)] == [(7,), (7,)]
