from datetime import datetime, timedelta

from local.functions_host.durable.tasks import AllOf, AnyOf, Retry, RetryOptions, Task, retry_options
from tests.unit.local.functions_host.doubles import NOON


def test_all_end_and_fail_with_the_last_child_and_any_ends_with_the_first_without_its_failure() -> None:
    both, either = AllOf(None), AnyOf(None)
    children = {one: [Task(one), Task(one)] for one in (both, either)}
    for one, (first, second) in children.items():
        one.begin([first, second])
        first.finish(failed=True)
    assert (both.is_done, either.is_done, either.has_failed) == (False, True, False)
    children[both][1].finish()
    assert (both.is_done, both.has_failed) == (True, True)


def test_an_empty_compound_ends_at_once_but_its_unfinished_parent_does_not() -> None:
    outer = AllOf(None)
    inner = (AnyOf(outer), AllOf(outer))
    for one in inner:
        one.begin([])
        assert one.is_done
    other = Task(outer)
    outer.begin([*inner, other])
    assert not outer.is_done
    other.finish()
    assert outer.is_done


class Calls:
    """A caller whose calls and timers are ended by the test."""

    def __init__(self, **options: object) -> None:
        self.now = NOON
        self.made: list[Task] = []
        self.timers: list[datetime] = []
        self.retry = Retry(None, self, self.call, shape(**options))

    def call(self, parent: Task) -> Task:
        self.made.append(Task(parent))
        return self.made[-1]

    def set_timer(self, parent: Task, fire_at: datetime) -> Task:
        self.timers.append(fire_at)
        return self.call(parent)


def shape(**more: object) -> RetryOptions:
    return retry_options({"firstRetryIntervalInMilliseconds": 1000, "maxNumberOfAttempts": 3, **more})


def test_a_call_is_made_again_after_growing_pauses_and_a_last_timer_fires_at_once() -> None:
    calls = Calls(backoffCoefficient=2)
    for number in range(6):
        assert (len(calls.made), calls.retry.is_done) == (number + 1, False)
        calls.made[number].finish(failed=number % 2 == 0)
    assert calls.retry.has_failed
    assert calls.timers == [NOON + timedelta(seconds=1), NOON + timedelta(seconds=2), NOON]


def test_a_call_that_succeeds_ends_the_retries_and_one_that_fails_after_the_timeout_does_too() -> None:
    for failed in (False, True):
        calls = Calls(retryTimeoutInMilliseconds=500)
        calls.now += timedelta(seconds=1)
        calls.made[0].finish(failed=failed)
        assert (calls.retry.is_done, calls.retry.has_failed, calls.timers) == (True, failed, [])


def test_pauses_grow_up_to_the_longest() -> None:
    options = shape(backoffCoefficient=10, maxRetryIntervalInMilliseconds=5000)
    assert [options.delay(attempt) for attempt in range(3)] == [timedelta(seconds=n) for n in (1, 5, 5)]
