"""Run the timer trigger of a function, and compute when it is due from NCRONTAB or a TimeSpan.

Sources: NCrontab's `CrontabSchedule` (day of month AND day of week, unlike cron), and WebJobs' `TimerSchedule`,
`TimerListener` and `ScheduleMonitor`.
"""

import asyncio
import json
from collections.abc import Callable
from datetime import datetime, timedelta

from azure.functions.meta import Datum
from croniter import croniter

from local.functions_host.clock import Clock, sleep_until, unless
from local.functions_host.function import FunctionDescription
from local.functions_host.invoker import Invoker, TriggerInputs
from local.functions_host.json_sections import parse_time_span
from local.functions_host.state_file import StateFile, TimerStatus

Schedule = Callable[[datetime], datetime]
"""Return the first instant of a schedule after an instant (aware UTC)."""


def parse_schedule(text: str) -> Schedule:
    """Return the schedule of a TimeSpan, a fixed interval after the last run, or of an NCRONTAB expression.

    Raises ValueError when the text is neither form.
    """
    fields = text.split()
    if len(fields) == 1:
        interval = parse_time_span(text)
        if interval <= timedelta(0):
            raise ValueError(f"{text!r} must be longer than zero")
        return lambda instant: instant + interval
    has_seconds = len(fields) == 6
    if len(fields) not in (5, 6) or not croniter.is_valid(text, second_at_beginning=has_seconds):
        raise ValueError(f"{text!r} is neither NCRONTAB of five or six fields nor a TimeSpan hh:mm:ss")
    return lambda instant: croniter(text, instant, second_at_beginning=has_seconds, day_or=False).get_next(datetime)


class TimerListener:
    """Runs a function by its schedule. `fire` runs it now, after its current run."""

    def __init__(self, function: FunctionDescription, schedule: Schedule) -> None:
        self.function = function
        self._schedule = schedule
        self._stopping = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def start(self, invoker: Invoker, state: StateFile, clock: Clock) -> None:
        self._invoker = invoker
        self._state = state
        self._clock = clock
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        self._stopping.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def fire(self, *, is_past_due: bool = False) -> None:
        """Run the function once and store when it is due next."""
        async with self._one_at_a_time:
            content = {
                "Schedule": {"AdjustForDST": True},
                "ScheduleStatus": (before := self._status())
                and {
                    "Last": before.last_at.isoformat() if before.last_at else "0001-01-01T00:00:00",
                    "Next": before.next_at.isoformat(),
                    "LastUpdated": before.updated_at.isoformat(),
                },
                "IsPastDue": is_past_due,
            }
            inputs = TriggerInputs({self.function.trigger.name: Datum(json.dumps(content), "json")})
            await self._invoker.run(self.function, inputs)
            now = self._clock.now()
            self._note(TimerStatus(now, self._schedule(now), now))

    async def _run(self) -> None:
        now, status = self._clock.now(), self._status()
        # a run of the current schedule was missed; the status may come from a different one
        is_past_due = status is not None and self._schedule(status.updated_at) < now
        if is_past_due or self.function.trigger.settings.get("runOnStartup"):
            await self.fire(is_past_due=is_past_due)
        elif status is None:
            self._note(TimerStatus(None, self._schedule(now), now))
        while not self._stopping.is_set():
            due_at = self._schedule(self._clock.now())
            await unless(self._stopping.wait(), sleep_until(self._clock, due_at))
            if not self._stopping.is_set() and due_at <= self._clock.now():
                await self.fire()

    @property
    def _is_monitored(self) -> bool:
        return bool(self.function.trigger.settings.get("useMonitor", True))

    def _status(self) -> TimerStatus | None:
        return self._state.read_timer(self.function.name) if self._is_monitored else None

    def _note(self, status: TimerStatus) -> None:
        if self._is_monitored:
            self._state.write_timer(self.function.name, status)
