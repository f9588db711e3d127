import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from local.functions_host.function import Binding, FunctionDescription
from local.functions_host.invoker import Invocation, InvocationResult, Invoker
from local.functions_host.state_file import StateFile, TimerStatus
from local.functions_host.timers import TimerListener, parse_schedule
from tests.afterwards import after_the_test
from tests.local.functions_host.doubles import NOON, ManualClock, ScriptedWorker, eventually

pytestmark = pytest.mark.asyncio


HOURLY = "0 0 * * * *"
HOUR = timedelta(hours=1)


class Bench:
    """A timer on a manual clock. `runs` are the inputs its function got."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.state = StateFile(None)
        after_the_test(self.state.close)
        self.runs: list[dict[str, Any]] = []
        self.outcome = InvocationResult()

    async def invoked(self, invocation: Invocation) -> InvocationResult:
        self.runs.append(json.loads(invocation.inputs["timer"].value))
        return self.outcome

    @asynccontextmanager
    async def timer(self, schedule: str = HOURLY, **settings: Any) -> AsyncIterator[TimerListener]:
        trigger = Binding("timer", "timerTrigger", "IN", settings)
        function = FunctionDescription("tick", trigger, (trigger,), None)
        listener = TimerListener(function, parse_schedule(schedule))
        listener.start(Invoker(ScriptedWorker(self.invoked), self.clock, lambda: 0.5, None), self.state, self.clock)
        await eventually(lambda: self.clock.is_somebody_due_within(timedelta(days=1)))
        try:
            yield listener
        finally:
            await listener.stop()

    async def ran(self, count: int) -> None:
        await eventually(lambda: len(self.runs) == count)


@pytest.fixture
def bench(clock: ManualClock) -> Bench:
    return Bench(clock)


async def test_a_timer_runs_when_it_is_due_until_it_is_stopped_and_stores_when_it_is_due_next(bench: Bench) -> None:
    async with bench.timer():
        assert bench.runs == []
        await bench.clock.advance(HOUR)
        await bench.ran(1)
        await bench.clock.next_sleep()
        assert bench.state.read_timer("tick") == TimerStatus(NOON + HOUR, NOON + 2 * HOUR, NOON + HOUR)
        await bench.clock.advance(HOUR)
        await bench.ran(2)
    await bench.clock.advance(HOUR)
    assert [run["IsPastDue"] for run in bench.runs] == [False, False]
    assert bench.runs[0]["ScheduleStatus"]["Last"] == "0001-01-01T00:00:00"
    assert bench.runs[1]["ScheduleStatus"]["Last"] == "2026-11-21T13:00:00+00:00"


async def test_a_missed_run_of_the_current_schedule_is_made_up_at_start(bench: Bench) -> None:
    async with bench.timer():
        assert bench.runs == []
    await bench.clock.advance(3 * HOUR)
    async with bench.timer("0 0 5 * * *"):
        assert bench.runs == []
    async with bench.timer():
        assert [run["IsPastDue"] for run in bench.runs] == [True]
    async with bench.timer():
        assert len(bench.runs) == 1


async def test_the_next_instant_follows_ncrontab_or_the_interval_and_any_other_text_is_refused() -> None:
    expected = {
        "*/5 * * * * *": "2026-11-21T12:00:05+00:00",
        "0 */5 * * * *": "2026-11-21T12:05:00+00:00",
        "*/5 * * * *": "2026-11-21T12:05:00+00:00",
        "0 30 9 * * 1-5": "2026-11-23T09:30:00+00:00",
        "0 0 0 13 * Fri": "2027-08-13T00:00:00+00:00",  # both day fields must hold
        "00:00:30": "2026-11-21T12:00:30+00:00",
        "1.00:00:00": "2026-11-22T12:00:00+00:00",
    }
    assert {text: parse_schedule(text)(NOON).isoformat() for text in expected} == expected
    for text in ("", "00:00:00", "every day", "* * * *", "61 * * * * *", "0 0 0 * * * 2026"):
        with pytest.raises(ValueError, match=r"duration|longer|neither"):
            parse_schedule(text)
