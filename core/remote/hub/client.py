"""Open a client of the hub that the settings name, check once that the hub lets it read, and name its faults.

The SDK's async consumer retries refused links for ever, so the sync client checks the access first.
"""

import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

from core.errors import HubRefused, HubUnreachable
from core.remote.hub.shortcuts import take_shortcuts
from core.remote.hub.wire import keep_values_encoded
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
    """Open a sync client that does not retry; HubRefused for a connection string that the SDK cannot read."""
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
    """Return the fault of a link to a consumer group, in one line; a refusal begins with the name of the setting."""
    text = f"{settings.event_hub}, consumer group {group}: {first_line(error)}"
    return HubRefused(f"{setting}: {text}") if _REFUSED.search(str(error)) else HubUnreachable(text)


def first_line(error: Exception) -> str:
    """Return the first line of an error, or the name of its type when it has no text."""
    return (str(error) or type(error).__name__).splitlines()[0]


def _link_faults(client: Any, partition_id: str) -> list[Exception]:
    """Return the faults of a link to this partition; the sync consumer reports them, the async one does not."""
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
