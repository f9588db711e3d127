"""A function as the host sees it after indexing: its trigger, its bindings and its retry policy."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.functions_host.errors import IndexingFailed
from local.functions_host.retry_policy import RetryPolicy, parse_retry_policy


@dataclass(frozen=True, slots=True)
class Binding:
    """One binding. `settings` is its whole JSON, as function.json would hold it."""

    name: str
    type: str
    direction: str
    settings: Mapping[str, Any]

    @property
    def is_trigger(self) -> bool:
        """True for the binding that starts the function."""
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
    bindings = tuple(_binding(json.loads(text)) for text in raw_bindings)
    triggers = [binding for binding in bindings if binding.is_trigger]
    if len(triggers) != 1:
        raise IndexingFailed(f"function {name}: needs exactly one trigger, has {len(triggers)}")
    try:
        retry = parse_retry_policy(retry_settings)
    except ValueError as error:
        raise IndexingFailed(f"function {name}: {error}") from error
    return FunctionDescription(name, triggers[0], bindings, retry)


def _binding(settings: Mapping[str, Any]) -> Binding:
    return Binding(settings["name"], settings["type"], settings["direction"], settings)
