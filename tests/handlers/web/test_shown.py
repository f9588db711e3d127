"""core/model/shapes.py: an answer has the fields of the value that it shows, and is written from it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import msgspec

from core.model.events import PartitionId, SequenceNumber
from core.model.shapes import shape_of, written
from tests.fakes.builders import EPOCH


@dataclass(frozen=True)
class Letter:
    partition_id: PartitionId
    number: SequenceNumber
    waits_for: SequenceNumber | None
    status: Literal["open", "done"]
    failed_at: datetime | None
    secret: str
    error: str


_Letter: Any = shape_of(Letter, hidden=("secret",), error=str | None)


class LetterAnswer(_Letter):
    """A letter."""


LETTER = Letter(PartitionId("1"), SequenceNumber(2**60), None, "open", EPOCH, "s", "e")


def test_the_fields_are_those_of_the_value_in_its_order_and_numbers_and_words_are_strings() -> None:
    fields = {one.name: one.type for one in msgspec.structs.fields(LetterAnswer)}
    assert list(fields) == ["partition_id", "number", "waits_for", "status", "failed_at", "error"]
    assert fields == {
        "partition_id": str, "number": str, "waits_for": str | None, "status": str, "failed_at": datetime | None,
        "error": str | None,
    }  # fmt: skip


def test_a_value_is_written_and_what_is_given_stands_in_the_place_of_it() -> None:
    answer = written(LetterAnswer, LETTER, error=None)
    assert msgspec.to_builtins(answer) == {
        "partition_id": "1", "number": str(2**60), "waits_for": None, "status": "open",
        "failed_at": "2026-01-01T00:00:00Z", "error": None,
    }  # fmt: skip
    assert written(LetterAnswer, LETTER).error == "e"
