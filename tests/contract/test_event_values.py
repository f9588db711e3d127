"""Promises of every store about properties: a retry and a replay get the very values, of the same types."""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from msgspec import structs

from core.model.events import SequenceNumber, Span
from core.model.property_values import Described, Unread
from tests.fakes.builders import claim, commit, event, hold, letter, partition, settled
from tests.fakes.kept import Engine
from tests.fakes.store import Store

P = partition()
DEEP: list[Any] = []
for _ in range(1_000):
    DEEP = [DEEP]
GIVEN: dict[str, Mapping[str, object]] = {
    "numbers": {"long": 2**63 - 1, "least": -(2**63), "ulong": 2**64 - 1, "double": 0.1, "whole": 1.0, "zero": -0.0},
    "not finite": {"nan": float("nan"), "up": float("inf"), "down": float("-inf")},
    "decimals": {"exact": Decimal("1.10"), "large": Decimal("9" * 34), "nan": Decimal("NaN")},
    "bytes": {"empty": b"", "all": bytes(range(256))},
    "others": {"id": UUID(int=7), "at": datetime(2026, 1, 1, 0, 0, 0, 123_000, UTC), "none": None, "yes": True},
    "nested": {"map": {"a": [1, b"\x00", {1: "one"}]}, "described": Described("symbol", [Described(7, b"x")])},
    "like tags": {"$binary": "AA=="},
    "texts": {"NUL\x00": "\x00", "lone \ud800": "\udfff", "👩‍👩‍👧": "'; --\"\\"},
    "a thousand levels": {"deep": DEEP},
    "1 MB": {f"name-{number}": "x" * 1_000 for number in range(1_000)},
    "none that could be read": Unread("amqp", "AA=="),
}


def shown(properties: Mapping[str, object]) -> object:
    """A value that equals only values of its type; NaN equals NaN."""
    if isinstance(properties, Unread):
        return properties
    return depth(properties["deep"]) if "deep" in properties else repr(properties)


def depth(value: Any) -> int:
    found = 0
    while value:
        ((value,), found) = (value, found + 1)
    return found


@pytest.mark.parametrize("case", GIVEN)
def test_a_retry_gets_the_properties_of_the_letter(store: Store, case: str) -> None:
    given = structs.replace(event(0), properties=GIVEN[case])
    store.commit_batch(commit(store.read_partition(P), 0, 0, settled({}, letters=[letter(given)])))
    store.claim_letters(claim("claim-1"))
    (found,) = store.begin_chunk(hold(store, [0], "claim-1"), "run-1")
    assert shown(found.event.properties) == shown(GIVEN[case])


@pytest.mark.parametrize("case", GIVEN)
def test_a_replay_gets_the_properties_of_a_staged_event(store: Store, engine: Engine, case: str) -> None:
    store.commit_batch(commit(store.read_partition(P), 0, 0))
    state = store.read_partition(P)
    engine.stage(state, [structs.replace(event(0), properties=GIVEN[case])])
    (found,) = store.read_kept_events(state, Span(SequenceNumber(0), SequenceNumber(0)), 9)
    assert shown(found.properties) == shown(GIVEN[case])


def test_a_time_of_any_zone_is_the_same_instant(store: Store) -> None:
    moment = datetime.fromisoformat("2026-01-01T00:00:00.123456+05:30")
    given = letter(structs.replace(event(0), properties={"at": moment}))
    store.commit_batch(commit(store.read_partition(P), 0, 0, settled({}, letters=[given])))
    store.claim_letters(claim("claim-1"))
    (found,) = store.begin_chunk(hold(store, [0], "claim-1"), "run-1")
    assert found.event.properties == {"at": moment}
