from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.functions_host.function import RetryPolicy, parse_retry_policy

BACKOFF = {
    "strategy": "exponential_backoff",
    "max_retry_count": "-1",
    "minimum_interval": "00:00:02",
    "maximum_interval": "00:01:00",
}


def test_a_fixed_delay_is_always_the_same() -> None:
    policy = parse({"strategy": "fixed_delay", "max_retry_count": "2", "delay_interval": "00:00:10"})
    assert [policy.delay(n, lambda: 0.9) for n in range(3)] == [timedelta(seconds=10)] * 3
    assert [policy.allows(n) for n in range(4)] == [True, True, False, False]


def test_a_backoff_is_the_minimum_first_then_minimum_plus_a_doubling_part_up_to_the_maximum() -> None:
    policy = parse(BACKOFF)
    assert [policy.delay(n, lambda: 0.5).total_seconds() for n in range(8)] == [2, 4, 6, 10, 18, 34, 60, 60]
    assert policy.delay(1, lambda: 0.0) == timedelta(seconds=3.6)
    assert policy.allows(10**9)


def test_no_pause_is_longer_than_the_longest_and_the_number_of_tries_stays() -> None:
    policy = parse(BACKOFF).within(timedelta(seconds=5))
    assert [policy.delay(n, lambda: 0.5).total_seconds() for n in range(4)] == [2, 4, 5, 5]
    assert policy.within(timedelta(seconds=1)) == RetryPolicy(-1, timedelta(seconds=1), timedelta(seconds=1))


def parse(settings: dict[str, str]) -> RetryPolicy:
    policy = parse_retry_policy(settings)
    assert policy is not None
    return policy


@given(
    retries=st.integers(0, 10**6),
    chance=st.floats(0, 1, exclude_max=True),
    minimum=st.integers(0, 10**4),
    extra=st.integers(0, 10**6),
)
def test_a_delay_is_never_outside_its_bounds(retries: int, chance: float, minimum: int, extra: int) -> None:
    policy = RetryPolicy(-1, timedelta(seconds=minimum), timedelta(seconds=minimum + extra))
    assert policy.minimum <= policy.delay(retries, lambda: chance) <= policy.maximum


def test_settings_that_the_host_refuses_are_refused_by_name() -> None:
    wrong = (
        ({"strategy": "exponentialBackoff"}, "strategy"),
        ({"max_retry_count": "-2"}, "max_retry_count"),
        ({"max_retry_count": "often"}, "max_retry_count"),
        ({"maximum_interval": ""}, "maximum_interval"),
        ({"minimum_interval": "2 s"}, "duration"),
    )
    for change, name in wrong:
        with pytest.raises(ValueError, match=name):
            parse_retry_policy({**BACKOFF, **change})
