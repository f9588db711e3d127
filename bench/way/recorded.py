"""Batches of the local hub as the SDK received them, recorded so that each stage is replayed with the same input."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from azure.eventhub import EventData
from azure.eventhub._pyamqp.aio import _receiver_async as receiver

from core.remote.hub.client import BATCH_SIZE, PREFETCH
from core.remote.hub.sdk_patches import keep_values_encoded


@dataclass(frozen=True, slots=True)
class Recorded:
    """One batch: the SDK's context of its partition, and the encoded messages of its events."""

    context: Any
    payloads: tuple[bytes, ...]

    def events(self) -> list[Any]:
        """Return events from which nothing was read yet."""
        return [EventData._from_message(receiver.decode_payload(memoryview(one))) for one in self.payloads]


async def record(client: Any, events: int) -> list[Recorded]:
    """Receive so many events, and return them in full batches, the partitions in turn: so the busy worker gets them."""
    keep_values_encoded()
    payloads: dict[int, bytes] = {}
    partitions: dict[str, tuple[Any, list[bytes]]] = {}
    ended = asyncio.Event()

    async def on_batch(context: Any, batch: Sequence[Any]) -> None:
        _, own = partitions.setdefault(context.partition_id, (context, []))
        own += [payloads.pop(id(event._message)) for event in batch]
        if sum(len(each) for _, each in partitions.values()) >= events:
            ended.set()

    reading, receiver.decode_payload = receiver.decode_payload, _noting(receiver.decode_payload, payloads)
    try:
        async with client:
            receiving = asyncio.ensure_future(
                client.receive_batch(on_batch, max_batch_size=BATCH_SIZE, prefetch=PREFETCH, starting_position="-1")
            )
            await asyncio.wait({receiving, asyncio.ensure_future(ended.wait())}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        receiver.decode_payload = reading
    turns = zip_longest(*(_batches(context, own) for context, own in partitions.values()))
    return [one for turn in turns for one in turn if one is not None]


def _batches(context: Any, payloads: Sequence[bytes]) -> Iterator[Recorded]:
    for at in range(0, len(payloads), BATCH_SIZE):
        yield Recorded(context, tuple(payloads[at : at + BATCH_SIZE]))


def _noting(read: Callable[[memoryview], Any], payloads: dict[int, bytes]) -> Callable[[memoryview], Any]:
    def read_and_note(payload: memoryview) -> Any:
        message = read(payload)
        payloads[id(message)] = bytes(payload)
        return message

    return read_and_note
