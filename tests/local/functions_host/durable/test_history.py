from datetime import UTC, datetime, timedelta, timezone

from local.functions_host.durable.instances import EventType, NewInstance, event, from_stamp, stamped, to_stamp

INSTANT = datetime(2026, 11, 21, 12, 0, 0, 123456, UTC)


def test_a_stamp_has_seven_digits_and_is_utc() -> None:
    assert to_stamp(INSTANT.astimezone(timezone(timedelta(hours=2)))) == "2026-11-21T12:00:00.1234560Z"


def test_stamps_of_the_extension_and_of_the_sdk_are_read_alike() -> None:
    for text in ("2026-11-21T12:00:00.1234560Z", "2026-11-21T12:00:00.123456Z", "2026-11-21T12:00:00.123456"):
        assert from_stamp(text) == INSTANT


def test_an_event_gets_its_time_and_whether_it_was_played() -> None:
    assert stamped(event(EventType.TASK_SCHEDULED, 3, Name="work"), INSTANT) == {
        "EventType": 4,
        "EventId": 3,
        "Name": "work",
        "IsPlayed": False,
        "Timestamp": "2026-11-21T12:00:00.1234560Z",
    }


def test_an_execution_starts_with_its_ids_and_its_input() -> None:
    started = NewInstance("instance", "execution", "caller", '"x"').started(INSTANT)
    assert started["OrchestrationInstance"] == {"InstanceId": "instance", "ExecutionId": "execution"}
    assert (started["Name"], started["Input"], started["ParentInstance"]) == ("caller", '"x"', None)
