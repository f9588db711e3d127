from datetime import UTC, datetime, timedelta, timezone

from local.functions_host.durable.instances import from_stamp, to_stamp

INSTANT = datetime(2026, 11, 21, 12, 0, 0, 123456, UTC)


def test_a_stamp_has_seven_digits_and_is_utc() -> None:
    assert to_stamp(INSTANT.astimezone(timezone(timedelta(hours=2)))) == "2026-11-21T12:00:00.1234560Z"


def test_stamps_of_the_extension_and_of_the_sdk_are_read_alike() -> None:
    for text in ("2026-11-21T12:00:00.1234560Z", "2026-11-21T12:00:00.123456Z", "2026-11-21T12:00:00.123456"):
        assert from_stamp(text) == INSTANT
