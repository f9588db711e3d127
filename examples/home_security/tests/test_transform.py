"""examples/home_security/transform.py: good events become rows, and every bad one a letter that says why."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from examples.home_security import transform as home_security
from examples.home_security.transform import Home, HomeAlert, SensorReading, references
from hubledger import ReferenceKey, Row
from hubledger.testing import assert_poison, assert_rows, check_any_body, event_of

AT = "2026-01-01T12:00:00Z"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MISSING = object()
MOTION = {"kind": "motion", "home_id": "home-1", "sensor_id": "hall", "state": "idle", "observed_at": AT}
GAS = {"kind": "carbon_monoxide", "home_id": "home-1", "sensor_id": "cellar", "ppm": 5, "observed_at": AT}
REGISTRATION = {"kind": "registration", "home_id": "home-1", "time_zone": "Europe/Berlin", "armed": True}
HOME = Home("home-1", "Europe/Berlin", True)
HEARTBEAT = {"kind": "heartbeat", "home_id": "home-1", "sensor_id": "hall", "observed_at": AT}


def body(form: dict[str, Any], **changed: Any) -> bytes:
    fields = {**form, **changed}
    return json.dumps({name: value for name, value in fields.items() if value is not MISSING}).encode()


def test_a_reading_of_a_registered_home_is_written() -> None:
    motion = SensorReading("home-1", "hall", "motion", "idle", None, NOON)
    assert_rows(home_security, MOTION, motion, references=[HOME])
    gas = SensorReading("home-1", "cellar", "carbon_monoxide", None, 5, NOON)
    assert_rows(home_security, GAS, gas, references=[HOME])
    assert_rows(home_security, REGISTRATION, HOME)


def test_a_heartbeat_is_filtered_whether_its_home_is_registered_or_not() -> None:
    assert_rows(home_security, HEARTBEAT)
    assert_rows(home_security, HEARTBEAT, references=[HOME])


@pytest.mark.parametrize("zone", ["+02:00", "-11:30", "+00:00"])
def test_a_time_of_another_zone_is_written_in_utc(zone: str) -> None:
    observed_at = f"2026-01-01T12:00:00.000123{zone}"
    expected = SensorReading("home-1", "hall", "motion", "idle", None, datetime.fromisoformat(observed_at))
    assert_rows(home_security, {**MOTION, "observed_at": observed_at}, expected, references=[HOME])


@pytest.mark.parametrize("armed", [True, False])
@pytest.mark.parametrize("state", ["active", "idle"])
@pytest.mark.parametrize("kind", ["motion", "door", "window", "glass_break"])
def test_a_switch_alerts_when_it_is_active_in_an_armed_home_and_breaking_glass_always(
    kind: str, state: str, armed: bool
) -> None:
    expected: list[Row] = [SensorReading("home-1", "hall", kind, state, None, NOON)]
    if state == "active" and (armed or kind == "glass_break"):
        expected.append(HomeAlert("home-1", "hall", kind, None, NOON))
    assert_rows(
        home_security, {**MOTION, "kind": kind, "state": state}, *expected, references=[replace(HOME, armed=armed)]
    )


@pytest.mark.parametrize("armed", [True, False])
@pytest.mark.parametrize("ppm", [0, 69, 70, 71, 1_000_000])
def test_carbon_monoxide_alerts_from_seventy_on_armed_or_not(ppm: int, armed: bool) -> None:
    expected: list[Row] = [SensorReading("home-1", "cellar", "carbon_monoxide", None, ppm, NOON)]
    expected += [HomeAlert("home-1", "cellar", "carbon_monoxide", ppm, NOON)] if ppm >= 70 else []
    assert_rows(home_security, {**GAS, "ppm": ppm}, *expected, references=[replace(HOME, armed=armed)])


def raw(form: dict[str, Any], field: str, text: str) -> bytes:
    """A body in which one field is written literally."""
    return body(form, **{field: "@"}).replace(b'"@"', text.encode("utf-8", "surrogatepass"))


DEEP = 100_000
BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "^the body is empty$"),
    "blank": (b" \n\t", "truncated"),
    "malformed": (b'{"kind": "motion",', "truncated|malformed"),
    "no JSON": (b"kind=motion", "malformed"),
    "two values": (body(MOTION) + body(MOTION), "trailing"),
    "not an object": (b"[1, 2]", "array"),
    "null": (b"null", "null"),
    "a text": (b'"motion"', "str"),
    "not UTF-8": (b"\xff\xfd", "malformed"),
    "not UTF-8 in a text": (body(MOTION).replace(b"hall", b"h\xffll"), "utf-8"),
    "UTF-16": (body(MOTION).decode().encode("utf-16"), "UTF-16"),
    "a byte order mark": (b"\xef\xbb\xbf" + body(MOTION), "byte order mark"),
    "NUL bytes": (b"\x00" * 64, "NUL byte"),
    "1 MB of nothing": (b" " * 2**20, "truncated"),
    "1 MB of brackets": (b"[" * 2**20, "array"),
    "1 MB in an id": (body(MOTION, sensor_id="s" * 2**20), "sensor_id"),
    "NaN": (raw(GAS, "ppm", "NaN"), "malformed"),
    "Infinity": (raw(GAS, "ppm", "Infinity"), "malformed"),
    "1e400": (raw(GAS, "ppm", "1e400"), "ppm"),
    "10**30": (body(GAS, ppm=10**30), "ppm"),
    "2**63": (body(GAS, ppm=2**63), "ppm"),
    "a number of 100,000 digits": (raw(GAS, "ppm", "1" + "0" * DEEP), "ppm"),
    "less than nothing": (body(GAS, ppm=-1), "ppm"),
    "one too many": (body(GAS, ppm=1_000_001), "ppm"),
    "a fraction": (body(GAS, ppm=70.5), "ppm"),
    "a number as text": (body(GAS, ppm="70"), "ppm"),
    "true as number": (body(GAS, ppm=True), "ppm"),
    "null as number": (body(GAS, ppm=None), "ppm"),
    "no ppm": (body(GAS, ppm=MISSING), "ppm"),
    "no home": (body(MOTION, home_id=MISSING), "home_id"),
    "no sensor": (body(MOTION, sensor_id=MISSING), "sensor_id"),
    "no time": (body(MOTION, observed_at=MISSING), "observed_at"),
    "no kind": (body(MOTION, kind=MISSING), "kind"),
    "no armed": (body(REGISTRATION, armed=MISSING), "armed"),
    "an extra field": (body(MOTION, colour="red"), "colour"),
    "a field of another kind": (body(MOTION, ppm=5), "ppm"),
    "an unknown kind": (body(MOTION, kind="smoke"), "smoke"),
    "a kind of the wrong case": (body(MOTION, kind="Motion"), "Motion"),
    "a kind with a blank": (body(MOTION, kind="motion "), "kind"),
    "a number as kind": (body(MOTION, kind=5), "kind"),
    "null as kind": (body(MOTION, kind=None), "kind"),
    "a number as id": (body(MOTION, home_id=5), "home_id"),
    "null as id": (body(MOTION, home_id=None), "home_id"),
    "an empty id": (body(MOTION, home_id=""), "home_id"),
    "an id too long": (body(MOTION, home_id="h" * 33), "home_id"),
    "an id with a blank": (body(MOTION, home_id="home 1"), "home_id"),
    "an id that is not ASCII": (body(MOTION, home_id="häuschen"), "home_id"),
    "an id of emoji": (body(MOTION, sensor_id="🏠"), "sensor_id"),
    "NUL in an id": (body(MOTION, home_id="home\x00-1"), "home_id"),
    "NUL byte in an id": (body(MOTION).replace(b"hall", b"h\x00ll"), "NUL byte"),
    "a lone surrogate": (raw(MOTION, "home_id", '"\\ud800"'), "surrogate"),
    "a lone low surrogate": (raw(MOTION, "sensor_id", '"\\udc00x"'), "surrogate|sensor_id"),
    "surrogates in bytes": (raw(MOTION, "home_id", '"\ud800"'), "utf-8"),
    "an unknown state": (body(MOTION, state="open"), "state"),
    "a state of the wrong case": (body(MOTION, state="ACTIVE"), "state"),
    "text as truth": (body(REGISTRATION, armed="true"), "armed"),
    "number as truth": (body(REGISTRATION, armed=1), "armed"),
    "a zone with a blank": (body(REGISTRATION, time_zone="Europe/ Berlin"), "time_zone"),
    "a date without zone": (body(MOTION, observed_at="2026-01-01T12:00:00"), "timezone"),
    "a date alone": (body(MOTION, observed_at="2026-01-01"), "observed_at"),
    "a date that is none": (body(MOTION, observed_at="2026-02-30T12:00:00Z"), "observed_at"),
    "the hour 25": (body(MOTION, observed_at="2026-01-01T25:00:00Z"), "observed_at"),
    "a leap second": (body(MOTION, observed_at="2026-01-01T23:59:60Z"), "observed_at"),
    "an epoch": (body(MOTION, observed_at=1_767_268_800), "observed_at"),
    "before the year 2000": (body(MOTION, observed_at="1999-12-31T23:59:59.999999Z"), "observed_at 1999.*2000"),
    "the year 2100": (body(MOTION, observed_at="2100-01-01T00:00:00Z"), "observed_at 2100.*2100"),
    "the year 0001 with offset": (body(GAS, observed_at="0001-01-01T00:00:00+14:00"), "observed_at 0001"),
    "the year 9999 with offset": (body(GAS, observed_at="9999-12-31T23:59:59-14:00"), "observed_at 9999"),
    "the year 10000": (body(GAS, observed_at="10000-01-01T00:00:00Z"), "observed_at"),
    "deep brackets": (b"[" * DEEP + b"]" * DEEP, "array"),
    "deep objects": (b'{"a":' * DEEP + b"1" + b"}" * DEEP, "kind|recursion"),
    "deep brackets in an unknown field": (raw(MOTION, "colour", "[" * DEEP + "]" * DEEP), "colour|recursion"),
    "deep brackets before the kind": (
        b'{"x":' + b"[" * DEEP + b"]" * DEEP + b"," + body(MOTION)[1:],
        "unknown|recursion",
    ),
    "deep brackets in an id": (raw(MOTION, "home_id", "[" * DEEP + "]" * DEEP), "home_id"),
    "a line end after a home": (body(MOTION, home_id="home-1\n"), "home_id"),
    "a line end after a sensor": (body(MOTION, sensor_id="hall\n"), "sensor_id"),
    "a line end as a sensor": (body(GAS, sensor_id="\n"), "sensor_id"),
    "a line end after a state": (body(MOTION, state="active\n"), "state"),
    "a line end after a zone": (body(REGISTRATION, time_zone="Europe/Berlin\n"), "time_zone"),
    "the kind twice": (body(MOTION)[:-1] + b', "kind": "door"}', "kind"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_body_is_poison_with_its_reason(case: str) -> None:
    given, why = BAD[case]
    assert_poison(home_security, given, f"(?i){why}", references=[HOME])


def test_any_body_becomes_rows_or_poison() -> None:
    check_any_body(home_security, home_security._Body, references=[HOME], examples=50)


def test_a_reading_needs_its_home_and_registrations_and_heartbeats_need_none() -> None:
    def needed(**form: Any) -> list[ReferenceKey]:
        return list(references(event_of(form)))

    home = [ReferenceKey(Home, ("home-1",))]
    assert needed(**MOTION) == needed(**GAS) == needed(**{**MOTION, "kind": "smoke"}) == home
    assert needed(**REGISTRATION) == needed(**HEARTBEAT) == []
