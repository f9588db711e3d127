"""Write the request to an orchestrator as the extension does, and read the answer of the SDK."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.functions_host.durable.history import Event
from local.functions_host.durable.instances import Instance
from local.functions_host.invoker import Outcome

SCHEMA_V3 = 2
FAILURE_MARK = "\n\n$OutOfProcData$:"
LARGEST_CUSTOM_STATUS_KB = 16
CONSTANTS = {
    "upperSchemaVersion": 1,
    "upperSchemaVersionNew": SCHEMA_V3,
    "longRunningTimerIntervalDuration": "3.00:00:00",
    "maximumShortTimerDuration": "6.00:00:00",
    "defaultHttpAsyncRequestSleepTimeMillseconds": 30000,
}


class Unreadable(Exception):
    """The worker's answer does not have the orchestrators' schema V3, or is too large."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The state of an orchestrator: all its actions so far; output and custom status are JSON."""

    actions: Sequence[Mapping[str, Any]]
    is_done: bool
    output: str | None
    error: str | None
    custom_status: str | None


def request_text(instance: Instance, past: Sequence[str], new: Sequence[Event]) -> str:
    """Return the orchestration trigger's value.

    Source: OrchestrationTriggerAttributeBindingProvider. The past is JSON already, and the largest part.
    """
    rest = {
        "input": None if instance.input is None else json.loads(instance.input),
        "instanceId": instance.instance_id,
        "isReplaying": bool(past),
        "parentInstanceId": instance.parent.instance_id if instance.parent else None,
        **CONSTANTS,
    }
    history = ",".join([*past, *(json.dumps(each) for each in new)])
    return f'{{"history": [{history}], {json.dumps(rest)[1:]}'


def read_answer(outcome: Outcome) -> Answer:
    """Read a worker's outcome; raise Unreadable when it is no answer, as when the worker itself failed."""
    if outcome.error is not None and FAILURE_MARK not in outcome.error:
        raise Unreadable(outcome.error)
    raw = outcome.error.partition(FAILURE_MARK)[2] if outcome.error is not None else _value(outcome)
    state = _parsed(raw)
    if state.get("schemaVersion") != SCHEMA_V3 or len(state["actions"]) != 1:
        raise Unreadable(f"only the out-of-process schema V3 is emulated, not {state.get('schemaVersion')!r}")
    return Answer(
        actions=state["actions"][0],
        is_done=bool(state["isDone"]),
        output=_text_or_none(state.get("output")),
        error=state.get("error"),
        custom_status=_limited(_text_or_none(state.get("customStatus"))),
    )


def _value(outcome: Outcome) -> Any:
    return None if outcome.value is None else outcome.value.value


def _parsed(raw: Any) -> dict[str, Any]:
    try:
        state = json.loads(raw) if isinstance(raw, str) else raw
    except ValueError as error:
        raise Unreadable("Out of proc orchestrators must return a valid JSON schema") from error
    if not isinstance(state, dict) or not isinstance(state.get("actions"), list) or "isDone" not in state:
        raise Unreadable("The data returned by the out-of-process function execution was not valid json.")
    return state


def _text_or_none(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


def _limited(custom_status: str | None) -> str | None:
    size_kb = len(custom_status or "") * 2 // 1024
    if size_kb >= LARGEST_CUSTOM_STATUS_KB:
        raise Unreadable(
            f"The UTF-16 size of the JSON-serialized payload must not exceed {LARGEST_CUSTOM_STATUS_KB} KB. "
            f"The current payload size is {size_kb} KB."
        )
    return custom_status
