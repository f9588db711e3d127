"""The port to the language worker: an invocation and its outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from local.functions_host.function import FunctionDescription


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call of a function. Inputs and trigger metadata are `azure.functions.meta.Datum` by name.

    `retry_count` is 0 on the first try; `max_retry_count` is 0 without a retry policy and -1 for ever. With a `fault`
    the host cannot bind the inputs, and the worker gets no call.
    """

    invocation_id: str
    function_name: str
    inputs: Mapping[str, Any]
    trigger_metadata: Mapping[str, Any] = field(default_factory=dict)
    retry_count: int = 0
    max_retry_count: int = 0
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a call: `value` is a Datum or None. A failure has `error` ("Type: text") and its `stack`."""

    value: Any = None
    error: str | None = None
    stack: str = ""


class Worker(Protocol):
    """Loads one app and invokes its functions."""

    async def index(self, directory: Path) -> Sequence[FunctionDescription]:
        """Load the app; raise IndexingFailed or NotEmulated when it cannot run."""

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Run a function; every failure of the app or of a binding is in the outcome, never raised."""

    async def close(self) -> None:
        """Free the threads once no invocation runs."""
