"""The faults in flight changes: faults of form, which make a body unreadable, and impossible values."""

import re
from collections.abc import Callable
from random import Random

from local.feed.faults import Fault, empty, extra_field, not_an_object, truncated
from local.feed.flight_rule import Change

Wrong = Callable[[Change], Change]


def not_utf8(body: str) -> bytes:
    """Put bytes of a different encoding into a text."""
    return body.replace('"carrier":"', '"carrier":"\xfc', 1).encode("latin-1")


def not_a_number(body: str) -> bytes:
    """Write NaN, as some encoders do; JSON does not know it."""
    return re.sub(r'"flight_number":\d+', '"flight_number":NaN', body).encode()


def missing_field(body: str) -> bytes:
    """Leave out the carrier: the number alone stands for several flights."""
    return re.sub('"carrier":"[^"]*",', "", body).encode()


def wrong_type(body: str) -> bytes:
    """Write a text in place of a number."""
    return re.sub(r'"flight_number":(\d+)', r'"flight_number":"\1"', body).encode()


def without_zone(body: str) -> bytes:
    """Leave out the offset of the local time."""
    return re.sub(r'("changed_at":"[0-9-]+T[0-9:.]+)[^"]*"', r'\1"', body).encode()


MALFORMED: tuple[Fault, ...] = (
    truncated,
    not_utf8,
    empty,
    not_a_number,
    not_an_object,
    missing_field,
    extra_field,
    wrong_type,
    without_zone,
)
UNUSABLE: dict[str, Wrong] = {
    "a carrier in small letters": lambda change: change._replace(carrier=change.carrier.lower() + "x"),
    "a carrier too long": lambda change: change._replace(carrier=change.carrier.ljust(4, "X")),
    "no carrier": lambda change: change._replace(carrier=""),
    "a flight number below the first": lambda change: change._replace(flight_number=0),
    "a flight number above the last": lambda change: change._replace(flight_number=change.flight_number + 9999),
    "the thirtieth of February": lambda change: change._replace(departure_date=change.departure_date[:4] + "-02-30"),
    "a date of another form": lambda change: change._replace(departure_date="31.12." + change.departure_date[:4]),
    "an unknown status": lambda change: change._replace(status="landed"),
    "a status in capitals": lambda change: change._replace(status=change.status.upper()),
    "a gate too long": lambda change: change._replace(departure_gate="behind the terminal"),
    "a clock that was never set": lambda change: change._replace(changed_us=change.changed_us % 1_000_000),
}


def malformed(body: str, chance: Random) -> bytes:
    """Return the body of a change with one of the faults of form."""
    return chance.choice(MALFORMED)(body)


def unusable(change: Change, chance: Random) -> Change:
    """Return a change with one impossible value."""
    return chance.choice(tuple(UNUSABLE.values()))(change)
