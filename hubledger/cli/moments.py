"""Times that a person writes: an instant, `now`, `today`, `yesterday`, or how long ago, as -2h."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hubledger.cli.console import UsageFault, say_faults
from hubledger.cli.views.texts import read_instant

WRITTEN = "2026-11-23T03:00:00Z, now, today, yesterday, -30m, -2h or -3d"
AGO = re.compile(r"-(\d{1,6})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment(text: str | None, now: datetime | None = None) -> str | None:
    """Return a time as an instant in UTC, and say on stderr which one a word or a distance is. A day begins at midnight
    in the zone of this machine. UsageFault says what to write."""
    if text is None:
        return None
    here = (now or datetime.now(UTC)).astimezone()
    midnight = here.replace(hour=0, minute=0, second=0, microsecond=0)
    words = {"now": here, "today": midnight, "yesterday": midnight - timedelta(days=1)}
    relative = words.get(text) or _ago(text, here)
    found = relative or read_instant(text)
    if found is None:
        raise UsageFault(f"{text}: write {WRITTEN}")
    instant = found.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    if relative:
        say_faults(f"{text} is {instant}")
    return instant


def joined(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with `--from -2h` as `--from=-2h`: alone, it would look like an option."""
    found: list[str] = []
    for one in arguments:
        if AGO.fullmatch(one) and found and found[-1].startswith("--") and "=" not in found[-1]:
            found[-1] += f"={one}"
        else:
            found.append(one)
    return found


def _ago(text: str, now: datetime) -> datetime | None:
    given = AGO.fullmatch(text)
    try:
        return now - timedelta(**{_UNITS[given[2]]: int(given[1])}) if given else None
    except OverflowError:
        return None
