"""What goes wrong in the bodies of real senders: each fault makes a reading into something that nobody can use."""

import re
from collections.abc import Callable
from random import Random

Fault = Callable[[str], bytes]

UNKNOWN_KINDS = ("smoke", "water_leak", "thermostat", "doorbell")


def truncated(body: str) -> bytes:
    """The sender died while it wrote."""
    return body[: len(body) // 2].encode()


def not_utf8(body: str) -> bytes:
    """Bytes of another encoding inside a text."""
    return body.replace('"sensor_id":"', '"sensor_id":"\xfc', 1).encode("latin-1")


def empty(body: str) -> bytes:
    """Nothing at all."""
    return b""


def not_a_number(body: str) -> bytes:
    """NaN, which some encoders write and JSON does not know."""
    return body.replace('"observed_at"', '"ppm":NaN,"observed_at"', 1).encode()


def not_an_object(body: str) -> bytes:
    """An array where an object belongs."""
    return f"[{body}]".encode()


def wrong_case(body: str) -> bytes:
    """A kind in capitals: not the kind we know."""
    return re.sub('"kind":"([a-z_]+)"', lambda found: found[0].upper().replace("KIND", "kind"), body).encode()


def missing_field(body: str) -> bytes:
    """No sensor is named."""
    return re.sub('"sensor_id":"[^"]*",', "", body).encode()


def extra_field(body: str) -> bytes:
    """A field of some other version of the form."""
    return body.replace("{", '{"firmware":"4.2",', 1).encode()


def wrong_type(body: str) -> bytes:
    """A number where a text belongs."""
    return re.sub('"sensor_id":"[^"]*"', '"sensor_id":7', body).encode()


def wrong_value(body: str) -> bytes:
    """A state that no switch has, a concentration below none."""
    return re.sub('"state":"[a-z]+"', '"state":"ajar"', re.sub('"ppm":', '"ppm":-', body)).encode()


def without_zone(body: str) -> bytes:
    """A local time that does not say where."""
    return re.sub(r'(T[0-9:.]+)[^"]*"}', r'\1"}', body).encode()


def not_a_date(body: str) -> bytes:
    """The thirtieth of February."""
    return re.sub(r'"(\d{4})-\d\d-\d\dT', r'"\1-02-30T', body).encode()


def out_of_range(body: str) -> bytes:
    """A clock that was never set. What becomes of it is only certain where the home is registered."""
    return re.sub(r'"\d{4}-(\d\d)-\d\dT', r'"1970-\1-01T', body).encode()


MALFORMED: tuple[Fault, ...] = (
    truncated,
    not_utf8,
    empty,
    not_a_number,
    not_an_object,
    wrong_case,
    missing_field,
    extra_field,
    wrong_type,
    wrong_value,
    without_zone,
    not_a_date,
)
MALFORMED_WHEN_REGISTERED: tuple[Fault, ...] = (*MALFORMED, out_of_range)


def malformed(body: str, faults: tuple[Fault, ...], chance: Random) -> bytes:
    """The body of a reading with one of the faults."""
    return chance.choice(faults)(body)


def unknown_kind(body: str, chance: Random) -> bytes:
    """A reading of a kind that nobody has heard of."""
    return re.sub('"kind":"[a-z_]+"', f'"kind":"{chance.choice(UNKNOWN_KINDS)}"', body).encode()
