"""handlers/operations/retention.py: the burn-down over HTTP, with and without an answer from the hub."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from core.ledger.retention.burn_down import BurnDownMeans, read_burn_down
from core.ledger.store.burn_down import BurnDowns
from core.model.events import PartitionId
from core.model.spans import SequenceNumber
from core.store.stream import OneStream
from handlers.app import BURN_DOWN, app
from handlers.remembered import Remembered
from tests.fakes.builders import event
from tests.fakes.memory_hub import MemoryHub
from tests.unit.handlers.running import HOME, Running

POISON = b"{"


def give_hub(running: Running, hub: MemoryHub, at: datetime) -> None:
    """Let this hub answer, and read the burn-down at a time."""
    own = app()
    store = BurnDowns(OneStream(running.sqlite.open().database, own.settings.stream))
    means = BurnDownMeans(own.settings.stream, store, hub, own.settings.hub_retention)
    app.value = replace(own, burn_down=Remembered(lambda: read_burn_down(means, at), BURN_DOWN))


@pytest.fixture
def at(running: Running) -> datetime:
    """Return the time of three letters of partition 1, the last of which has no body."""
    running.restart(HUB_RETENTION_HOURS="24")
    running.ingest([0, 1, 2, 3], [HOME, POISON, POISON, POISON])
    running.sqlite.sql("UPDATE event_hub_dead_letter SET body_kept = 0 WHERE sequence_number = 3")
    found = app().listing.read_letter(PartitionId("1"), SequenceNumber(1))
    assert found is not None
    return found.letter.enqueued_at


def test_the_answer_names_letters_by_their_time_left_and_those_without_a_body(running: Running, at: datetime) -> None:
    give_hub(running, MemoryHub({"1": [event(number, at=at) for number in range(2, 9)]}), at + timedelta(hours=19))
    body = running.get("show_retention").body
    lost_at = (at + timedelta(hours=24)).isoformat().replace("+00:00", "Z")
    assert (body["hub_retention_hours"], body["hub_fault"], body["bodies_kept"]) == (24.0, None, False)
    assert (body["letters"]["open"], body["letters"]["gone"]) == (3, 1)
    assert body["letters"]["within"] == [{"hours": 1, "count": 0}, {"hours": 6, "count": 2}, {"hours": 24, "count": 2}]
    assert body["letters_without_body"]["first_lost_at"] == lost_at
    assert body["gaps"] == {**body["gaps"], "open": 0, "gone": 0, "first_lost_at": None}
    (partition,) = body["partitions"]
    assert partition == {
        "partition_id": "1",
        "letters": 3,
        "letters_without_body": 1,
        "gaps": 0,
        "gone": 1,
        "first_lost_at": lost_at,
        "hours_left": 5.0,
    }


def test_without_the_hub_and_without_its_retention_the_answer_counts_and_forecasts_nothing(running: Running) -> None:
    running.ingest([0, 1], [HOME, POISON])
    body = running.get("show_retention").body
    assert (body["hub_retention_hours"], body["letters"]["first_lost_at"]) == (None, None)
    assert "Connection refused" in body["hub_fault"]
    assert (body["letters"]["open"], body["letters"]["gone"], body["bodies_kept"]) == (1, 0, True)


def test_a_stream_that_was_never_read_has_an_empty_burn_down(running: Running) -> None:
    body = running.get("show_retention").body
    assert (body["letters"]["open"], body["partitions"], body["bodies_kept"], body["hub_fault"]) == (0, [], True, None)
