"""Ask the hub once whether it lets us read: the SDK's async consumer goes on for ever when its links are refused."""

import threading
from collections.abc import Sequence
from typing import Any

from core.errors import HubRefused
from core.remote.hub.client import open_client, sync_credential
from core.remote.hub.faults import first_line, named
from core.settings import Settings

TIMEOUT = 20.0  # seconds for the first answer of a link
_NOT_OURS = "link:stolen"  # refused because a peer reads with an epoch: then group and token are right


def check_access(settings: Settings) -> None:
    """Open one link as a reader of our consumer group; HubRefused or HubUnreachable say in one line what is wrong."""
    from azure.eventhub.exceptions import AuthenticationError, EventHubError

    try:
        client = _client(settings)
    except ValueError as error:
        raise HubRefused(f"EVENTHUB: {first_line(error)}") from error
    try:
        faults = _link_faults(client, client.get_partition_ids()[0])
    except AuthenticationError as error:
        raise HubRefused(f"EVENTHUB: {settings.event_hub} refuses the token: {first_line(error)}") from error
    except (EventHubError, OSError) as error:
        raise named(settings, settings.consumer_group, "EVENTHUB_NAME", error) from error
    finally:
        client.close()
    for fault in faults:
        if _NOT_OURS not in str(fault):
            raise named(settings, settings.consumer_group, "EVENTHUB_CONSUMER_GROUP", fault) from fault


def _link_faults(client: Any, partition_id: str) -> list[Exception]:
    """What is wrong with a link to this partition; the sync consumer tells, where the async one does not."""
    faults: list[Exception] = []
    answered = threading.Event()

    def on_batch(context: Any, events: Sequence[Any]) -> None:
        answered.set()

    def on_error(context: Any, error: Exception) -> None:
        faults.append(error)
        answered.set()

    options = {"on_error": on_error, "partition_id": partition_id, "starting_position": "@latest", "max_wait_time": 0.1}
    receiving = threading.Thread(target=client.receive_batch, args=(on_batch,), kwargs=options, daemon=True)
    receiving.start()
    if not answered.wait(TIMEOUT):
        faults.append(TimeoutError(f"no answer in {TIMEOUT:g} s"))
    client.close()
    receiving.join(TIMEOUT)
    return faults


def _client(settings: Settings) -> Any:
    from azure.eventhub import EventHubConsumerClient

    return open_client(settings, EventHubConsumerClient, sync_credential, retry_total=0)
