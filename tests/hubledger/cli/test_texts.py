"""Numbers, times and texts as an operator sees them."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubledger.cli.output import brief, counted, instant, lines_of, safe_json, short_instant, span, text_of
from tests.hubledger.cli.described import unsafe

NOW = datetime(2026, 11, 23, 3, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1234567, "1,234,567"),
        (1234.56, "1,234.6"),
        (None, "-"),
        ("", "-"),
        (True, "yes"),
        (False, "no"),
        ("41", "41"),
        (0, "0"),
    ],
)
def test_a_value_is_shown_in_one_line(value: object, shown: str) -> None:
    assert text_of(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (3_605, "1 h"),
        (3_660, "1 h 1 min"),
        (90_000, "1 d 1 h"),
        (10**8, "1,157 d 9 h"),
    ],
)
def test_a_time_has_its_two_largest_units(seconds: int, shown: str) -> None:
    assert span(timedelta(seconds=seconds)) == shown


def test_an_instant_is_in_utc_and_relative() -> None:
    assert instant("2026-11-23T03:10:00+01:00", NOW) == "2026-11-23 02:10:00Z, 50 min ago"
    assert instant("2026-11-23T05:00:30Z", NOW) == "2026-11-23 05:00:30Z, in 2 h"
    assert instant("2026-11-23T03:00:00.4Z", NOW) == "2026-11-23 03:00:00Z, now"
    assert instant(None, NOW) == "-"
    assert instant("when\x1b", NOW) == "when\\x1b"


def test_an_instant_of_today_is_shown_without_its_date_in_a_table() -> None:
    assert short_instant("2026-11-23T01:58:30Z", NOW) == "01:58:30Z, 1 h ago"
    assert short_instant("2026-11-22T23:58:30Z", NOW) == "2026-11-22 23:58:30Z, 3 h 1 min ago"


def test_a_count_has_its_noun() -> None:
    assert [counted(1, "letter"), counted(1_200, "letter")] == ["1 letter", "1,200 letters"]


@given(st.text(max_size=30))
def test_no_text_keeps_a_character_that_steers(text: str) -> None:
    assert unsafe(text_of(text) + lines_of(text) + brief({text: [text]}) + instant(text, NOW)) == set()


@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_json_stays_the_same_value_and_steers_nothing(value: object) -> None:
    printed = safe_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(printed) == value
    assert {letter for letter in unsafe(printed) if letter < "\u00a0" or letter in "\u202e\u2066\u200f"} == set()
