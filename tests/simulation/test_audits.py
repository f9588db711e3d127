"""Histories of batches, gaps, retries, replays and moves by hand audit balanced; the audit names each planted damage.

Repeat one with `pytest -k seed7`.
"""

from pathlib import Path

import pytest

from core.ledger.books import read_books
from tests.simulation.histories import History, history
from tests.simulation.seeds import seeds


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Return a history with at least two partitions, letters that replays made, and gaps."""
    return history(34, tmp_path_factory.mktemp("history") / "store.db")


@pytest.fixture
def made(ended: History, tmp_path: Path) -> History:
    """Return a copy of the history, which a test may damage."""
    return ended.copied(tmp_path / "store.db")


@pytest.mark.parametrize("seed", seeds(range(20), 3), ids="seed{}".format)
def test_a_history_audits_balanced_and_explains_every_number(seed: int, tmp_path: Path) -> None:
    made = history(seed, tmp_path / "store.db")
    assert made.audit() == []
    books = read_books(made.desk.ledger)
    assert books.balanced
    sums = {"absent": 0, "dead_lettered": 0}
    for id in made.world.logs:
        outcomes = made.outcomes(id)
        assert not {outcome for _, outcome in outcomes} & {"missing", "not_yet", "before_first"}
        for name in sums:
            sums[name] += sum(outcome == name for _, outcome in outcomes)
    open_letters = sum(count for status, count in books.letters.counts.items() if status != "resolved")
    assert sums == {"absent": sum(one.absent for one in books.partitions), "dead_lettered": open_letters}


def test_the_histories_hold_all_kinds_of_commits_letters_and_gaps(made: History) -> None:
    assert len(made.engine.retries()) > 1
    assert len(made.engine.replays()) > 5
    assert made.world.retried > 2
    assert made.engine.sql("SELECT COUNT(*) > 0 FROM event_hub_dead_letter WHERE replay_commit_number IS NOT NULL") == [
        (1,)
    ]
    assert {one.status for one in made.engine.letters()} >= {"discarded", "resolved", "exhausted"}
    assert made.engine.sql("SELECT COUNT(*) > 1 FROM sequence_gap WHERE status = 'absent'") == [(1,)]
    assert made.engine.sql("SELECT COUNT(*) > 2 FROM retracted_row WHERE table_name = 'sensor_reading'") == [(1,)]


DAMAGE = {
    "a row deleted": (
        "DELETE FROM sensor_reading WHERE (partition_id, sequence_number, ordinal) IN"
        " (SELECT partition_id, sequence_number, ordinal FROM sensor_reading LIMIT 1)",
        {"rows_missing"},
    ),
    "a row added": (
        "INSERT INTO sensor_reading SELECT stream_id, partition_id, sequence_number, 99, commit_number, home_id,"
        " sensor_id, kind, state, ppm, observed_at FROM sensor_reading LIMIT 1",
        {"rows_added"},
    ),
    "a row of no commit": (
        "INSERT INTO sensor_reading SELECT stream_id, partition_id, 100000, 0, commit_number, home_id,"
        " sensor_id, kind, state, ppm, observed_at FROM sensor_reading LIMIT 1",
        {"rows", "rows_added"},
    ),
    "a retracted row forgotten": (
        "DELETE FROM retracted_row WHERE table_name = 'sensor_reading' AND row_commit_number ="
        " (SELECT MAX(row_commit_number) FROM retracted_row WHERE table_name = 'sensor_reading')",
        {"rows_missing"},
    ),
    "a range deleted": (
        "DELETE FROM batch_ledger WHERE partition_id = '0' AND commit_number = (SELECT MAX(commit_number) - 1 FROM"
        " (SELECT commit_number FROM batch_ledger WHERE partition_id = '0' AND kind = 'batch'))",
        {"hole", "commits"},
    ),
    "a replay deleted": (
        "DELETE FROM batch_ledger WHERE partition_id = '0' AND commit_number ="
        " (SELECT MAX(commit_number) FROM batch_ledger WHERE partition_id = '0' AND kind = 'replay')",
        {"commits"},
    ),
    "a range twice": (
        "INSERT INTO batch_ledger SELECT stream_id, partition_id, 100000, kind, first_sequence_number + 1,"
        " last_sequence_number, 0, last_sequence_number - first_sequence_number, 0, 0, 0, 0, transform_version,"
        " invocation_id, committed_at, 0, NULL, NULL FROM batch_ledger WHERE partition_id = '0' AND kind = 'batch'"
        " AND last_sequence_number > first_sequence_number + 1 LIMIT 1",
        {"overlap"},
    ),
    "a letter removed": (
        "DELETE FROM event_hub_dead_letter WHERE (partition_id, sequence_number) IN (SELECT partition_id,"
        " sequence_number FROM event_hub_dead_letter WHERE replay_commit_number IS NULL LIMIT 1)",
        {"letters"},
    ),
    "a letter of a replay removed": (
        "DELETE FROM event_hub_dead_letter WHERE (partition_id, sequence_number) IN (SELECT partition_id,"
        " sequence_number FROM event_hub_dead_letter WHERE replay_commit_number IS NOT NULL LIMIT 1)",
        {"replay_letters"},
    ),
    "a count changed": (
        "UPDATE batch_ledger SET written = written + 1, filtered = filtered - 1, dead_lettered = dead_lettered"
        " WHERE (partition_id, commit_number) IN (SELECT partition_id, commit_number FROM batch_ledger"
        " WHERE kind = 'batch' AND dead_lettered > 0 AND filtered > 0 LIMIT 1)",
        {"ledger_changed"},
    ),
    "a letter too many in the ledger": (
        "UPDATE batch_ledger SET dead_lettered = dead_lettered + 1, written = written - 1"
        " WHERE (partition_id, commit_number) IN (SELECT partition_id, commit_number FROM batch_ledger"
        " WHERE kind = 'batch' AND written > 0 LIMIT 1)",
        {"letters"},
    ),
    "a checkpoint moved on": (
        "UPDATE event_hub_checkpoint SET sequence_number = sequence_number + 3 WHERE partition_id = '0'",
        {"short", "hub"},
    ),
    "a checkpoint moved back": (
        "UPDATE event_hub_checkpoint SET sequence_number = sequence_number - 3 WHERE partition_id = '0'",
        {"beyond"},
    ),
    "numbers called absent that are there": (
        "UPDATE sequence_gap SET last_sequence_number = last_sequence_number + 2 WHERE partition_id = '0'"
        " AND first_sequence_number = (SELECT MAX(first_sequence_number) FROM sequence_gap WHERE status = 'absent'"
        " AND partition_id = '0')",
        {"hub"},
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_told_by_its_name(made: History, damage: str) -> None:
    statement, told = DAMAGE[damage]
    assert made.kinds() == set()
    made.engine.sql(statement)
    assert told <= made.kinds()
    assert bool(told) == bool(made.kinds())


def test_a_deleted_row_is_told_with_its_commit_and_its_numbers(made: History) -> None:
    place = "SELECT partition_id, sequence_number, commit_number FROM sensor_reading ORDER BY 1, 2 LIMIT 1"
    ((id, number, commit_number),) = made.engine.sql(place)
    made.engine.sql("DELETE FROM sensor_reading WHERE partition_id = ? AND sequence_number = ?", id, number)
    (fault,) = made.audit()
    assert (fault.kind, fault.partition_id) == ("rows_missing", id)
    assert fault.first <= number <= fault.last
    assert fault.detail.startswith(f"commit {commit_number} (")


def test_a_number_tells_its_commit_its_letter_and_the_replays_that_touched_it(made: History) -> None:
    first = len(made.world.logs["0"])
    expected = {2: "absent", 12: "absent", 27: "dead_lettered", 28: "written", 29: "written"}
    found = {at: made.explain("0", first + at) for at in expected}
    assert {at: one.outcome for at, one in found.items()} == expected
    discarded, mended = found[27].found, found[28].found
    assert discarded.letter is not None
    assert mended.letter is not None
    assert (discarded.letter.letter.status, mended.letter.letter.status) == ("discarded", "resolved")
    assert [change.kind for change in mended.changes] == ["replay", "retry"]
    assert [attempt.kind for attempt in mended.letter.attempts][:2] == ["requeue", "retry"]
    (job_id,) = made.engine.sql("SELECT job_id FROM replay_job WHERE is_dry_run = 0 ORDER BY requested_at DESC LIMIT 1")
    assert mended.changes[0].invocation_id == job_id[0]
    assert mended.range is not None
    assert mended.range.kind == "batch"
