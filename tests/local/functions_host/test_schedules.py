import pytest

from local.functions_host.timers import parse_schedule
from tests.local.functions_host.doubles import NOON


def test_the_next_instant_follows_ncrontab_or_the_interval() -> None:
    expected = {
        "*/5 * * * * *": "2026-11-21T12:00:05+00:00",
        "0 */5 * * * *": "2026-11-21T12:05:00+00:00",
        "*/5 * * * *": "2026-11-21T12:05:00+00:00",
        "0 30 9 * * 1-5": "2026-11-23T09:30:00+00:00",
        "0 0 0 13 * Fri": "2027-08-13T00:00:00+00:00",  # both day fields must hold
        "00:00:30": "2026-11-21T12:00:30+00:00",
        "1.00:00:00": "2026-11-22T12:00:00+00:00",
    }
    assert {text: parse_schedule(text)(NOON).isoformat() for text in expected} == expected


def test_any_other_text_is_refused() -> None:
    for text in ("", "00:00:00", "every day", "* * * *", "61 * * * * *", "0 0 0 * * * 2026"):
        with pytest.raises(ValueError, match=r"duration|longer|neither"):
            parse_schedule(text)
