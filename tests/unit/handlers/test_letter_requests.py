"""handlers/letter_requests.py"""

import json

import pytest

from core.dead_letters import LetterPosition, MoveReport, Unmoved
from core.events import PartitionId, SequenceNumber
from handlers.letter_requests import MOST, read_retry_request, retry_answer

POSITION = {"partition_id": "3", "sequence_number": "123456789012345678"}
THREE = LetterPosition(PartitionId("3"), SequenceNumber(123456789012345678))


def test_a_request_names_positions_and_a_reason() -> None:
    body = json.dumps({"positions": [POSITION], "reason": "deployed again"}).encode()
    assert read_retry_request(body) == ([THREE], "deployed again")


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (b"", "truncated"),
        (b"\xff{}", "malformed"),
        (b"[" * 100_000, "expected `object`"),
        ({"positions": [POSITION]}, "reason"),
        ({"positions": [POSITION], "reason": ""}, "$.reason"),
        ({"positions": [POSITION], "reason": " "}, "$.reason"),
        ({"positions": [POSITION], "reason": "x" * 401}, "$.reason"),
        ({"positions": [], "reason": "why"}, "$.positions"),
        ({"positions": [POSITION] * (MOST + 1), "reason": "why"}, "$.positions"),
        ({"positions": [POSITION], "reason": "why", "force": True}, "force"),
        ({"positions": [{**POSITION, "sequence_number": 7}], "reason": "why"}, "$.positions[0].sequence_number"),
        ({"positions": [{**POSITION, "sequence_number": "-1"}], "reason": "why"}, "$.positions[0].sequence_number"),
        ({"positions": [{**POSITION, "sequence_number": "9" * 19}], "reason": "why"}, "sequence_number"),
        ({"positions": [{**POSITION, "partition_id": "3'; --"}], "reason": "why"}, "$.positions[0].partition_id"),
    ],
)
def test_a_wrong_request_is_refused_with_the_name_of_the_field(request_: object, field: str) -> None:
    body = request_ if isinstance(request_, bytes) else json.dumps(request_).encode()
    with pytest.raises(ValueError) as refused:
        read_retry_request(body)
    assert field.lower() in str(refused.value).lower()


def test_the_answer_says_which_letters_moved_and_what_the_others_are() -> None:
    other = LetterPosition(PartitionId("3"), SequenceNumber(5))
    report = MoveReport((THREE,), (Unmoved(other, "discarded"), Unmoved(other, None)))
    assert retry_answer(report) == {
        "moved": [POSITION],
        "unmoved": [
            {"partition_id": "3", "sequence_number": "5", "status": "discarded"},
            {"partition_id": "3", "sequence_number": "5", "status": None},
        ],
    }
