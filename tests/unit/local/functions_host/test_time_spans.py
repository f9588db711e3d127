from datetime import timedelta

import pytest

from local.functions_host.time_spans import parse_time_span


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("00:00:30", timedelta(seconds=30)),
        ("00:05", timedelta(minutes=5)),
        ("1.02:03:04.5", timedelta(days=1, hours=2, minutes=3, seconds=4.5)),
    ],
)
def test_a_duration_of_dotnet_is_read(text: str, span: timedelta) -> None:
    assert parse_time_span(text) == span


@pytest.mark.parametrize("text", ["", "5", "24:00:00", "00:60:00", "00:00:60", "-00:00:01", "P1D"])
def test_what_dotnet_refuses_or_is_negative_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\d|form"):
        parse_time_span(text)
