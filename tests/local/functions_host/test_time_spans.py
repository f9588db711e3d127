from datetime import timedelta

import pytest

from local.functions_host.json_sections import parse_time_span


def test_a_duration_of_dotnet_is_read() -> None:
    spans = {
        "00:00:30": timedelta(seconds=30),
        "00:05": timedelta(minutes=5),
        "1.02:03:04.5": timedelta(days=1, hours=2, minutes=3, seconds=4.5),
    }
    assert {text: parse_time_span(text) for text in spans} == spans


def test_a_text_that_dotnet_refuses_and_a_negative_duration_are_refused() -> None:
    for text in ("", "5", "24:00:00", "00:60:00", "00:00:60", "-00:00:01", "P1D"):
        with pytest.raises(ValueError, match=r"\d|form"):
            parse_time_span(text)
