"""handlers/operations/letters.py: a body that was not stored is read from the hub, and no body of another event."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from core.model.events import SequenceNumber
from handlers.app import app
from handlers.operations.letters import LARGEST_SHOWN
from tests.fakes.builders import event
from tests.handlers.running import Running, SettingsHub, handed_over

PLACE = {"partition_id": "1", "sequence_number": "0"}
Show = Callable[..., Any]


@pytest.fixture
def show(running: Running) -> Show:
    """Shows the body of a letter whose event the hub has, with changes."""
    running.restart(KEEP_BODIES="false")
    running.ingest([0], [b"{"])
    kept = handed_over(0, b"{")

    def shown(**changed: Any) -> Any:
        app.value = replace(app(), hub=SettingsHub({"1": [structs.replace(kept, **changed)]}))  # type: ignore[arg-type]
        return running.get("reveal_letter", PLACE, body="text").body

    return shown


def test_a_body_that_was_not_stored_is_read_from_the_hub(show: Show) -> None:
    assert show()["body"] == {"form": "text", "bytes": 1, "truncated": False, "shown": "{", "fault": None}


def test_the_body_of_a_different_event_under_the_number_is_not_shown(show: Show) -> None:
    different = show(enqueued_at=event(0).enqueued_at - timedelta(days=9), body=b"of a recreated hub")
    assert (different["status"], different["fault"]) == (409, "StreamIncarnationChanged")
    missing = show(sequence_number=SequenceNumber(1))["body"]
    assert (missing["shown"], missing["bytes"]) == (None, 0)
    assert missing["fault"] == "it was not stored, and the hub no longer has it"


def test_a_body_of_the_hub_is_cut_at_the_limit_and_keeps_its_length(show: Show) -> None:
    found = show(body=b"x" * (LARGEST_SHOWN + 1))["body"]
    assert (found["bytes"], found["truncated"], len(found["shown"])) == (LARGEST_SHOWN + 1, True, LARGEST_SHOWN)
