"""Open a client of the hub that the settings name, check once that the hub lets it read, and name its faults.

The SDK's async consumer retries refused links for ever, so the sync client checks the access first.
"""

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from operator import lt
from typing import Any

from core.errors import HubRefused, HubUnreachable
from core.model.events import BATCH_EVENTS, Event, EventBatch, PartitionId, number_of, stream_of
from core.model.ports import BEFORE_FIRST
from core.remote.hub.events import to_event
from core.remote.hub.sdk_patches import keep_values_encoded, take_shortcuts
from core.settings import Settings

LINK_TIMEOUT = 20.0  # seconds for the first answer of a link, and for one event
REFUSED_WITHIN = 0.5  # seconds: a hub attaches a link that it refuses, and detaches it a moment later
_STOLEN = "link:stolen"  # refused because a peer reads with an epoch: the group and the token are right
_REFUSED = re.compile(r"not-?found|unauthorized|\b40[14]\b", re.IGNORECASE)  # the digits of a tracking id do not count


def open_client(
    settings: Settings, client: Any, credential: Callable[[], Any], consumer_group: str | None = None, **options: Any
) -> Any:
    """Open a client of the class `client` (sync or aio), by connection string or else by `credential`.

    The default consumer group is the trigger's. From the first call on, the SDK keeps the values of events encoded, and
    takes its shortcuts.
    """
    keep_values_encoded()
    take_shortcuts()
    group = consumer_group or settings.consumer_group
    if settings.hub_connection is not None:
        return client.from_connection_string(
            settings.hub_connection, group, eventhub_name=settings.event_hub, **options
        )
    return client(settings.hub_namespace, settings.event_hub, group, credential(), **options)


def open_sync_client(settings: Settings, consumer_group: str | None = None, **options: Any) -> Any:
    """Open a sync client that does not retry. Raises HubRefused for a connection string that the SDK cannot read."""
    from azure.eventhub import EventHubConsumerClient

    try:
        return open_client(settings, EventHubConsumerClient, sync_credential, consumer_group, retry_total=0, **options)
    except ValueError as error:
        raise HubRefused(f"EVENTHUB: {first_line(error)}") from error


def aio_credential() -> Any:
    """Return the identity of this process, for aio clients."""
    from azure.identity.aio import DefaultAzureCredential

    return DefaultAzureCredential()


def sync_credential() -> Any:
    """Return the identity of this process, for sync clients."""
    from azure.identity import DefaultAzureCredential

    return DefaultAzureCredential()


def check_access(settings: Settings) -> None:
    """Open one link in our consumer group. Raises HubRefused or HubUnreachable, which name the fault in one line."""
    from azure.eventhub.exceptions import AuthenticationError, EventHubError

    client = open_sync_client(settings)
    try:
        faults = _link_faults(client, client.get_partition_ids()[0])
    except AuthenticationError as error:
        raise HubRefused(f"EVENTHUB: {settings.event_hub} refuses the token: {first_line(error)}") from error
    except (EventHubError, OSError) as error:
        raise link_fault(settings, settings.consumer_group, "EVENTHUB_NAME", error) from error
    finally:
        client.close()
    for fault in faults:
        if _STOLEN not in str(fault):
            raise link_fault(settings, settings.consumer_group, "EVENTHUB_CONSUMER_GROUP", fault) from fault


def link_fault(settings: Settings, group: str, setting: str, error: Exception) -> HubRefused | HubUnreachable:
    """Return the fault of a link to a consumer group, in one line. A refusal begins with the name of the setting."""
    text = f"{settings.event_hub}, consumer group {group}: {first_line(error)}"
    return HubRefused(f"{setting}: {text}") if _REFUSED.search(str(error)) else HubUnreachable(text)


def first_line(error: Exception) -> str:
    """Return the first line of an error, or the name of its type when it has no text."""
    return (str(error) or type(error).__name__).splitlines()[0]


def _link_faults(client: Any, partition_id: str) -> list[Exception]:
    """Return the faults of a link to this partition. The sync consumer reports them, the async one does not."""
    faults: list[Exception] = []
    answered = threading.Event()

    def on_batch(context: Any, events: Sequence[Any]) -> None:
        answered.set()

    def on_error(context: Any, error: Exception) -> None:
        faults.append(error)
        answered.set()

    options = {
        "on_error": on_error,
        "partition_id": partition_id,
        "starting_position": "@latest",
        "max_wait_time": REFUSED_WITHIN,
    }
    receiving = threading.Thread(target=client.receive_batch, args=(on_batch,), kwargs=options, daemon=True)
    receiving.start()
    if not answered.wait(LINK_TIMEOUT):
        faults.append(TimeoutError(f"no answer in {LINK_TIMEOUT:g} s"))
    client.close()
    receiving.join(LINK_TIMEOUT)
    return faults


BATCH_SIZE, PREFETCH = BATCH_EVENTS, BATCH_EVENTS


@dataclass(frozen=True, slots=True)
class Sharing:
    """The terms of sharing: the checkpoint store, the time between balancings, and the time until an owner expires.

    `partition_ids` returns one list, which changes when the hub gets more partitions: the SDK asks once and keeps it.
    """

    checkpoint_store: Any
    interval: timedelta
    expiry: timedelta
    partition_ids: Callable[[], list[PartitionId]]


def open_consumer(settings: Settings, sharing: Sharing) -> Any:
    """Open an aio EventHubConsumerClient. Close it to release its partitions."""
    from azure.eventhub.aio import EventHubConsumerClient

    class Consumer(EventHubConsumerClient):
        async def get_partition_ids(self) -> Any:
            return await asyncio.to_thread(sharing.partition_ids)

    return open_client(
        settings,
        Consumer,
        aio_credential,
        checkpoint_store=sharing.checkpoint_store,
        load_balancing_interval=sharing.interval.total_seconds(),
        partition_ownership_expiration_interval=sharing.expiry.total_seconds(),
    )


async def receive(
    client: Any,
    take: Callable[[EventBatch], Awaitable[None]],
    failed: Callable[[str | None, Exception], None],
    convert: Callable[[Any], Event] = to_event,
) -> None:
    """Pass batches to `take`, one at a time per partition and in order, until the client is closed."""

    async def on_batch(context: Any, events: Sequence[Any]) -> None:
        for batch in batches_of(context, events, convert):
            await take(batch)

    async def on_error(context: Any, error: Exception) -> None:
        failed(None if context is None else context.partition_id, error)

    await client.receive_batch(
        on_batch, on_error=on_error, max_batch_size=BATCH_SIZE, prefetch=PREFETCH, starting_position=BEFORE_FIRST
    )


def batches_of(context: Any, events: Sequence[Any], convert: Callable[[Any], Event] = to_event) -> Iterator[EventBatch]:
    """Yield the events of a partition as batches of ours, mostly one. The id is the place of the first event.

    After a lost connection, the SDK (azure-eventhub 5.15) hands over the events that it still holds. Then it hands over
    some of them again, in the same list. The repeated events become a second batch, which the guard drops.
    """
    stream = stream_of(context.fully_qualified_namespace, context.eventhub_name, context.consumer_group)
    partition = stream.partition(PartitionId(context.partition_id))
    ours = tuple(map(convert, events))
    numbers = list(map(number_of, ours))
    falls = [place for place, rises in enumerate(map(lt, numbers, numbers[1:]), 1) if not rises]
    for begin, end in pairwise((0, *falls, len(ours))):
        if begin < end:
            yield EventBatch(partition, ours[begin:end], f"{context.partition_id}@{numbers[begin]}")
