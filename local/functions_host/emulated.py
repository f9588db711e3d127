"""List the triggers and bindings of the local host; refuse any other by its name.

The Durable client is the only input that is not a trigger.
"""

from collections.abc import Mapping

from local.functions_host.errors import NotEmulated
from local.functions_host.function import Binding, FunctionDescription

EVENT_HUB_TRIGGER = "eventHubTrigger"
HTTP_TRIGGER = "httpTrigger"
TIMER_TRIGGER = "timerTrigger"
ORCHESTRATION_TRIGGER = "orchestrationTrigger"
ACTIVITY_TRIGGER = "activityTrigger"
DURABLE_CLIENT = "durableClient"
DURABLE_TRIGGERS = (ORCHESTRATION_TRIGGER, ACTIVITY_TRIGGER)
DURABLE = (*DURABLE_TRIGGERS, DURABLE_CLIENT)
TRIGGERS = (EVENT_HUB_TRIGGER, HTTP_TRIGGER, TIMER_TRIGGER, *DURABLE_TRIGGERS)
HTTP_RESPONSE = "http"

# The emulated values of the options of a binding; None means that the option is not given.
OPTIONS: Mapping[str, Mapping[str, tuple[str | None, ...]]] = {
    EVENT_HUB_TRIGGER: {"cardinality": ("MANY",), "dataType": ("BINARY", "STRING")},
    DURABLE_CLIENT: {"taskHub": (None,), "connectionName": (None,)},
}


def refuse_what_is_not_emulated(function: FunctionDescription) -> None:
    """Raise NotEmulated for the first binding or option of the function that this host does not have."""
    for binding in function.bindings:
        if not _is_emulated(binding):
            raise NotEmulated(function.name, f"the binding {binding.name} of type {binding.type}")
        _refuse_options(function.name, binding)


def _refuse_options(function_name: str, binding: Binding) -> None:
    for option, allowed in OPTIONS.get(binding.type, {}).items():
        value = binding.settings.get(option)
        if value not in allowed:
            wanted = " or ".join("unset" if one is None else one for one in allowed)
            raise NotEmulated(function_name, f"{option} {value} of {binding.type} (only {wanted})")


def _is_emulated(binding: Binding) -> bool:
    if binding.is_trigger:
        return binding.type in TRIGGERS
    if binding.type == DURABLE_CLIENT:
        return True
    return binding.type == HTTP_RESPONSE and binding.name == "$return"
