from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.functions_host.retry_policy import RetryPolicy, parse_retry_policy

BACKOFF = {
    "strategy": "exponential_backoff",
    "max_retry_count": "-1",
    "minimum_interval": "00:00:02",
    "maximum_interval": "00:01:00",
}


def test_a_fixed_delay_is_always_the_same() -> None:
    policy = parse_retry_policy({"strategy": "fixed_delay", "max_retry_count": "2", "delay_interval": "00:00:10"})
    assert policy is not None
    assert [policy.delay(n, lambda: 0.9) for n in range(3)] == [timedelta(seconds=10)] * 3
    assert [policy.allows(n) for n in range(4)] == [True, True, False, False]


def test_a_backoff_is_the_minimum_first_then_minimum_plus_a_doubling_part_up_to_the_maximum() -> None:
    policy = parse_retry_policy(BACKOFF)
    assert policy is not None
    seconds = [policy.delay(n, lambda: 0.5).total_seconds() for n in range(8)]
    assert seconds == [2, 4, 6, 10, 18, 34, 60, 60]
    assert policy.delay(1, lambda: 0.0) == timedelta(seconds=3.6)
    assert policy.allows(10**9)


@given(
    retries=st.integers(0, 10**6),
    chance=st.floats(0, 1, exclude_max=True),
    minimum=st.integers(0, 10**4),
    extra=st.integers(0, 10**6),
)
def test_a_delay_is_never_outside_its_bounds(retries: int, chance: float, minimum: int, extra: int) -> None:
    policy = RetryPolicy(-1, timedelta(seconds=minimum), timedelta(seconds=minimum + extra))
    assert policy.minimum <= policy.delay(retries, lambda: chance) <= policy.maximum


def test_a_function_without_policy_has_none() -> None:
    assert parse_retry_policy(None) is None


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"strategy": "exponentialBackoff"}, "strategy"),
        ({"max_retry_count": "-2"}, "max_retry_count"),
        ({"max_retry_count": "often"}, "max_retry_count"),
        ({"maximum_interval": ""}, "maximum_interval"),
        ({"minimum_interval": "2 s"}, "duration"),
    ],
)
def test_what_the_host_refuses_is_refused_by_name(change: dict[str, str], names: str) -> None:
    with pytest.raises(ValueError, match=names):
        parse_retry_policy({**BACKOFF, **change})
