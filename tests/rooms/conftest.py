"""The room under test: each room in turn, or the only one that ROOM names."""

import pytest

from core.model.events import Event
from core.transforms.rooms import Room
from tests.rooms.found import logs_of, room_named, room_names


@pytest.fixture(params=room_names())
def room(request: pytest.FixtureRequest) -> Room:
    return room_named(request.param)


@pytest.fixture
def logs(room: Room) -> dict[str, list[Event]]:
    """The samples of the room as the logs of partitions."""
    return logs_of(room)
