"""The oracle finds each damage to a database at rest, and the watch each forbidden change."""

from functools import cache

import pytest

from tests.fakes.builders import event
from tests.simulation.oracle import check, check_letters
from tests.simulation.tables import Attempt, Books, Letter, Range, Truth
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
FIRST = 112  # the search begins at a seed that has all of it
NEEDED = (
    "sensor_reading WHERE sequence_number > 20",
    "home_alert",
    "home",
    "batch_ledger WHERE kind = 'retry'",
    "batch_ledger WHERE kind = 'replay'",
    "event_hub_dead_letter WHERE status = 'exhausted'",
    "event_hub_dead_letter WHERE status = 'resolved'",
    "event_hub_dead_letter WHERE error_class = 'poison'",
    "sequence_gap WHERE status = 'absent'",
    "retracted_row WHERE table_name <> 'home'",
)


@cache
def ended() -> tuple[bytes, list[Truth]]:
    """Return the first world that has every kind of row."""
    for seed in range(FIRST, FIRST + 200):
        engine = WatchedStore()
        world = World(seed, engine, engine.open()).run()
        if all(engine.sql(f"SELECT 1 FROM {wanted} LIMIT 1") for wanted in NEEDED):
            return engine.image(), world.truths()
    raise AssertionError("no world has something of everything")


def damaged(statement: str) -> WatchedStore:
    store = WatchedStore(ended()[0])
    store.sql(statement.replace("UPDATE", "UPDATE OR IGNORE", 1))
    assert store.sql("SELECT changes() > 0") == [(1,)], "the damage changes nothing"
    return store


def test_the_oracle_finds_no_fault_in_an_undamaged_database() -> None:
    image, truths = ended()
    check(WatchedStore(image).sql, truths, set())


@pytest.mark.parametrize("damage", DAMAGE)
def test_the_oracle_finds_damage(damage: str) -> None:
    store = damaged(DAMAGE[damage])
    with pytest.raises(AssertionError):
        check(store.sql, ended()[1], set())


def test_only_a_replay_holds_a_letter_again_that_was_tried() -> None:
    place = (1, "0")
    truth = Truth(*place, {4: event(4, "look a")}, None, set(), set())
    books = Books(lambda statement: [])
    books.letters[place] = [Letter(4, b"look a", 1, "unknown", "plain/1", "held", 0, None, None, None, 2)]
    books.attempts[place] = [(4, Attempt(1, "retry", "waiting", 3, "somebody", None))]
    with pytest.raises(AssertionError):
        check_letters(truth, books)
    books.ledger[place] = [Range(4, "replay", 0, 6, 0, 0, 3, 3, 0, "plain/1", "invocation-1")]
    check_letters(truth, books)


@pytest.mark.parametrize("change", FORBIDDEN)
def test_the_watch_notes_a_change_that_must_not_be(change: str) -> None:
    assert damaged(FORBIDDEN[change]).sql("SELECT COUNT(*) > 0 FROM sim_violation") == [(1,)]
