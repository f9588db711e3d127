"""The room under test: each room in turn, or the only one that ROOM names."""

import pytest

from core.transforms.rooms import Room
from tests.rooms.found import room_named, room_names


@pytest.fixture(params=room_names())
def room(request: pytest.FixtureRequest) -> Room:
    return room_named(request.param)
