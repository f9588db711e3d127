"""core/ledger/hub_comparison.py: the audit names a different hub, and letters that differ from the hub's events."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from msgspec import structs

from core.ledger.hub_comparison import LetterComparison, incarnation_faults
from core.ledger.store.ledger import Ledger
from core.ledger.whereabouts import LetterEvent
from core.model.events import Incarnation, PartitionId
from core.model.spans import SequenceNumber, Span
from core.model.values import encode_properties
from core.remote.hub.amqp_values import read_value
from core.remote.hub.host_values import host_value
from tests.fakes.builders import EPOCH, commit, event, events, partition
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.memory_store import MemoryStore
from tests.unit.core.remote.hub.test_amqp_values import VALUES

CREATED = EPOCH - timedelta(days=1)


def fault(hub: MemoryHub, stored: datetime | None = CREATED) -> str | None:
    """Audit a partition that is committed up to 9."""
    store = MemoryStore()
    store.commit_batch(commit(store.read_partition(partition()), 0, 9))
    found = next(incarnation_faults([store.read_partition(partition())], Incarnation(1, 1, EPOCH, stored), hub), None)
    assert found is None or (found.kind, found.first, found.last) == ("hub", 9, 9)
    return None if found is None else found.detail


def test_the_hub_of_the_stream_is_no_fault() -> None:
    assert fault(MemoryHub({"0": events(0, 12)})) is None
    assert fault(MemoryHub({"0": events(0, 12)}), stored=None) is None


def test_a_hub_that_was_created_at_a_different_time_is_named() -> None:
    hub = MemoryHub({"0": events(0, 12)})
    hub.recreate_hub(EPOCH)
    assert "the hub was created at" in (fault(hub) or "")


def test_a_different_event_at_the_checkpoint_is_named() -> None:
    log = [event(number, at=EPOCH + timedelta(hours=1)) for number in range(12)]
    assert "the hub's event 9 was enqueued at" in (fault(MemoryHub({"0": log})) or "")


def test_an_event_of_the_checkpoint_that_retention_has_cut_is_no_fault() -> None:
    hub = MemoryHub({"0": events(0, 12)})
    hub.expire_before("0", 11)
    assert fault(hub) is None


def test_a_partition_without_a_checkpoint_is_not_compared() -> None:
    hub = MemoryHub({"0": []})
    state = MemoryStore().read_partition(partition())
    assert list(incarnation_faults([state], None, hub)) == []
    assert hub.asked == []


NUMBER = SequenceNumber(7)


def letter_faults(stored: dict[str, Any], sent: dict[str, Any]) -> list[str]:
    """Compare a letter that was written with these properties to the hub's event, which is read with those."""
    read = structs.replace(event(7), properties=sent)
    kept = LetterEvent(NUMBER, read.enqueued_at, None, json.loads(encode_properties(stored)), None)

    class Letters(Ledger):
        def __init__(self) -> None:
            pass

        def read_letter_events(
            self, partition_id: PartitionId, after: SequenceNumber, last: SequenceNumber, most: int
        ) -> tuple[LetterEvent, ...]:
            return (kept,) if after < NUMBER else ()

    compared = LetterComparison(Letters(), PartitionId("0"), Span(NUMBER, NUMBER)).see(read)
    return [fault.detail for fault in compared]


def both_ways(value: Any) -> Iterator[Any]:
    """The properties that a worker and the host make of a value: as it is, in a list, and in maps."""
    for shape in (value, [value], {"in": value}, {"in": value, b"\xff": [1]}, {b"\xff": value}):
        yield {"a": shape}, {"a": host_value(shape)}


def test_a_value_of_any_type_is_the_same_whoever_wrote_the_letter_and_whoever_reads_the_hub() -> None:
    values = [read_value(bytes.fromhex(written))[0] for written, _ in VALUES.values()]
    pairs = [pair for value in values for ways in both_ways(value) for pair in product(ways, repeat=2)]
    assert [(stored, sent) for stored, sent in pairs if letter_faults(stored, sent)] == []


def test_a_value_that_differs_at_any_depth_is_named() -> None:
    changed: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"a": 1}, {"a": 2}),
        ({"a": [1, {"b": "c"}]}, {"a": [1, {"b": "d"}]}),
        ({"a": [1]}, {"a": [1, 2]}),
        ({"a": {"b": 1}}, {"a": {"c": 1}}),
        ({"a": {b"\xff": 1}}, {"a": {b"\xff": 2}}),
        ({"a": b"one"}, {"a": b"two"}),
        ({"a": 0.1}, {"a": 0.2}),
        ({"a": 1e300}, {"a": 2e300}),
        ({"a": 1}, {"a": 1, "b": 1}),
    ]
    expected = ["letter 7 has different properties than the hub's event"]
    assert [pair for pair in changed if letter_faults(*pair) != expected] == []
