"""local/trials/determinism.py: a transform whose outcome depends on more than its event is named."""

import pytest

from examples.flight_info import transform as flight_info
from examples.home_security import transform as home_security
from hubledger.testing import check_deterministic
from tests.local.trials.conftest import Plant

EVENTS = ["alpha beta gamma delta", "epsilon zeta", ""]


@pytest.mark.parametrize(
    "statement",
    [
        "return reading(datetime.now(UTC).isoformat())",
        "return reading(os.urandom(4).hex())",
        "SEEN.append(text); return reading(str(len(SEEN)))",
        "if text not in SEEN: SEEN.append(text)\n    return reading(str(sorted(SEEN)))",
    ],
)
def test_an_outcome_that_depends_on_more_than_the_event_is_named_with_both_outcomes(
    plant: Plant, statement: str
) -> None:
    with pytest.raises(AssertionError, match=r"has two outcomes:\n  at first: .*\n  a second time: "):
        check_deterministic(plant(statement), EVENTS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "return reading(' '.join(set(text.split())))",
        "return reading(str(hash(text)))",
        "return reading(str(date.today()))",
        "return reading(datetime.fromtimestamp(5).isoformat())",
        "return reading(str(os.getpid()))",
        "return reading(str(time.time() // 1))",
        "raise PoisonEvent(' '.join(set(text.split())))",
    ],
)
def test_an_outcome_that_depends_on_the_process_or_its_time_zone_is_named(plant: Plant, statement: str) -> None:
    with pytest.raises(AssertionError, match=r"has two outcomes:\n  at first: .*\n  in a process with PYTHONHASHSEED="):
        check_deterministic(plant(statement), EVENTS)


def test_an_outcome_that_depends_on_the_order_of_events_is_named(plant: Plant) -> None:
    name = plant("SEEN.append(text); return reading('first' if text[:5] == 'alpha' else SEEN[-2])")
    with pytest.raises(AssertionError, match=r"has two outcomes:\n  at first: .*\n  after the later events: "):
        check_deterministic(name, EVENTS)


@pytest.mark.slow
def test_our_own_transforms_and_a_pure_one_pass(plant: Plant) -> None:
    check_deterministic(plant("return reading(' '.join(sorted(set(text.split()))))"), EVENTS)
    check_deterministic(home_security, EVENTS)
    check_deterministic(flight_info, EVENTS)


@pytest.mark.slow
def test_a_transform_that_only_this_process_can_load_is_named(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    name = plant("return ()")
    check_deterministic(name, EVENTS)
    monkeypatch.setattr("sys.path", [each for each in __import__("sys").path if "pytest-" not in each])
    with pytest.raises(AssertionError, match=f"does not run in a new process: (?s:.*)No module named '{name}'"):
        check_deterministic(name, EVENTS)


def test_a_transform_that_prints_is_still_answered_and_a_check_without_events_fails(plant: Plant) -> None:
    check_deterministic(plant("print('hello'); return ()"), EVENTS)
    with pytest.raises(AssertionError, match="at least one event"):
        check_deterministic(home_security, [])
