"""core/remote/hub/host_values.py: what the real trigger did with raw messages is what the app says about them."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.remote.hub.host_values import why_undeliverable
from tests.fakes.trigger_events import handed_out, received

_FIXTURE = Path(__file__).parents[3] / "fixtures" / "trigger_messages.json"
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
    "prop described ulong": "one property is described by no symbol",
    "prop bad com.microsoft:uri": "one property is a URI that .NET cannot read",
    "prop bad datetime-offset": "one property is a time that .NET cannot read",
    "prop char > BMP": "one property is a char that .NET does not have",
    "prop char invalid 0x110000": "one property is a char that .NET does not have",
    "footer map in map": None,  # the SDK of Python hands out no footer
}


def reasons(*outcomes: str) -> dict[str, str | None]:
    tried = {one["name"]: one["message"] for one in TRIED if one["trigger"] in outcomes}
    return {name: why_undeliverable(received(handed_out(bytes.fromhex(message)))) for name, message in tried.items()}


def test_each_event_at_which_the_trigger_stands_has_its_reason() -> None:
    assert reasons("binding fails", "reader stops") == REASONS


def test_no_event_that_the_trigger_delivers_or_drops_has_a_reason() -> None:
    found = reasons("delivered", "dropped in silence")
    assert len(found) > 50
    assert {name: reason for name, reason in found.items() if reason} == {}


def with_property(raw: str) -> Any:
    """Return an event with one property, whose encoded value is given in hexadecimal."""
    octets = bytes.fromhex("a10176" + raw)
    properties = bytes([0x00, 0x53, 0x74, 0xC1, len(octets) + 1, 2]) + octets
    return received(handed_out(properties + bytes.fromhex("005375a0027b7d")))


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("73000000e9", None),  # a char of two bytes
        ("730000ffff", None),
        ("7300010000", "one property is a char that .NET does not have"),
        ("730000d800", "one property is a char that .NET does not have"),  # half of a pair
        ("00a10178a10179", "one property is described by no symbol"),
        ("c10100", "one property is a map"),
        ("d10000000400000000", "one property is a map"),
        ("45", None),  # a list
    ],
)
def test_a_property_has_a_reason_by_its_type(raw: str, reason: str | None) -> None:
    assert why_undeliverable(with_property(raw)) == reason
