"""local/feed/dangers.py, and the transform that meets its events."""

import subprocess
import sys
from functools import cache
from itertools import pairwise

from core.model.rows import References
from examples.home_security.transform import Home, SensorReading
from local.feed.dangers import DEADLY, KILLING, REFUSED, REFUSED_EVENTS, dangers_of, references, transform, with_dangers
from local.feed.homes import HomeScript, HomeShares, home_minutes
from local.feed.planned_events import CRASH, REFUSAL, Minute
from tests.fakes.builders import event

SCRIPT = HomeScript(homes=200, events=6_000, seed=3, shares=HomeShares(late=0.0))


def made(killing: int) -> list[Minute]:
    return list(with_dangers(home_minutes(SCRIPT), SCRIPT, dangers_of(killing, 0)))


dangerous = cache(made)


def outcomes(minutes: list[Minute]) -> list[str]:
    return [one.expected[0] for minute in minutes for one in minute.events]


def test_a_story_keeps_its_length_and_gets_its_dangers() -> None:
    for killing in (0, 1, 3):
        found = outcomes(dangerous(killing))
        assert len(found) == 6_000
        assert (found.count(CRASH), found.count(REFUSAL)) == (killing, REFUSED_EVENTS)


def test_dangers_are_spread_and_the_same_for_the_same_seed() -> None:
    places = [at for at, outcome in enumerate(outcomes(dangerous(1))) if outcome in (CRASH, REFUSAL)]
    assert min(later - earlier for earlier, later in pairwise(places)) > 300
    assert made(1) == dangerous(1)


def test_no_registration_is_replaced_so_every_home_registers_before_its_readings() -> None:
    plain, changed = list(home_minutes(SCRIPT)), dangerous(1)

    def registrations(minutes: list[Minute]) -> int:
        return sum(b'"registration"' in one.body for minute in minutes for one in minute.events)

    assert registrations(plain) == registrations(changed)
    assert "reference" not in outcomes(changed)


def test_a_refused_body_makes_a_row_that_no_database_takes() -> None:
    (row,) = transform(event(0, REFUSED.decode()), References({}))
    assert isinstance(row, SensorReading)
    assert row.ppm == 2**63
    assert list(references(event(0, REFUSED.decode()))) == []


def test_a_killing_body_ends_the_process_with_a_message() -> None:
    program = (
        "from datetime import UTC, datetime\n"
        "from core.model.events import Event\nfrom core.model.rows import References\n"
        "from local.feed.dangers import transform\n"
        f"transform(Event(7, '0', datetime.now(UTC), None, {{}}, {KILLING!r}), References({{}}))\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (DEADLY, "event 7 kills its process\n")


def test_other_bodies_are_those_of_homes() -> None:
    body = '{"home_id":"h","kind":"registration","time_zone":"Etc/UTC","armed":true}'
    (home,) = transform(event(0, body), References({}))
    assert home == Home("h", "Etc/UTC", True)
