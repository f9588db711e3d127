"""The quick configurations, the planted bugs, and the reduction of the search: each as docs/proof.md says."""

import pytest

from tests.exploration.configurations import CONFIGURATIONS
from tests.exploration.explorer import Found, Search
from tests.exploration.plants import PLANTS, story
from tests.repo.product import ROOT

CELLS = [line.strip("| ").split(" | ") for line in (ROOT / "docs" / "proof.md").read_text("utf-8").splitlines()]
TOLD = {cells[0]: cells[1:] for cells in CELLS if len(cells) in (3, 8)}
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
    if QUICK[name] == CONFIGURATIONS[name].faults:
        counts = (found.states, found.turns, found.tables, found.longest)
        assert [f"{one:,}" for one in counts] == TOLD[name][1:5]


def test_the_page_has_each_configuration_and_each_planted_bug() -> None:
    shown = {name: TOLD[name][0] for name in TOLD if name in {*CONFIGURATIONS, *PLANTS}}
    faults = {name: str(one.faults) for name, one in CONFIGURATIONS.items()}
    assert shown == faults | {name: one.configuration for name, one in PLANTS.items()}


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.slow] * (one in LONG)) for one in PLANTS])
def test_a_planted_bug_has_a_story(name: str) -> None:
    violation = story(name)
    assert violation is not None
    assert str(len(violation.path)) == TOLD[name][1]


@pytest.mark.parametrize(
    "name",
    [
        *("two owners with an overlap", "batch beside retry", "healing beside a batch"),
        pytest.param("retry beside discard, and a lease that ends", marks=pytest.mark.slow),
    ],
)
def test_turns_that_are_not_exchanged_hide_nothing(name: str) -> None:
    """The search of the orders that can matter meets the same tables and ends as the search of all orders."""
    met: list[tuple[Found, set[object]]] = []
    for is_reduced in (True, False):
        search = search_of(name, 0)
        search.is_reduced = is_reduced
        met.append((search.run(), search.checked))
    (reduced, of_reduced), (whole, of_whole) = met
    assert of_reduced == of_whole
    assert reduced.states < whole.states
