"""A worker whose functions are one coroutine of the test."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from local.functions_host.function import FunctionDescription
from local.functions_host.worker import Invocation, Outcome


class ScriptedWorker:
    """Answers each invocation by `answer`."""

    def __init__(self, answer: Callable[[Invocation], Awaitable[Outcome]]) -> None:
        self._answer = answer

    async def index(self, directory: Path) -> Sequence[FunctionDescription]:
        return ()

    async def invoke(self, invocation: Invocation) -> Outcome:
        return await self._answer(invocation)

    async def close(self) -> None:
        """Nothing is held."""
