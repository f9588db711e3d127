"""The game day of the alarm ledger-unbalanced: somebody deletes rows of the ledger."""

import pytest

from tests.acceptance.game_days.day import Day

pytestmark = pytest.mark.soak
NEWEST = "partition_id = '0' AND commit_number = (SELECT MAX(commit_number) FROM batch_ledger WHERE partition_id = '0')"


def test_a_range_that_somebody_deleted_is_named_by_the_audit_and_restored(day: Day) -> None:
    day.start()
    day.app.publish(30)
    day.until_quiet()
    engine = day.app.engine
    engine.sql(f"CREATE TABLE restored AS SELECT * FROM batch_ledger WHERE {NEWEST}")
    engine.sql(f"DELETE FROM batch_ledger WHERE {NEWEST}")
    day.until_it_fires("ledger-unbalanced")
    assert day.health() == 503
    status, audit, again, _ = day.follow("ledger-unbalanced")
    assert (status.code, audit.code, again.code) == (1, 1, 1), audit
    assert "NOT BALANCED" in status.output
    assert "commit" in audit.output
    engine.sql("INSERT INTO batch_ledger SELECT * FROM restored")  # from the copy of the database
    day.until_healthy()
    assert [ran.code for ran in day.follow("ledger-unbalanced")] == [0] * 4
