"""core/model/letters.py: pauses that grow to a ceiling, shortened by chance."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.letters import Backoff


def seconds(value: float) -> timedelta:
    return timedelta(seconds=value)


def test_the_longest_pause_doubles_from_thirty_seconds_up_to_an_hour() -> None:
    longest = [Backoff().longest(attempts) for attempts in range(1, 10)]
    assert longest == [seconds(each) for each in (30, 60, 120, 240, 480, 960, 1920, 3600, 3600)]


@pytest.mark.parametrize("attempts", [0, -1, 1])
def test_before_the_second_attempt_the_longest_pause_is_the_base(attempts: int) -> None:
    assert Backoff().longest(attempts) == seconds(30)


@pytest.mark.parametrize(("chance", "pause"), [(0.0, 0), (0.25, 30), (0.5, 60), (1.0, 120)])
def test_chance_takes_from_none_to_all_of_the_pause(chance: float, pause: float) -> None:
    assert Backoff().pause(3, chance) == seconds(pause)


@pytest.mark.parametrize(("attempts", "spent"), [(0, False), (7, False), (8, True), (9, True)])
def test_eight_attempts_are_all_there_are(attempts: int, spent: bool) -> None:
    assert Backoff().is_spent(attempts) is spent


def test_a_policy_of_ones_own_is_kept() -> None:
    own = Backoff(base=seconds(1), ceiling=seconds(20), attempts=3, factor=3.0)
    assert [own.longest(attempts) for attempts in range(1, 6)] == [seconds(each) for each in (1, 3, 9, 20, 20)]
    assert own.is_spent(3)


def test_a_base_of_nothing_is_no_pause() -> None:
    assert [Backoff(base=seconds(0)).longest(attempts) for attempts in (1, 8, 10**6)] == [seconds(0)] * 3


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
