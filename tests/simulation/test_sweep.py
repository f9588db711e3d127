"""A fault at any point changes nothing: after the ordinary retries, the state is that of a run without a fault."""

import pytest

from tests.simulation.subjects import SUBJECTS
from tests.simulation.sweep import sweep

QUICK = ("the first batch of a partition", "a batch", "a gap", "a move of letters", "the request of a replay")


NAMES = [one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in SUBJECTS]


@pytest.mark.parametrize("name", NAMES)
def test_a_fault_at_any_point_leaves_the_state_of_a_run_without_a_fault(name: str) -> None:
    subject, points = SUBJECTS[name], 0
    for number, fault, differs in sweep(subject):
        assert differs is None, f"point {number}, {fault.kind} (step {fault.place}): {differs}"
        points += 1
    assert points >= subject.points, f"the sweep of {name} has {points} points only"
