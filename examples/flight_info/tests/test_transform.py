"""examples/flight_info/transform.py: a change becomes the status of its flight and a row of its history."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from examples.flight_info import transform as flight_info
from examples.flight_info.transform import FlightChange, FlightStatus
from hubledger.testing import assert_poison, assert_rows, check_any_body

CHANGE = {
    "carrier": "LH", "flight_number": 400, "departure_date": "2026-01-02", "status": "delayed",
    "changed_at": "2026-01-01T12:00:00Z",
}  # fmt: skip
LATER = {**CHANGE, "status": "boarding", "departure_gate": "A12", "departs_at": "2026-01-02T11:00:00+01:00"}
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a carrier of small letters": ({"carrier": "lh"}, r"carrier"),
    "a line end after a carrier": ({"carrier": "LH\n"}, r"carrier"),
    "flight 0": ({"flight_number": 0}, "flight_number"),
    "flight 10000": ({"flight_number": 10_000}, "flight_number"),
    "a day that is none": ({"departure_date": "2026-02-30"}, "departure_date"),
    "an unknown status": ({"status": "lost"}, "status"),
    "an empty gate": ({"departure_gate": ""}, "departure_gate"),
    "a time without a zone": ({"departs_at": "2026-01-02T11:00:00"}, "departs_at"),
    "the year 1999": ({"arrives_at": "1999-12-31T23:59:59Z"}, "1999.* is not between 2000 and 2100"),
    "the first year, east of UTC": ({"changed_at": "0001-01-01T00:00:00+14:00"}, "is not between"),
    "an extra field": ({"colour": "red"}, "colour"),
}


def test_a_change_becomes_a_status_and_a_row_of_history_with_times_in_utc() -> None:
    fields: tuple[Any, ...] = ("LH", 400, date(2026, 1, 2), "delayed", None, None, None, NOON)
    assert_rows(flight_info, CHANGE, FlightStatus(*fields), FlightChange(*fields))
    ten = datetime(2026, 1, 2, 10, tzinfo=UTC)
    fields = ("LH", 400, date(2026, 1, 2), "boarding", "A12", ten, None, NOON)
    assert_rows(flight_info, LATER, FlightStatus(*fields), FlightChange(*fields))


@pytest.mark.parametrize("case", BAD)
def test_a_bad_change_is_poison_with_its_reason(case: str) -> None:
    changed, why = BAD[case]
    assert_poison(flight_info, {**CHANGE, **changed}, why)


def test_any_body_becomes_rows_or_poison() -> None:
    check_any_body(flight_info, flight_info._Change, examples=50)
