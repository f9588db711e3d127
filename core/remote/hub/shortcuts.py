"""Two shortcuts through the SDK (azure-eventhub 5.15), which take a third of a worker's CPU per event away.

The SDK makes an empty event for each message, and throws it away. And for each frame that it reads, it starts a task,
because `asyncio.wait_for` of Python 3.11 does. docs/adr/0057-shortcuts-through-the-sdk.md has the reasons.
"""

import asyncio
import sys
from collections.abc import Awaitable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

TASK_PER_WAIT = sys.version_info < (3, 12)
TRANSPORT = "azure.eventhub._pyamqp.aio._transport_async"


def take_shortcuts() -> None:
    """Take both, each where the SDK is as expected. They hold for the process; a second call changes nothing."""
    make_events_at_once()
    read_without_tasks()


def make_events_at_once() -> bool:
    """Let EventData skip the empty event; return False, and change nothing, when this SDK's events are different."""
    try:
        event_data = import_module("azure.eventhub").EventData
        annotated = import_module("azure.eventhub.amqp").AmqpAnnotatedMessage
        sample = import_module("azure.eventhub._pyamqp.message").Message(*[None] * 9)
        original = event_data._from_message
        if hasattr(original, "original"):
            return True
        direct = _direct(annotated)
        if _attributes(direct(event_data, sample)) != _attributes(original(sample)):
            return False
    except (ImportError, AttributeError, TypeError, ValueError):
        return False
    direct.original = original
    event_data._from_message = classmethod(direct)
    return True


def read_without_tasks() -> bool:
    """Let the SDK's transport wait as Python 3.12 does; return False, and change nothing, where it does not wait so."""
    try:
        transport: Any = import_module(TRANSPORT)
        used = transport.asyncio
    except (ImportError, AttributeError):
        return False
    if TASK_PER_WAIT and used is asyncio:
        transport.asyncio = SimpleNamespace(**{**vars(asyncio), "wait_for": _wait_for})
    return True


async def _wait_for(awaitable: Awaitable[Any], timeout: float | None) -> Any:
    async with asyncio.timeout(timeout):
        return await awaitable


def _direct(annotated: Any) -> Any:
    def from_message(cls: Any, message: Any, raw_amqp_message: Any = None) -> Any:
        event = cls.__new__(cls)
        event._last_enqueued_event_properties = {}
        event._sys_properties = None
        event._uamqp_message = None
        event._message = message
        event._raw_amqp_message = raw_amqp_message or annotated(message=message)
        return event

    return from_message


def _attributes(event: Any) -> dict[str, Any]:
    """Return the attributes of an event with their values, and those of its annotated message."""
    found = dict(vars(event))
    return {**found, "_raw_amqp_message": vars(found["_raw_amqp_message"])}
