"""Write orchestrations for Durable on Azure Storage, where a worker may die in an activity and a timer fires early."""

import logging
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import azure.durable_functions as df

log = logging.getLogger("hubledger.orchestrations")
Result = TypeVar("Result")

VISIBILITY = timedelta(minutes=1)  # both timeouts of host.json: after it, another machine does the work of a dead one
SLICE = timedelta(seconds=14)  # of work in one activity, and of its waits; the last call still ends within VISIBILITY
PAUSE = timedelta(seconds=30)  # after a fault
SECOND = timedelta(seconds=1)
STALLED_AFTER = timedelta(minutes=5)  # without a sign of life; a step takes a minute at most
SILENT = "no sign of life for too long: an activity or a timer was lost"


def outlive(task: Any, otherwise: Result) -> Generator[Any, Any, Result]:
    """Wait for a task, and return its result; or `otherwise` when it failed, as it does when its worker dies.

    A task of several must hold plain calls only: with calls that are retried, the SDK and the host number their tasks
    differently (azure-functions-durable-python#603).
    """
    try:
        result: Result = yield task
    except Exception:  # noqa: BLE001 - the SDK raises no other class; the host has logged it
        return otherwise
    return result


def sleep(context: df.DurableOrchestrationContext, wait: timedelta) -> Generator[Any, Any, None]:
    """Sleep for at least this time, and for a second.

    A timer is a message that its queue hides for whole seconds, cut: it fires up to a second early, and below a second
    at once. So it is set a second later.
    """
    yield context.create_timer(context.current_utc_datetime + max(wait, SECOND) + SECOND)


def refuse_foreign(context: df.DurableOrchestrationContext, given: object) -> str:
    """Log an instance that the app did not start, and return its output. It has no history, so it logs once."""
    facts = {"action": "orchestration_refused", "instance_id": context.instance_id, "error": f"input {given!r:.200}"}
    log.warning("orchestration ended: the app did not start it under this name", extra=facts)
    return "the app did not start this instance"


def is_silent(status: Any, now: datetime, patience: timedelta = STALLED_AFTER) -> bool:
    """Return True when a running orchestration has done no step for too long, and does not sleep by its own word."""
    woken_at = (
        datetime.fromisoformat(status.custom_status) if status.custom_status else datetime.min.replace(tzinfo=UTC)
    )
    return max(status.last_updated_time.replace(tzinfo=UTC), woken_at) < now - patience
