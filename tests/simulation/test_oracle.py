"""The oracle finds each damage to a database at rest, and the watch each forbidden change."""

from functools import cache

import pytest

from tests.simulation.oracle import check
from tests.simulation.watch import WatchedStore
from tests.simulation.world import World

DAMAGE = {
    "a row is lost": "DELETE FROM sensor_reading WHERE sequence_number > 20",
    "a row is doubled": "INSERT INTO sensor_reading SELECT stream_id, partition_id, sequence_number, ordinal + 1,"
    " commit_number, home_id, sensor_id, kind, state, ppm, observed_at FROM sensor_reading LIMIT 1",
    "a row has a different value": "UPDATE sensor_reading SET ppm = ppm + 1",
    "a row is of a different commit": "UPDATE home_alert SET commit_number = commit_number + 1",
    "a state is old": "UPDATE home SET sequence_number = sequence_number - 1",
    "a state is wrong": "UPDATE home SET armed = 1 - armed",
    "the checkpoint is ahead": "UPDATE event_hub_checkpoint SET sequence_number = sequence_number + 1",
    "a total is raised": "UPDATE event_hub_checkpoint SET written = written + 1",
    "a letter is not counted": "UPDATE event_hub_checkpoint SET letters = letters - 1",
    "a commit has other totals": "UPDATE batch_ledger SET total_filtered = total_filtered + 1 WHERE commit_number = 2",
    "a range is missing": "DELETE FROM batch_ledger WHERE commit_number = 1",
    "a range counts wrong": "UPDATE batch_ledger SET written = written - 1, filtered = filtered + 1",
    "a retry counts wrong": "UPDATE batch_ledger SET dead_lettered = dead_lettered + 1 WHERE kind = 'retry'",
    "a replay is not in the ledger": "UPDATE batch_ledger SET invocation_id = 'nobody' WHERE kind = 'replay'",
    "a letter is lost": "DELETE FROM event_hub_dead_letter WHERE status = 'exhausted'",
    "a letter is of a different class": "UPDATE event_hub_dead_letter SET error_class = 'reference'",
    "a letter waits for ever": "UPDATE event_hub_dead_letter SET status = 'waiting' WHERE status = 'exhausted'",
    "a letter counts no attempts": "UPDATE event_hub_dead_letter SET attempts = 0",
    "a letter has a different body": "UPDATE event_hub_dead_letter SET body = X'00'",
    "an attempt is lost": "DELETE FROM dead_letter_attempt WHERE attempt = 1",
    "a resolved letter has no rows": "UPDATE event_hub_dead_letter SET status = 'resolved', error_class = 'poison'"
    " WHERE error_class = 'poison'",
    "a gap is open": "UPDATE sequence_gap SET status = 'open'",
    "a gap is absent that was not lost": "INSERT OR IGNORE INTO sequence_gap SELECT stream_id, partition_id,"
    " sequence_number, sequence_number, updated_at, 'absent', 1 FROM event_hub_checkpoint",
    "a retracted row is forgotten": "DELETE FROM retracted_row WHERE table_name <> 'home'",
    "the anchor is later": "UPDATE partition_anchor SET sequence_number = sequence_number + 1",
}
FORBIDDEN = {
    "a checkpoint goes back": "UPDATE event_hub_checkpoint SET sequence_number = sequence_number - 1",
    "a commit without a number": "UPDATE event_hub_checkpoint SET sequence_number = sequence_number + 1",
    "a range is changed": "UPDATE batch_ledger SET written = written + 1, filtered = filtered - 1",
    "a row vanishes": "DELETE FROM home_alert",
    "a letter vanishes": "DELETE FROM event_hub_dead_letter",
    "a resolved letter is given up": "UPDATE event_hub_dead_letter SET status = 'discarded' WHERE status = 'resolved'",
    "an attempt is changed": "UPDATE dead_letter_attempt SET status = 'waiting'",
    "an absent number is healed": "UPDATE sequence_gap SET status = 'healed' WHERE status = 'absent'",
}
WORLDS = range(208, 248)  # the first one has rows of most kinds, and those after it the rest


@cache
def ended(seed: int) -> tuple[World, bytes]:
    """Return a world at rest, in which the oracle found no fault, and its database."""
    engine = WatchedStore()
    return World(seed, engine, engine.open()).run(), engine.image()


def damaged(statement: str) -> tuple[World, WatchedStore]:
    for world, image in map(ended, WORLDS):
        store = WatchedStore(image)
        store.sql(statement.replace("UPDATE", "UPDATE OR IGNORE", 1))
        if store.sql("SELECT changes() > 0") == [(1,)]:
            return world, store
    raise AssertionError("the damage changes no row of any world")


@pytest.mark.parametrize("damage", DAMAGE)
def test_the_oracle_finds_damage_and_no_fault_before_it(damage: str) -> None:
    world, store = damaged(DAMAGE[damage])
    is_ordered = world.site.policy.order == "hold_key"
    told = (world.truths(), world.operators.discarded, world.forgotten(), is_ordered)
    check(world.sql, *told)
    with pytest.raises(AssertionError):
        check(store.sql, *told)


@pytest.mark.parametrize("change", FORBIDDEN)
def test_the_watch_notes_a_change_that_must_not_be(change: str) -> None:
    _, store = damaged(FORBIDDEN[change])
    assert store.sql("SELECT COUNT(*) > 0 FROM sim_violation") == [(1,)]
