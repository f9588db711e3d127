"""Whatever the policy: no pause is negative, above the ceiling, or shorter for being later."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from core.model.letters import Backoff

SPANS = st.timedeltas(timedelta(0), timedelta(days=7))
CHANCES = st.floats(0, 1)
ATTEMPTS = st.integers(0, 10**6)


@st.composite
def policies(draw: st.DrawFn) -> Backoff:
    base, ceiling = sorted([draw(SPANS), draw(SPANS)])
    return Backoff(base, ceiling, draw(st.integers(1, 100)), draw(st.floats(1, 1000)))


@given(policies(), ATTEMPTS, CHANCES)
def test_a_pause_lies_between_nothing_and_the_ceiling(policy: Backoff, attempts: int, chance: float) -> None:
    assert timedelta(0) <= policy.pause(attempts, chance) <= policy.longest(attempts) <= policy.ceiling


@given(policies(), ATTEMPTS)
def test_the_longest_pause_never_shrinks(policy: Backoff, attempts: int) -> None:
    assert policy.longest(attempts) <= policy.longest(attempts + 1)


@given(policies(), ATTEMPTS, CHANCES, CHANCES)
def test_more_chance_is_no_shorter_pause(policy: Backoff, attempts: int, one: float, other: float) -> None:
    less, more = sorted([one, other])
    assert policy.pause(attempts, less) <= policy.pause(attempts, more)


@given(policies(), ATTEMPTS)
def test_attempts_once_spent_stay_spent(policy: Backoff, attempts: int) -> None:
    assert policy.is_spent(policy.attempts)
    assert not policy.is_spent(policy.attempts - 1)
    assert policy.is_spent(attempts + 1) or not policy.is_spent(attempts)
