"""Histories of batches, gaps, retries, replays and moves by hand audit balanced, and every number is explained.

Repeat one with `pytest -k seed7`.
"""

from pathlib import Path

import pytest

from core.ledger.store import read_books
from tests.simulation.histories import History, audit_now, history
from tests.simulation.seeds import seeds


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Return a history with at least two partitions, letters that replays made, and gaps."""
    return history(34, tmp_path_factory.mktemp("history") / "store.db")


@pytest.mark.parametrize("seed", seeds(range(20), 3), ids="seed{}".format)
def test_a_history_audits_balanced_and_explains_every_number(seed: int, tmp_path: Path) -> None:
    made = history(seed, tmp_path / "store.db", look=audit_now, by_key=seed % 2 == 0)
    assert made.audit() == []
    audit_now(made.desk)
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
    (job_id,) = made.engine.sql(
        "SELECT task_id FROM task WHERE kind = 'replay' AND is_dry_run = 0 ORDER BY requested_at DESC LIMIT 1"
    )
    assert mended.changes[0].invocation_id == job_id[0]
    assert mended.range is not None
    assert mended.range.kind == "batch"
