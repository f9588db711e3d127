"""A function as the host sees it after indexing: its trigger, its bindings and its retry policy.

The host refuses triggers and bindings that it does not have. The Durable client is the only input beside the trigger.

Sources: WebJobs SDK `RandomizedExponentialBackoffStrategy` (first delay = minimum, then minimum plus
0.8..1.2 x 2^(n-1) x minimum, limited by the maximum) and the host's `Utility.ValidateRetryOptions`.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from local.functions_host.errors import IndexingFailed, NotEmulated
from local.functions_host.json_sections import parse_time_span

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

STRATEGIES = ("fixed_delay", "exponential_backoff")
LARGEST_EXPONENT = 40


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`max_retry_count` -1 retries for ever. A fixed delay is a back-off whose `minimum` is its `maximum`."""

    max_retry_count: int
    minimum: timedelta
    maximum: timedelta

    def allows(self, retries_done: int) -> bool:
        return self.max_retry_count == -1 or retries_done < self.max_retry_count

    def within(self, longest: timedelta) -> "RetryPolicy":
        """Return the policy with no pause longer than this one."""
        return replace(self, minimum=min(self.minimum, longest), maximum=min(self.maximum, longest))

    def delay(self, retries_done: int, chance: Callable[[], float]) -> timedelta:
        """Return the delay before the next retry. `chance` gives a number in [0, 1)."""
        if retries_done == 0:
            return min(self.minimum, self.maximum)
        growth = (0.8 + 0.4 * chance()) * 2 ** min(retries_done - 1, LARGEST_EXPONENT)
        if growth * self.minimum.total_seconds() >= self.maximum.total_seconds():
            return self.maximum
        return min(self.minimum + growth * self.minimum, self.maximum)


def parse_retry_policy(settings: Mapping[str, str] | None) -> RetryPolicy | None:
    """Return the policy of `@app.retry`, or None without one. Raises ValueError where the host refuses it."""
    if not settings:
        return None
    strategy = settings.get("strategy")
    if strategy not in STRATEGIES:
        raise ValueError(f"retry strategy must be one of {', '.join(STRATEGIES)}, not {strategy!r}")
    names = ("delay_interval",) * 2 if strategy == "fixed_delay" else ("minimum_interval", "maximum_interval")
    for name in names:
        if not settings.get(name):
            raise ValueError(f"retry {name} is missing: it is required by the strategy {strategy}")
    count = settings.get("max_retry_count") or ""
    if re.fullmatch("-1|[0-9]+", count) is None:
        raise ValueError(f"retry max_retry_count must be -1 (for ever) or a whole number, not {count!r}")
    minimum, maximum = (parse_time_span(settings[name]) for name in names)
    return RetryPolicy(int(count), minimum, maximum)


@dataclass(frozen=True, slots=True)
class Binding:
    """One binding. `settings` is its whole JSON, as function.json would hold it."""

    name: str
    type: str
    direction: str
    settings: Mapping[str, Any]

    @property
    def is_trigger(self) -> bool:
        return self.type.lower().endswith("trigger")


@dataclass(frozen=True, slots=True)
class FunctionDescription:
    """A function that the worker has indexed and can invoke by `name`."""

    name: str
    trigger: Binding
    bindings: tuple[Binding, ...]
    retry: RetryPolicy | None


def describe_function(
    name: str, raw_bindings: Sequence[str], retry_settings: Mapping[str, str] | None
) -> FunctionDescription:
    """Describe a function from the worker's metadata: each raw binding is a JSON text."""
    bindings = tuple(Binding(one["name"], one["type"], one["direction"], one) for one in map(json.loads, raw_bindings))
    triggers = [binding for binding in bindings if binding.is_trigger]
    if len(triggers) != 1:
        raise IndexingFailed(f"function {name}: needs exactly one trigger, has {len(triggers)}")
    try:
        retry = parse_retry_policy(retry_settings)
    except ValueError as error:
        raise IndexingFailed(f"function {name}: {error}") from error
    return FunctionDescription(name, triggers[0], bindings, retry)


def refuse_what_is_not_emulated(function: FunctionDescription) -> None:
    """Raise NotEmulated for the first binding or option of the function that this host does not have."""
    for binding in function.bindings:
        is_response = binding.type == HTTP_RESPONSE and binding.name == "$return"
        is_known = binding.type in TRIGGERS if binding.is_trigger else is_response or binding.type == DURABLE_CLIENT
        if not is_known:
            raise NotEmulated(function.name, f"the binding {binding.name} of type {binding.type}")
        for option, allowed in OPTIONS.get(binding.type, {}).items():
            value = binding.settings.get(option)
            if value not in allowed:
                wanted = " or ".join("unset" if one is None else one for one in allowed)
                raise NotEmulated(function.name, f"{option} {value} of {binding.type} (only {wanted})")
