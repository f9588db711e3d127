"""The one list of what the local host can trigger and bind; anything else is refused by name.

The Durable triggers and client get their place here: a type in the list, a listener in `host.py`, and an input in
`FunctionsHost`'s `inputs` (the client binding is the one input that is not the trigger).
"""

from collections.abc import Mapping

from local.functions_host.errors import NotEmulated
from local.functions_host.function import Binding, FunctionDescription

EVENT_HUB_TRIGGER = "eventHubTrigger"
HTTP_TRIGGER = "httpTrigger"
TIMER_TRIGGER = "timerTrigger"
TRIGGERS = (EVENT_HUB_TRIGGER, HTTP_TRIGGER, TIMER_TRIGGER)
HTTP_RESPONSE = "http"

# Options of a supported trigger that have only these values here. None stands for "not given".
OPTIONS: Mapping[str, Mapping[str, tuple[str | None, ...]]] = {
    EVENT_HUB_TRIGGER: {"cardinality": ("MANY",), "dataType": ("BINARY", "STRING")},
}


def refuse_what_is_not_emulated(function: FunctionDescription) -> None:
    """Raise NotEmulated for the first binding or option of the function that this host does not have."""
    for binding in function.bindings:
        if not _is_emulated(binding):
            raise NotEmulated(function.name, f"the binding {binding.name} of type {binding.type}")
    for option, allowed in OPTIONS.get(function.trigger.type, {}).items():
        value = function.trigger.settings.get(option)
        if value not in allowed:
            wanted = " or ".join(str(one) for one in allowed)
            raise NotEmulated(function.name, f"{option} {value} of {function.trigger.type} (only {wanted})")


def _is_emulated(binding: Binding) -> bool:
    if binding.is_trigger:
        return binding.type in TRIGGERS
    return binding.type == HTTP_RESPONSE and binding.name == "$return"
