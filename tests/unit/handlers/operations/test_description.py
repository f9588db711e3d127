"""handlers/operations/description.py: the description of the API is made once in a process."""

from datetime import UTC, datetime

from handlers.api import operations
from handlers.operations.description import openapi
from handlers.web.operation import Call, Nothing


def test_a_second_request_for_the_description_makes_no_new_one() -> None:
    call = Call(Nothing(), Nothing(), Nothing(), "anybody", datetime(2026, 1, 1, tzinfo=UTC), operations())
    assert openapi.run(call) is openapi.run(call)
