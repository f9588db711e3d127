import re
from datetime import UTC, datetime
from importlib import import_module

import pytest

from core.model.rows import Row
from core.transforms.loading import load_transform
from examples.flight_info import transform as flight_info
from examples.home_security import transform as home_security
from examples.home_security.transform import Home, HomeAlert, SensorReading
from hubledger.testing import assert_missing, assert_poison, assert_rows, check_replay_identity, event_of
from tests.local.stores import ROOMS
from tests.local.trials.conftest import Plant

AT = datetime(2026, 1, 1, tzinfo=UTC)
HOME = Home("home-1", "Europe/Berlin", True)
MIDNIGHT = "2026-01-01T00:00:00Z"
MOTION = {"kind": "motion", "home_id": "home-1", "sensor_id": "s", "state": "active", "observed_at": MIDNIGHT}
READING = SensorReading("home-1", "s", "motion", "active", None, AT)
ALERT = HomeAlert("home-1", "s", "motion", None, AT)


def test_equal_rows_pass_for_a_module_its_name_and_a_transform_and_for_each_form_of_a_body() -> None:
    for transform in (home_security, "examples.home_security", load_transform("examples.home_security")):
        assert_rows(transform, MOTION, READING, ALERT, references=[HOME])
    text = '{"kind": "registration", "home_id": "home-1", "time_zone": "UTC", "armed": false}'
    for body in (text, text.encode(), event_of(text, number=5)):
        assert_rows(home_security, body, Home("home-1", "UTC", False))
    heartbeat = {name: value for name, value in {**MOTION, "kind": "heartbeat"}.items() if name != "state"}
    assert_rows(home_security, heartbeat)


def refused(*rows: Row, body: object = MOTION) -> str:
    with pytest.raises(AssertionError) as fault:
        assert_rows(home_security, body, *rows, references=[HOME])
    return str(fault.value)


def test_each_difference_is_a_line_and_names_the_field() -> None:
    said = refused(SensorReading("home-1", "s", "door", None, None, AT))
    assert said.splitlines()[1:] == [
        "  row 1, SensorReading: kind is 'motion', expected 'door'",
        "  row 1, SensorReading: state is 'active', expected None",
        f"  row 2 is not expected: {ALERT!r}",
    ]
    assert "became different rows" in said.splitlines()[0]
    assert refused(READING, ALERT, READING).splitlines()[1:] == [f"  row 3 is missing: {READING!r}"]
    assert refused(ALERT, READING).splitlines()[1] == f"  row 1 is {READING!r}, expected {ALERT!r}"
    assert "became no rows: the transform raised PoisonEvent: the body is empty" in refused(READING, body=b"")
    assert len(refused(READING, body=b"x" * 10_000)) < 600
    registration = {"kind": "registration", "home_id": "home-1", "time_zone": "UTC", "armed": True}
    said = refused(Home("home-1", "UTC", 1), body=registration)  # type: ignore[arg-type]
    assert said.splitlines()[1:] == ["  row 1, Home: armed is True, expected 1"], "of a different type"


def test_a_reference_that_the_module_does_not_ask_for_or_the_store_lacks_is_missing(plant: Plant) -> None:
    assert_missing(home_security, MOTION, "^home home-1 is not registered$")
    assert_missing(home_security, MOTION, references=[Home("home-2", "Europe/Berlin", True)])
    with pytest.raises(AssertionError, match="raised no MissingReference: its outcome is \\(SensorReading"):
        assert_missing(home_security, MOTION, references=[HOME])
    name = plant("return reading(references.get(Home, text).time_zone)")
    homes = [Home("home-1", "UTC", True), Home("home-2", "UTC", True)]
    assert_rows(name, b"home-1", SensorReading("home-1", "UTC", "kind", None, None, AT), references=homes)
    assert_missing(name, b"home-2", references=homes)


def test_an_event_has_the_key_that_its_room_gives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOMS)
    devices = import_module("devices.transform")
    system = {"iothub-message-source": "deviceConnectionStateEvents"}
    about = {"deviceId": "d-1", "opType": "deviceConnected"}
    connected = event_of({}, properties=about, system_properties=system)
    assert_rows("devices", connected, devices.Device("d-1", True))
    check_replay_identity("devices", [connected])
    assert_poison("devices", b"{}", "no device has sent the event")


def test_poison_is_asserted_with_its_text() -> None:
    assert_poison(flight_info, b"", "empty")
    with pytest.raises(AssertionError, match=r"raised PoisonEvent: the body is empty, in which 'full' is not found"):
        assert_poison(flight_info, b"", "full")
    with pytest.raises(AssertionError, match="raised no PoisonEvent: its outcome is MissingReference: home home-1 is"):
        assert_poison(home_security, MOTION)


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        (
            "return reading(text, float('nan'))",
            "row 1, .* cannot be stored: .*SensorReading.ppm is declared int, and nan is not a finite number",
        ),
        ("return (HomeAlert('h', 's', 'k', None, AT.replace(tzinfo=None)),)", "cannot be stored: .* has no time zone"),
        (
            "return reading(text, 2.0)",
            r"cannot be stored: .*SensorReading\.ppm is declared int, and its value is the float 2\.0",
        ),
        ("return (Home([], 'UTC', True),)", "cannot be stored: .*unhashable"),
        ("return ('text',)", "str is no row class of the module"),
        ("return [reading(text)[0]] * 10_001", "the event becomes more than 10000 rows"),
    ],
)
def test_rows_that_no_app_stores_are_refused_although_they_are_equal(plant: Plant, statement: str, fault: str) -> None:
    transform = load_transform(plant(statement))
    made = tuple(transform.rows_of(event_of(b""), None))  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match=fault):
        assert_rows(transform, b"", *made)


def test_the_cause_of_a_bug_is_kept(plant: Plant) -> None:
    with pytest.raises(AssertionError, match=re.escape("the transform raised KeyError: 'nothing'")) as fault:
        assert_rows(plant("return {}['nothing']"), b"")
    assert isinstance(fault.value.__cause__, KeyError)
