"""local/feed/home_rule.py"""

from local.feed.home_rule import Expected, Reading, expect_early_reading, expect_reading, expect_registration
from local.feed.planned import FILTERED, REFERENCE, WRITTEN


def reading(kind: str, state: str | None = None, ppm: int | None = None) -> Reading:
    return Reading("sensor-1", kind, state, ppm, 1_000_000)


def test_a_registration_becomes_the_row_of_its_home() -> None:
    expected = expect_registration("Asia/Tokyo", True)
    assert (expected.outcome, expected.time_zone, expected.armed) == (WRITTEN, "Asia/Tokyo", 1)


def test_a_heartbeat_is_filtered_before_and_after_its_home_registers() -> None:
    assert [expect(reading("heartbeat"), True).outcome for expect in (expect_reading, expect_early_reading)] == [
        FILTERED,
        FILTERED,
    ]


def test_a_reading_before_the_registration_is_a_letter_that_becomes_the_same_rows_later() -> None:
    seen = reading("motion", "active")
    assert expect_early_reading(seen, True) == expect_reading(seen, True)._replace(outcome=REFERENCE)


def test_an_alarming_reading_has_an_alert() -> None:
    cases = [
        (reading("motion", "active"), True, 1),
        (reading("motion", "active"), False, 0),
        (reading("door", "active"), True, 1),
        (reading("window", "idle"), True, 0),
        (reading("glass_break", "active"), False, 1),
        (reading("glass_break", "idle"), True, 0),
        (reading("carbon_monoxide", ppm=69), True, 0),
        (reading("carbon_monoxide", ppm=70), False, 1),
    ]
    for seen, armed, alerts in cases:
        expected: Expected = expect_reading(seen, armed)
        assert (expected.outcome, expected.alerts) == (WRITTEN, alerts), (seen, armed)
