"""What a person sends to have letters retried: parsed completely, or refused with the name of the field."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from core.dead_letters import LetterPosition, MoveReport
from core.events import PartitionId, SequenceNumber

MOST = 1_000  # letters in one request

PartitionText = Annotated[str, Meta(min_length=1, max_length=40, pattern="^[!-~]+\\Z")]
NumberText = Annotated[str, Meta(pattern="^[0-9]{1,18}\\Z")]
ReasonText = Annotated[str, Meta(min_length=1, max_length=400)]


class _Position(Struct, forbid_unknown_fields=True):
    partition_id: PartitionText
    sequence_number: NumberText


class _RetryRequest(Struct, forbid_unknown_fields=True):
    positions: Annotated[list[_Position], Meta(min_length=1, max_length=MOST)]
    reason: ReasonText


_decoder = msgspec.json.Decoder(_RetryRequest)


def read_retry_request(body: bytes) -> tuple[list[LetterPosition], str]:
    """The positions and the reason; ValueError says which field is wrong, and how."""
    try:
        request = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    if not request.reason.strip():
        raise ValueError("the reason says nothing - at `$.reason`")
    positions = [
        LetterPosition(PartitionId(each.partition_id), SequenceNumber(int(each.sequence_number)))
        for each in request.positions
    ]
    return positions, request.reason


def retry_answer(report: MoveReport) -> dict[str, Any]:
    """Which letters are retried, and which are not and why; `status` is null where there is no such letter."""
    moved = [_written(position) for position in report.moved]
    return {"moved": moved, "unmoved": [{**_written(one.position), "status": one.status} for one in report.unmoved]}


def _written(position: LetterPosition) -> dict[str, Any]:
    return {"partition_id": position.partition_id, "sequence_number": str(position.sequence_number)}
