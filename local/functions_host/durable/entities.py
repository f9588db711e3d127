"""Build the request for a batch of entity operations, and decide the changes of its answer. Pure.

Source: EntityTriggerAttributeBindingProvider and TaskEntityShim (its out-of-process batch).
"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from local.functions_host.durable.history import Event, event_raised
from local.functions_host.durable.instances import EntityBatch, EntityCommit, Outgoing
from local.functions_host.invoker import Outcome


def signal(operation: str, request_id: str, text: str | None) -> Event:
    """Return a client's signal; `text` is its input as JSON."""
    return {"op": operation, "id": request_id, "input": text, "signal": True}


def entity_id_of(name: str, key: str) -> str:
    """Return the id of an entity."""
    return f"@{name.lower()}@{key}"


def names_of(entity_id: str) -> tuple[str, str]:
    """Return the name and the key in an entity's id."""
    _, name, key = entity_id.split("@", 2)
    return name, key


def batch_text(batch: EntityBatch) -> str:
    """Return the entity trigger's value."""
    name, key = names_of(batch.entity_id)
    requests = [each.event for each in batch.entries]
    operations = [
        {"name": one["op"], "input": one["input"], "isSignal": one["signal"], "id": one["id"]} for one in requests
    ]
    return json.dumps(
        {
            "self": {"name": name, "key": key},
            "exists": batch.state is not None,
            "state": batch.state,
            "batch": operations,
        }
    )


def conclude_batch(batch: EntityBatch, outcome: Outcome, at: datetime) -> EntityCommit:
    """Return the changes of the outcome; a batch that fails as a whole leaves the state unchanged."""
    consumed = [each.number for each in batch.entries]
    requests = [each.event for each in batch.entries]
    if outcome.error is not None:
        results = [{"isError": True, "result": json.dumps(outcome.error)}] * len(requests)
        return EntityCommit(batch.entity_id, consumed, batch.state, _responses(requests, results, at))
    answer = _parsed(outcome.value.value)
    state = answer["entityState"] if answer["entityExists"] else None
    return EntityCommit(batch.entity_id, consumed, state, _responses(requests, answer["results"], at))


def _parsed(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def _responses(requests: Sequence[Event], results: Sequence[dict[str, Any]], at: datetime) -> list[Outgoing]:
    answered = [pair for pair in zip(requests, results, strict=True) if not pair[0]["signal"]]
    return [
        Outgoing(request["parent"], request["parentExecution"], event_raised(request["id"], _body(result)), at)
        for request, result in answered
    ]


def _body(result: dict[str, Any]) -> str:
    error = {"exceptionType": "Error"} if result["isError"] else {}
    return json.dumps({"result": result["result"], **error})
