from pathlib import Path

import pytest

from core.transforms.loading import Room, rooms_of
from tests.fakes.engines import CONNECTION, EACH_ENGINE, ENGINES
from tests.fakes.kept import PersistentEngine
from tests.fakes.rooms import Rooms
from tests.rooms.found import room_named, room_names, transform_of


@pytest.fixture(params=room_names())
def room(request: pytest.FixtureRequest) -> Room:
    return room_named(request.param)


@pytest.fixture
def rooms(room: Room) -> Rooms:
    return rooms_of(transform_of(room).row_classes)


@pytest.fixture(params=EACH_ENGINE if CONNECTION else ["sqlite"])  # whoever checks a room need not know of the other
def engine(request: pytest.FixtureRequest, tmp_path: Path, rooms: Rooms) -> PersistentEngine:
    return ENGINES[request.param](tmp_path, rooms)
