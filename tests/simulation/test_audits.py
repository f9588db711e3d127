"""Histories of batches, gaps, retries, replays and moves by hand audit balanced, and every number is explained.

Repeat one with `pytest -k seed7`.
"""

from pathlib import Path

import pytest

from core.ledger.store import read_books
from tests.simulation.histories import audit_now, history
from tests.simulation.seeds import seeds


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
