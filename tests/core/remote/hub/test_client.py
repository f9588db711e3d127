from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from azure.eventhub import EventData
from azure.eventhub._pyamqp.message import Message

from core.errors import HubRefused, HubUnreachable
from core.model.events import EventBatch
from core.remote.hub.client import link_fault, receive
from core.settings import read_settings
from tests.fakes.builders import partition

GIVEN = {"EVENTHUB": "Endpoint=sb://hub.example", "EVENTHUB_NAME": "telemetry", "EVENTHUB_CONSUMER_GROUP": "hubledger"}
SETTINGS = read_settings({**GIVEN, "STORE_CONNECTION": "sqlite:unused"})
TRACKED = "TrackingId:40404012-4014-404a-b401-404401404401_B7, SystemTracker:telemetry~32766, Timestamp:2026-11-21"
REFUSALS = (
    f"The messaging entity 'namespace:eventhub:telemetry~32766|nobody' could not be found. {TRACKED}\n"
    "Error condition: amqp:not-found",
    "Status code: 404",
    "CBS Token authentication failed.\nStatus code: 401",
    "Unauthorized access. 'Listen' claim(s) are required",
)


def test_a_refusal_names_its_setting_and_the_service_words_in_one_line() -> None:
    for words in REFUSALS:
        fault = link_fault(SETTINGS, "nobody", "EVENTHUB_CONSUMER_GROUP", Exception(words))
        assert isinstance(fault, HubRefused), words
        first = words.splitlines()[0]
        assert str(fault) == f"EVENTHUB_CONSUMER_GROUP: telemetry, consumer group nobody: {first}"
    busy = Exception(f"The server is busy. {TRACKED}\nError condition: com.microsoft:server-busy")
    assert isinstance(
        link_fault(SETTINGS, "nobody", "EVENTHUB_NAME", busy), HubUnreachable
    )  # its digits refuse nothing


CONTEXT = SimpleNamespace(
    fully_qualified_namespace="namespace", eventhub_name="telemetry", consumer_group="hubledger", partition_id="0"
)


def received(number: int) -> EventData:
    stamps = {b"x-opt-sequence-number": number, b"x-opt-offset": b"0", b"x-opt-enqueued-time": 1_795_262_400_000}
    return EventData._from_message(Message(message_annotations=stamps))


async def taken(*batches: Sequence[int]) -> list[tuple[str, list[int]]]:
    """The ids and numbers of the batches that come out of a client of the SDK that hands over these, and ends."""
    found: list[EventBatch] = []

    async def receive_batch(on_batch: Callable[..., Any], **options: Any) -> None:
        for numbers in batches:
            await on_batch(CONTEXT, list(map(received, numbers)))

    async def take(batch: EventBatch) -> None:
        found.append(batch)

    await receive(SimpleNamespace(receive_batch=receive_batch), take, lambda *_: None)
    assert {batch.partition for batch in found} <= {partition()}
    return [(batch.invocation_id, [event.sequence_number for event in batch.events]) for batch in found]


@pytest.mark.asyncio
async def test_events_in_order_are_one_batch_and_those_that_the_sdk_hands_over_twice_are_a_batch_of_their_own() -> None:
    assert await taken([], [3, 5], [6]) == [("0@3", [3, 5]), ("0@6", [6])]
    assert await taken([7, 8, 9, 8, 9, 10]) == [("0@7", [7, 8, 9]), ("0@8", [8, 9, 10])]
    assert await taken([5, 5], [4]) == [("0@5", [5]), ("0@5", [5]), ("0@4", [4])]
