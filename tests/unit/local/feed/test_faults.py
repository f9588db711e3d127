"""local/feed/faults.py, held against the app: no fault makes a body that could still be used."""

from datetime import UTC, datetime
from random import Random

import pytest

from core.model.events import Event
from core.model.rows import ReferenceKey, References
from core.model.spans import SequenceNumber
from core.settle.settle import settle
from core.transforms import load_transform
from core.transforms.home_security import Home
from local.feed.bodies import ZONES, Zone, reading_body
from local.feed.faults import MALFORMED_WHEN_REGISTERED, Fault, unknown_kind
from local.feed.rule import Reading
from tests.unit.local.feed.builders import NOON

READINGS = [
    Reading("motion-1", "motion", "active", None, NOON),
    Reading("glass-1", "glass_break", "idle", None, NOON + 123_000),
    Reading("co-1", "carbon_monoxide", None, 41, NOON),
]
TRANSFORM = load_transform("core.transforms.home_security")


def outcome(body: bytes) -> str:
    home = Home("home-000001", "Etc/UTC", True)
    event = Event(SequenceNumber(0), "0", datetime(2026, 1, 1, tzinfo=UTC), home.home_id, {}, body)
    settled = settle([event], References({ReferenceKey.of(home): home}), TRANSFORM)
    return settled.letters[0].error_class if settled.letters else "not a letter"


@pytest.mark.parametrize("zone", ZONES, ids=lambda zone: zone.name)
@pytest.mark.parametrize("seen", READINGS, ids=lambda seen: seen.kind)
def test_a_reading_without_a_fault_is_no_letter(seen: Reading, zone: Zone) -> None:
    assert outcome(reading_body("home-000001", seen, zone).encode()) == "not a letter"


@pytest.mark.parametrize("zone", ZONES, ids=lambda zone: zone.name)
@pytest.mark.parametrize("seen", READINGS, ids=lambda seen: seen.kind)
@pytest.mark.parametrize("fault", MALFORMED_WHEN_REGISTERED, ids=lambda fault: fault.__name__)
def test_a_fault_makes_any_reading_poison(fault: Fault, seen: Reading, zone: Zone) -> None:
    assert outcome(fault(reading_body("home-000001", seen, zone))) == "poison"


@pytest.mark.parametrize("seen", READINGS, ids=lambda seen: seen.kind)
def test_a_kind_that_nobody_knows_is_poison(seen: Reading) -> None:
    assert outcome(unknown_kind(reading_body("home-000001", seen, ZONES[0]), Random(1))) == "poison"
