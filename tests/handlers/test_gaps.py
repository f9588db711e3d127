"""handlers/timers.py: what a person reads about a trigger that stands, in the log and in the status."""

import logging

import pytest

from core.errors import HubUnreachable
from core.ingest.stalled_partitions import PartitionStanding, Unhealed
from core.model.events import PartitionId
from handlers.app import app
from handlers.timers import note
from tests.fakes.builders import NOON, partition
from tests.handlers.running import Running

WORDS = "the trigger of partition 1 stands at 1,410 since 12:03 UTC; 10,129 events went by the app's own reader"


def test_a_trigger_that_stands_has_a_line_of_its_own_and_a_fault_has_its_own(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "hubledger.timers")
    note(PartitionStanding(partition("1"), WORDS))
    note(Unhealed(partition("1"), HubUnreachable("no answer")))
    lines = [(line.getMessage(), line.levelname, line.__dict__["action"]) for line in caplog.records]
    assert lines == [("trigger stands", "WARNING", "trigger"), ("gap not healed", "ERROR", "gap")]
    assert caplog.records[0].__dict__["detail"] == WORDS


def test_the_status_and_the_health_show_the_words_to_everybody_who_may_read_them(running: Running) -> None:
    own = app()
    state = own.core.ingestion.store.read_partition(own.settings.stream.partition(PartitionId("1")))
    own.core.ingestion.store.note_stop(state, "trigger", WORDS, NOON)
    (shown,) = running.get("status").body["partitions"]
    assert [(one["reason"], one["detail"]) for one in shown["stops"]] == [("trigger", WORDS)]
    assert running.get("health_ledger").status == 503
