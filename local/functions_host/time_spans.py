"""Read the durations of host.json, bindings and retry policies: .NET's `[d.]hh:mm:ss[.fff]`."""

import re
from datetime import timedelta

TIME_SPAN = re.compile(r"(?:(?P<days>\d+)\.)?(?P<hours>\d{1,2}):(?P<minutes>\d{2})(?::(?P<seconds>\d{2}(?:\.\d+)?))?")


def parse_time_span(text: str) -> timedelta:
    """Return the duration; raise ValueError for anything that .NET's TimeSpan.Parse refuses or that is negative."""
    found = TIME_SPAN.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a duration of the form [d.]hh:mm:ss")
    parts = {name: float(value) for name, value in found.groupdict().items() if value is not None}
    if parts["hours"] > 23 or parts["minutes"] > 59 or parts.get("seconds", 0) >= 60:
        raise ValueError(f"{text!r} has hours over 23, or minutes or seconds over 59")
    return timedelta(**parts)
