"""core/model/events.py: what a transform gets is what every later reader gets."""

import pytest

from tests.fakes.builders import event


def test_a_transform_cannot_change_an_event() -> None:
    given = event(3, "body")
    with pytest.raises(AttributeError):
        given.body = b"changed"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        given.note = "added"  # type: ignore[attr-defined]
    assert given == event(3, "body")


def test_events_are_equal_by_their_values() -> None:
    assert event(3, "body") == event(3, "body")
    assert event(3, "body") != event(3, "other")
