"""core/remote/hub/undeliverable.py: what the real trigger did with raw messages is what the app says about them."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.remote.hub.undeliverable import why_undeliverable
from tests.fakes.trigger_events import received

_FIXTURE = Path(__file__).parents[4] / "fixtures" / "trigger_messages.json"
TRIED: list[dict[str, Any]] = [
    one for one in json.loads(_FIXTURE.read_text(encoding="utf-8")) if isinstance(one["message"], str)
]
REASONS = {
    "body value string": "its body is an AMQP value, not data",
    "body value binary": "its body is an AMQP value, not data",
    "body value map": "its body is an AMQP value, not data",
    "two sequences": "its body is an AMQP sequence, not data",
    "key int": "its partition key is no text",
    "prop empty map": "one property is a map",
    "prop described ulong": "one property is described by a number",
    "prop bad com.microsoft:uri": "one property is a URI that .NET cannot read",
    "prop bad datetime-offset": "one property is a time that .NET cannot read",
    "prop char > BMP": "one property is a char above U+FFFF",
    "prop char invalid 0x110000": "one property is a char above U+FFFF",
    "footer map in map": None,  # the SDK of Python hands out no footer
}


def reasons(*outcomes: str) -> dict[str, str | None]:
    tried = {one["name"]: one["message"] for one in TRIED if one["trigger"] in outcomes}
    return {name: why_undeliverable(received(bytes.fromhex(message))) for name, message in tried.items()}


def test_each_event_at_which_the_trigger_stands_has_its_reason() -> None:
    assert reasons("binding fails", "reader stops") == REASONS


def test_no_event_that_the_trigger_delivers_or_drops_has_a_reason() -> None:
    found = reasons("delivered", "dropped in silence")
    assert len(found) > 50
    assert {name: reason for name, reason in found.items() if reason} == {}


@pytest.mark.parametrize("raw", ["", "c1", "c10302", "c1050200a101"])
def test_properties_that_are_no_map_have_none(raw: str) -> None:
    from core.remote.hub.undeliverable import _why_of_map
    from core.remote.hub.wire import Encoded

    assert _why_of_map(Encoded(bytes.fromhex(raw)), "property") is None
