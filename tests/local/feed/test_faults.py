"""local/feed/planned_events.py, held against the app: no fault makes a body that could still be used."""

from datetime import UTC, datetime
from random import Random

from core.model.events import Event, SequenceNumber
from core.model.rows import ReferenceKey, References
from core.settle.settle import settle
from core.transforms.loading import load_transform
from examples.home_security.transform import Home
from local.feed.homes import Reading, reading_body
from local.feed.planned_events import MALFORMED_WHEN_REGISTERED, ZONES, unknown_kind
from tests.local.feed.builders import NOON

READINGS = [
    Reading("motion-1", "motion", "active", None, NOON),
    Reading("glass-1", "glass_break", "idle", None, NOON + 123_000),
    Reading("co-1", "carbon_monoxide", None, 41, NOON),
]
TRANSFORM = load_transform("examples.home_security")


def outcome(body: bytes) -> str:
    home = Home("home-000001", "Etc/UTC", True)
    event = Event(SequenceNumber(0), "0", datetime(2026, 1, 1, tzinfo=UTC), home.home_id, {}, body)
    settled = settle([event], References({ReferenceKey.of(home): home}), TRANSFORM)
    return settled.letters[0].error_class if settled.letters else "not a letter"


def test_any_fault_makes_any_reading_poison_and_without_one_it_is_no_letter() -> None:
    bodies = {(seen.kind, zone.name): reading_body("home-000001", seen, zone) for seen in READINGS for zone in ZONES}
    assert [at for at, body in bodies.items() if outcome(body.encode()) != "not a letter"] == []
    faulty = {(fault.__name__, *at): fault(body) for fault in MALFORMED_WHEN_REGISTERED for at, body in bodies.items()}
    faulty |= {("unknown_kind", *at): unknown_kind(body, Random(1)) for at, body in bodies.items()}
    assert [at for at, body in faulty.items() if outcome(body) != "poison"] == []
