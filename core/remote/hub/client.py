"""Open a client of the hub as the settings say, by connection string or by identity. The caller imports the SDK."""

from collections.abc import Callable
from typing import Any

from core.settings import Settings


def open_client(
    settings: Settings, client: Any, credential: Callable[[], Any], consumer_group: str | None = None, **options: Any
) -> Any:
    """An EventHubConsumerClient, sync or aio as `client` is; `credential` is only made where there is no string.

    The consumer group is the trigger's unless another is given.
    """
    group = consumer_group or settings.consumer_group
    if settings.hub_connection is not None:
        return client.from_connection_string(
            settings.hub_connection, group, eventhub_name=settings.event_hub, **options
        )
    return client(settings.hub_namespace, settings.event_hub, group, credential(), **options)


def aio_credential() -> Any:
    """The identity of this process, for aio clients."""
    from azure.identity.aio import DefaultAzureCredential

    return DefaultAzureCredential()


def sync_credential() -> Any:
    """The identity of this process, for sync clients."""
    from azure.identity import DefaultAzureCredential

    return DefaultAzureCredential()
