"""The game day of the alarm ledger-unbalanced: somebody deletes rows of the ledger."""

import pytest

from tests.acceptance.game_days.day import Day

pytestmark = pytest.mark.slow
NEWEST = "partition_id = '0' AND commit_number = (SELECT MAX(commit_number) FROM batch_ledger WHERE partition_id = '0')"


def test_a_range_that_somebody_deleted_is_named_by_the_audit_and_restored(day: Day) -> None:
    day.start()
    day.app.publish(30)
    day.until_quiet()
    engine = day.app.engine
    engine.sql(f"CREATE TABLE backup AS SELECT * FROM batch_ledger WHERE {NEWEST}")
    engine.sql(f"DELETE FROM batch_ledger WHERE {NEWEST}")
    day.until_it_fires("ledger-unbalanced")
    assert day.health() == 503
    engine.sql("INSERT INTO batch_ledger SELECT * FROM backup")
    day.until_healthy()
