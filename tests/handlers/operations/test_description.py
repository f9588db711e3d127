"""handlers/operations/description.py: the description of the API is made once in a process."""

from datetime import UTC, datetime

from core.api.operation import Call
from core.api.room_operations import RoomMeans
from core.model.shapes import Nothing
from handlers.api import OPERATIONS
from handlers.operations.description import openapi


def unused() -> RoomMeans:
    raise AssertionError("no operation of a room runs")


def test_a_second_request_for_the_description_makes_no_new_one() -> None:
    call = Call(Nothing(), Nothing(), Nothing(), "anybody", datetime(2026, 1, 1, tzinfo=UTC), OPERATIONS, unused)
    assert openapi.run(call) is openapi.run(call)
