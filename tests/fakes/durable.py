"""Durable as the app sees it: the client of a task hub, and the context of an orchestrator."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import azure.durable_functions as df

from tests.fakes.builders import EPOCH


class DurableClient:
    """The client of a task hub with one instance, if it has a status. Its last step was `age` before now."""

    def __init__(
        self,
        status: str | None = None,
        age: timedelta = timedelta(),
        wakes_at: datetime | None = None,
        now: datetime | None = None,
        fault: Exception | None = None,
    ) -> None:
        self._status = df.OrchestrationRuntimeStatus(status) if status else None
        self._age, self._wakes_at, self._now, self.fault = age, wakes_at, now, fault
        self.started: list[tuple[str, str, str | None]] = []
        self.done: list[str] = []

    async def get_status(self, instance: str) -> Any:
        return SimpleNamespace(
            runtime_status=self._status,
            last_updated_time=(self._now or datetime.now(UTC)) - self._age,
            custom_status=self._wakes_at and self._wakes_at.isoformat(),
        )

    async def start_new(self, name: str, instance: str, given: str | None = None) -> None:
        if self.fault is not None:
            raise self.fault
        self.started.append((name, instance, given))

    async def resume(self, instance: str, reason: str) -> None:
        if self.fault is not None:
            raise self.fault
        self.done.append(f"resume {instance}")

    async def terminate(self, instance: str, reason: str) -> None:
        self.done.append(f"terminate {instance}")


class OrchestrationContext:
    """Names what an orchestrator asks for, as it asks."""

    def __init__(self, instance_id: str, given: object = None) -> None:
        self.instance_id, self._given = instance_id, given
        self.current_utc_datetime = EPOCH
        self.again: list[object] = []
        self.custom_status: str | None = None

    def get_input(self) -> object:
        return self._given

    def set_custom_status(self, given: str) -> None:
        self.custom_status = given

    def call_activity(self, name: str, given: object) -> tuple[str, object]:
        return (name, given)

    def create_timer(self, at: datetime) -> tuple[str, datetime]:
        return ("timer", at)

    def task_all(self, tasks: list[object]) -> tuple[str, list[object]]:
        return ("all", tasks)

    def continue_as_new(self, given: object) -> None:
        self.again.append(given)
