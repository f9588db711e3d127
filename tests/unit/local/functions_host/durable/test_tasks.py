from datetime import datetime, timedelta

import pytest

from local.functions_host.durable.tasks import AllOf, AnyOf, Retry, RetryOptions, Task, retry_options
from tests.unit.local.functions_host.doubles import NOON


def test_all_ends_with_the_last_child_also_when_the_first_failed() -> None:
    both = AllOf(None)
    first, second = Task(both), Task(both)
    both.begin([first, second])
    first.finish(failed=True)
    assert not both.is_done
    second.finish()
    assert both.is_done
    assert both.has_failed


def test_any_ends_with_the_first_child_and_does_not_fail_with_it() -> None:
    either = AnyOf(None)
    first, second = Task(either), Task(either)
    either.begin([first, second])
    first.finish(failed=True)
    assert either.is_done
    assert not either.has_failed


@pytest.mark.parametrize("kind", [AllOf, AnyOf])
def test_nothing_to_wait_for_ends_at_once(kind: type[AllOf | AnyOf]) -> None:
    nothing = kind(None)
    nothing.begin([])
    assert nothing.is_done


def test_what_ends_while_it_is_made_does_not_end_what_it_is_part_of() -> None:
    outer = AllOf(None)
    inner = AnyOf(outer)
    inner.begin([])
    other = Task(outer)
    outer.begin([inner, other])
    assert not outer.is_done
    other.finish()
    assert outer.is_done


class Calls:
    """A caller whose calls and timers are ended by the test."""

    def __init__(self) -> None:
        self.now = NOON
        self.made: list[Task] = []
        self.timers: list[datetime] = []

    def call(self, parent: Task) -> Task:
        self.made.append(Task(parent))
        return self.made[-1]

    def set_timer(self, parent: Task, fire_at: datetime) -> Task:
        self.timers.append(fire_at)
        return self.call(parent)


def shape(**more: object) -> RetryOptions:
    return retry_options({"firstRetryIntervalInMilliseconds": 1000, "maxNumberOfAttempts": 3, **more})


def test_a_call_is_made_again_after_growing_pauses_and_a_last_timer_fires_at_once() -> None:
    calls = Calls()
    retry = Retry(None, calls, calls.call, shape(backoffCoefficient=2))
    for number in range(6):
        assert len(calls.made) == number + 1
        assert not retry.is_done
        calls.made[number].finish(failed=number % 2 == 0)
    assert retry.has_failed
    assert calls.timers == [NOON + timedelta(seconds=1), NOON + timedelta(seconds=2), NOON]


def test_a_call_that_succeeds_ends_the_retries() -> None:
    calls = Calls()
    retry = Retry(None, calls, calls.call, shape())
    calls.made[0].finish()
    assert retry.is_done
    assert not retry.has_failed
    assert calls.timers == []


def test_after_the_timeout_nothing_is_tried_again() -> None:
    calls = Calls()
    retry = Retry(None, calls, calls.call, shape(retryTimeoutInMilliseconds=500))
    calls.now += timedelta(seconds=1)
    calls.made[0].finish(failed=True)
    assert retry.has_failed
    assert calls.timers == []


def test_pauses_grow_up_to_the_longest() -> None:
    options = shape(backoffCoefficient=10, maxRetryIntervalInMilliseconds=5000)
    assert [options.delay(attempt) for attempt in range(3)] == [timedelta(seconds=n) for n in (1, 5, 5)]
