"""core/remote/telemetry/signals.py: producers are linked once each, and no property can do harm."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import structs

from core.model.events import Event
from core.model.property_values import Unread
from core.remote.telemetry.signals import LINKS, producer_links
from tests.fakes.builders import event

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CONTEXT = f"00-{TRACE}-{SPAN}-01"


def sent(*properties: Mapping[str, Any]) -> list[Event]:
    return [structs.replace(event(number), properties=each) for number, each in enumerate(properties)]


def context(number: int) -> str:
    return f"00-{number + 1:032x}-{number + 1:016x}-01"


@pytest.mark.parametrize("name", ["traceparent", "Diagnostic-Id"])
def test_the_context_of_a_producer_becomes_a_link(name: str) -> None:
    (link,), left_out = producer_links(sent({name: CONTEXT}))
    found = link.context
    assert (f"{found.trace_id:032x}", f"{found.span_id:016x}", found.trace_flags, left_out) == (TRACE, SPAN, 1, 0)


def test_events_of_one_producers_span_have_one_link() -> None:
    links, left_out = producer_links(sent(*[{"traceparent": CONTEXT}] * 500))
    assert (len(links), left_out) == (1, 0)


def test_links_beyond_the_limit_are_counted() -> None:
    links, left_out = producer_links(sent(*[{"traceparent": context(number)} for number in range(500)]))
    assert (len(links), left_out) == (LINKS, 500 - LINKS)


HOSTILE = [
    *("", "00", CONTEXT.upper(), CONTEXT[:-1], CONTEXT + "0", CONTEXT.replace("-", "_"), "x" * 10_000_000),
    *(f"ff-{TRACE}-{SPAN}-01", f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01", f"00-{TRACE}-{SPAN}-0g"),
    *(
        f"01-{TRACE}-{SPAN}-01-{'x' * 1_000_000}",
        f"00-{TRACE}-{SPAN}-\n1",
        "|" + "a" * 54,
        "٠" * 55,
        "\ud800" * 55,
        None,
        1,
        b"0" * 55,
        [CONTEXT],
        {"a": CONTEXT},
    ),
]


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_a_malformed_or_hostile_context_is_ignored(value: object) -> None:
    assert producer_links(sent({"traceparent": value, "tracestate": "k=v," * 100_000})) == ((), 0)


def test_malformed_contexts_take_no_place_of_a_good_one() -> None:
    hostile = [{"traceparent": f"00-{number:032d}-{'0' * 16}-01"} for number in range(1, 400)]
    links, _ = producer_links(sent(*hostile, {"traceparent": CONTEXT}))
    assert len(links) == 1


def test_a_bad_traceparent_leaves_the_id_of_the_sdk() -> None:
    links, _ = producer_links(sent({"traceparent": "no", "Diagnostic-Id": CONTEXT}))
    assert len(links) == 1


def test_properties_that_cannot_be_read_have_no_link() -> None:
    assert producer_links(sent(Unread("json", "{"), {})) == ((), 0)
