"""Properties of any types of AMQP: the app's own reader gives the function the event that the trigger gives it."""

from typing import Any

import pytest
from azure.functions.eventhub import EventHubTriggerConverter
from hypothesis import example, given
from hypothesis import strategies as st

from core.model.events import Event
from core.remote.hub.host_values import to_host_event
from handlers.event_batches import to_batch
from local.event_hubs.codec import (
    Described,
    Float,
    Int,
    Raw,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    encode,
    encode_map,
)
from local.functions_host.event_hub_inputs import TriggerContext, event_hub_inputs
from local.functions_host.event_source import HubAddress
from local.functions_host.sdk_events import to_hub_event
from tests.fakes import trigger_events

CONTEXT = TriggerContext(HubAddress("namespace", "hub", "group"), "1", "events", "BINARY")
DATA = b"\x00\x53\x75" + encode(b"body")
LAST_TICK = 3_155_378_975_999_999_999  # of .NET's times
TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
SYMBOLS = st.text(st.characters(codec="ascii"), max_size=5).map(Symbol)
BYTES = st.binary(max_size=5).map(lambda raw: bytes((len(raw),)) + raw)
BROKEN_TEXTS, BROKEN_SYMBOLS = BYTES.map(lambda raw: Raw(b"\xa1" + raw)), BYTES.map(lambda raw: Raw(b"\xa3" + raw))
NUMBERS = st.sampled_from(
    [(UByte, 0, 8), (UShort, 0, 16), (UInt, 0, 32), (ULong, 0, 64), (Int, -31, 31), (int, -63, 63)]
)


def number_of(kind: tuple[Any, int, int]) -> st.SearchStrategy[Any]:
    of, low, high = kind
    return st.integers(-(2**-low) if low else 0, 2**high - 1).map(of)


def decimal_of(exponent: int, digits: int, negative: bool) -> Raw:
    """A decimal128 as a standard writer has it, or as .NET's."""
    return Raw(b"\x94" + (exponent << 1 | negative << 15).to_bytes(2) + digits.to_bytes(14))


STANDARD = 6176  # the exponent of a whole number
EXPONENTS = st.integers(0, 28).flatmap(lambda digits: st.sampled_from([STANDARD - digits, STANDARD - 4608 - digits]))
LEAVES = (
    st.none()
    | st.booleans()
    | NUMBERS.flatmap(number_of)
    | st.floats()
    | st.floats(width=32).map(Float)
    | st.builds(decimal_of, EXPONENTS, st.integers(0, 2**96 - 1), st.booleans())
    | st.integers(-(2**63), 2**63 - 1).map(Timestamp)
    | st.uuids().map(lambda one: Raw(b"\x98" + one.bytes))
    | st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]).map(
        lambda one: Raw(b"\x73" + ord(one).to_bytes(4))
    )
    | st.binary(max_size=5)
    | TEXTS
    | SYMBOLS
)
INSIDE = st.recursive(
    LEAVES,
    lambda one: (
        st.lists(one, max_size=3)
        | st.dictionaries(TEXTS | SYMBOLS, one, max_size=3)
        | st.builds(Described, SYMBOLS | st.integers(0, 99).map(ULong), one)
    ),
    max_leaves=6,
)
KNOWN = (
    st.builds(Described, st.just(Symbol("com.microsoft:uri")), TEXTS)
    | st.builds(Described, st.just(Symbol("com.microsoft:datetime-offset")), st.integers(0, LAST_TICK))
    | st.builds(Described, st.just(Symbol("com.microsoft:timespan")), st.integers(-(2**63), 2**63 - 1))
    | st.builds(Described, st.just(Symbol("other")), LEAVES)
)
PAIRS = st.lists(
    st.tuples(
        TEXTS | SYMBOLS | st.none() | st.integers(2, 9).map(Int) | BROKEN_TEXTS,
        LEAVES | KNOWN | BROKEN_TEXTS | BROKEN_SYMBOLS | st.lists(INSIDE, max_size=3),
    ),
    max_size=4,
)


def of_trigger(message: bytes) -> Event:
    """Return the event that the function gets in the local host."""
    inputs = event_hub_inputs(CONTEXT, [to_hub_event(trigger_events.received(message))], checkpoints=True)
    events = EventHubTriggerConverter.decode(inputs.inputs["events"], trigger_metadata=inputs.trigger_metadata)
    (event,) = to_batch(events, "invocation-1").events
    return event


@pytest.mark.slow
@given(PAIRS)
@example([("a", Float(2.0**-149)), ("a", 1)])
@example([(None, [{"k": [b"\x00", Symbol("s")]}])])
def test_properties_are_those_of_the_trigger_in_value_type_and_order(pairs: list[tuple[Any, Any]]) -> None:
    properties = encode_map([encode(each) for pair in pairs for each in pair])
    message = trigger_events.handed_out(b"\x00\x53\x74" + properties + DATA)
    assert repr(to_host_event(trigger_events.received(message))) == repr(of_trigger(message))
