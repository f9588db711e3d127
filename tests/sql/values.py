"""The row classes of the transforms, and a row of each."""

from dataclasses import fields, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

from hypothesis import strategies as st

from core.model.rows import Row
from examples.flight_info.transform import FlightChange, FlightStatus
from examples.home_security.transform import Home, HomeAlert, SensorReading

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
ID = UUID("6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11")
_FLIGHT = ("LH", 400, date(2026, 1, 2), "boarding", "A1", EPOCH, None, EPOCH)
_ROWS: dict[type, Row] = {
    SensorReading: SensorReading("home-1", "sensor-1", "carbon_monoxide", None, 5, EPOCH),
    HomeAlert: HomeAlert("home-1", "sensor-1", "carbon_monoxide", 500, EPOCH),
    Home: Home("home-1", "Europe/Berlin", True),
    FlightStatus: FlightStatus(*_FLIGHT),
    FlightChange: FlightChange(*_FLIGHT),
}
PLACES = 10  # of the decimals that a server's columns hold
LARGEST_DECIMAL = Decimal(f"{'9' * 28}.{'9' * PLACES}")


def _decimal(units: int) -> Decimal:
    """Return so many of the smallest unit: arithmetic of decimals would round to 28 digits."""
    return Decimal((int(units < 0), tuple(map(int, str(abs(units)))), -PLACES))


DECIMALS = st.integers(1 - 10**38, 10**38 - 1).map(_decimal)
ROW_CLASSES: tuple[type, ...] = tuple(_ROWS)


def row_of(row_class: type) -> Row:
    return _ROWS[row_class]


def awkward_row_of(row_class: type) -> Row:
    row = cast(Any, _ROWS[row_class])
    return cast(Row, replace(row, **{fields(row)[0].name: '"\\'}))
