"""Invoke a function with its retry policy, and count the running invocations and the retries that are due.

Source: WebJobs SDK `FunctionExecutorExtensions.TryExecuteAsync`. A retry is the same call with the same invocation id.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from local.functions_host.clock import Clock, unless
from local.functions_host.function import FunctionDescription


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call of a function. Inputs and trigger metadata are `azure.functions.meta.Datum` by name.

    `retry_count` is 0 on the first try. `max_retry_count` is 0 without a retry policy and -1 for ever. With a `fault`
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
class InvocationResult:
    """The result of a call: `value` is a Datum or None. A failure has `error` ("Type: text") and its `stack`."""

    value: Any = None
    error: str | None = None
    stack: str = ""


class Worker(Protocol):
    """Loads one app and invokes its functions."""

    async def index(self, directory: Path) -> Sequence[FunctionDescription]:
        """Load the app. Raises IndexingFailed or NotEmulated when it cannot run."""

    async def invoke(self, invocation: Invocation) -> InvocationResult:
        """Run a function. Every failure of the app or of a binding is in the outcome, never raised."""

    async def close(self) -> None:
        """Free the threads once no invocation runs."""


logger = logging.getLogger("functions_host")


class Ending(Enum):
    """The end of a function for its trigger: ABANDONED means that the host stopped while a retry was due."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True)
class TriggerInputs:
    """The values of a trigger: the inputs by parameter name and the trigger's metadata, all Datums.

    With a `fault`, the inputs cannot be bound: each try fails with it before the function.
    """

    inputs: Mapping[str, Any]
    trigger_metadata: Mapping[str, Any] = field(default_factory=dict)
    fault: str | None = None


class Invoker:
    """Runs functions through the worker. `chance` gives the jitter of back-offs, in [0, 1)."""

    def __init__(self, worker: Worker, clock: Clock, chance: Callable[[], float], timeout: timedelta | None) -> None:
        self._worker = worker
        self._clock = clock
        self._chance = chance
        self._timeout = timeout
        self.bound_inputs: Callable[[FunctionDescription], Mapping[str, Any]] = lambda _: {}
        self._stopping = asyncio.Event()
        self.running = self.retrying = 0  # invocations: those that run, and those that wait for their next try
        self._idle = asyncio.Event()
        self._idle.set()

    async def run(self, function: FunctionDescription, inputs: TriggerInputs) -> Ending:
        """Run with the function's retry policy until it succeeds, its retries are used up, or the host stops."""
        invocation, policy = self._invocation(function, inputs), function.retry
        while (await self._tried(invocation)).error is not None:
            if policy is None or not policy.allows(invocation.retry_count):
                return Ending.FAILED
            delay = policy.delay(invocation.retry_count, self._chance)
            self.retrying += 1
            await unless(self._stopping.wait(), self._clock.sleep(delay))
            self.retrying -= 1
            if self._stopping.is_set():
                return Ending.ABANDONED
            invocation = replace(invocation, retry_count=invocation.retry_count + 1)
        return Ending.SUCCEEDED

    async def invoke(self, function: FunctionDescription, inputs: TriggerInputs) -> InvocationResult:
        """Invoke once and log a failure with its stack."""
        return await self._tried(self._invocation(function, inputs))

    async def _tried(self, invocation: Invocation) -> InvocationResult:
        outcome = await self._timed(invocation)
        if outcome.error is not None:
            about = {"retry_count": invocation.retry_count, "max_retry_count": invocation.max_retry_count}
            failure = {"action": "function_failed", "error": outcome.error, "stack": outcome.stack}
            logger.error("function failed", extra=_about(invocation) | failure | about)
        return outcome

    async def call(self, function: FunctionDescription, inputs: TriggerInputs) -> InvocationResult:
        """Invoke once. Log no failure, because the caller judges it."""
        return await self._timed(self._invocation(function, inputs))

    def _invocation(self, function: FunctionDescription, inputs: TriggerInputs) -> Invocation:
        limit = function.retry.max_retry_count if function.retry else 0
        values = {**inputs.inputs, **self.bound_inputs(function)}
        return Invocation(str(uuid4()), function.name, values, inputs.trigger_metadata, 0, limit, inputs.fault)

    async def _timed(self, invocation: Invocation) -> InvocationResult:
        if invocation.fault is not None:
            return InvocationResult(error=invocation.fault)
        began_at = self._clock.now()
        self.running += 1
        self._idle.clear()
        try:
            return await self._worker.invoke(invocation)
        finally:
            self.running -= 1
            if not self.running:
                self._idle.set()
            lasted = self._clock.now() - began_at
            if self._timeout is not None and lasted > self._timeout:
                text = "function ran longer than functionTimeout: Azure would have killed its worker process"
                about = {"action": "function_timeout", "lasted_s": lasted.total_seconds()}
                logger.error(text, extra=_about(invocation) | about)

    def stop_retrying(self) -> None:
        """Abandon the retries that are due. Running invocations finish."""
        self._stopping.set()

    async def finished(self) -> None:
        await self._idle.wait()


def _about(invocation: Invocation) -> dict[str, object]:
    return {"function_name": invocation.function_name, "invocation_id": invocation.invocation_id}
