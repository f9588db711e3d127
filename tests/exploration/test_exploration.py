"""The quick configurations, the planted bugs, and the reduction of the search."""

import pytest

from tests.exploration.configurations import CONFIGURATIONS
from tests.exploration.explorer import Found, Search
from tests.exploration.plants import PLANTS, story

QUICK = {name: one.quick for name, one in CONFIGURATIONS.items() if one.quick is not None}
LONG = (  # 3 to 10 s
    *("the guard is off by one", "a second driver repeats a piece", "a commit goes to a closed stream"),
    "a batch does not see that a replay opened a letter",
)


def search_of(name: str, faults: int) -> Search:
    one = CONFIGURATIONS[name]
    world = one.prepare()
    return Search(world.database, one.actors(world), world.promise, faults)


@pytest.mark.parametrize("name", QUICK)
def test_no_schedule_breaks_the_promise(name: str) -> None:
    found = search_of(name, QUICK[name]).run()
    assert found.schedules > 1
    assert found.ends > 0


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.slow] * (one in LONG)) for one in PLANTS])
def test_a_planted_bug_has_a_story(name: str) -> None:
    violation = story(name)
    assert violation is not None
    assert len(violation.path) < 130
    assert str(violation).splitlines()[-1].strip() == violation.broken.splitlines()[-1].strip()


@pytest.mark.parametrize(
    "name",
    [
        *("two owners with an overlap", "batch beside retry", "healing beside a batch"),
        pytest.param("retry beside discard, and a lease that ends", marks=pytest.mark.slow),
    ],
)
def test_turns_that_are_not_exchanged_hide_nothing(name: str) -> None:
    """The reduced search and the whole one come to the same tables, and to the same ends."""
    met: list[tuple[Found, set[object]]] = []
    for is_reduced in (True, False):
        search = search_of(name, 0)
        search.is_reduced = is_reduced
        met.append((search.run(), search.checked))
    (reduced, of_reduced), (whole, of_whole) = met
    assert of_reduced == of_whole
    assert reduced.states < whole.states
