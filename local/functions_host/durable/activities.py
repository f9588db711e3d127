"""Run an activity and return its outcome as an event for its orchestration.

Source: the extension's TaskActivityShim; the shape of a failure is that of its serialized exception.
"""

import json
from typing import Any

from azure.functions.meta import Datum

from local.functions_host.durable.commits import ActivityOrder
from local.functions_host.durable.functions import DurableFunctions, Kind, UnknownFunction
from local.functions_host.durable.history import Event, EventType, event
from local.functions_host.invoker import Invoker, TriggerInputs
from local.functions_host.worker import Outcome


async def run_activity(order: ActivityOrder, functions: DurableFunctions, invoker: Invoker) -> Event:
    """Run the activity; return TaskCompleted or TaskFailed."""
    try:
        function = functions.get(Kind.ACTIVITY, order.name)
    except UnknownFunction as error:
        return _failed(order, Outcome(error=str(error)))
    inputs = TriggerInputs({function.trigger.name: Datum(order.input, "string")})
    outcome = await invoker.invoke(function, inputs)
    if outcome.error is not None:
        return _failed(order, outcome)
    return event(EventType.TASK_COMPLETED, TaskScheduledId=order.task_id, Result=_result(outcome.value))


def _result(value: Any) -> str | None:
    """Return the activity's result as JSON; None means null too."""
    return None if value is None or value.value in (None, "null") else str(value.value)


def _failed(order: ActivityOrder, outcome: Outcome) -> Event:
    details = {
        "$type": "System.Exception, System.Private.CoreLib",
        "Message": f" {outcome.error}",
        "StackTrace": outcome.stack,
    }
    return event(
        EventType.TASK_FAILED,
        TaskScheduledId=order.task_id,
        Reason=f"Activity function '{order.name}' failed:  {outcome.error}",
        Details=json.dumps(details),
    )
