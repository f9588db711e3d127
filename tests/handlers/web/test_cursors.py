"""core/api/operation.py: a cursor gives back the place that is in it, and everything else is refused."""

import base64
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest

from core.api.operation import Moment, Number, cursor_of, key_of
from core.api.problems import Problem
from core.model.shapes import PartitionText, Shape


class Given(Shape):
    count: int = 1


Place = tuple[Moment, PartitionText, Number]
PLACE: type[Place] = tuple[Moment, PartitionText, Number]
KEY = (datetime(2026, 1, 1, tzinfo=UTC), "0", 2**62)
AT = "2026-01-01T00:00:00Z"
WRONG: tuple[Any, ...] = (
    *([AT, "0"], [AT, "0", 1, 2], [], [[AT, "0", 1]], {}, None, 1, "x"),  # not three values
    *(["2026-01-01T00:00:00", "0", 1], ["2026-01-01", "0", 1], ["", "0", 1], [1767225600, "0", 1], [None, "0", 1]),
    *(["2026-01-01T00:00:00+01:00", "0", 1], ["0001-01-01T00:00:00+14:00", "0", 1]),  # no cursor of ours has a zone
    *(["9999-12-31T23:59:59-14:00", "0", 1], ["2026-02-30T00:00:00Z", "0", 1]),
    *([AT, text, 1] for text in ("", "0\n", "0/1", "x" * 41, "\x00", "é", "'", None, 0)),
    *([AT, "0", number] for number in (2**63, 10**30, -1, 1.5, 1e300, "1", None, True, [1], float("nan"))),
)


def test_a_cursor_gives_back_its_key_to_its_own_query() -> None:
    cursor = cursor_of(Given(count=2), KEY)
    assert key_of(Given(count=2), cursor, PLACE) == KEY
    assert cursor.isascii() and "=" not in cursor


def test_a_cursor_of_a_different_query_is_refused() -> None:
    with pytest.raises(Problem, match="a different query"):
        key_of(Given(count=3), cursor_of(Given(count=2), KEY), PLACE)


def forged(octets: bytes) -> str:
    """Return a cursor of the query whose key is written so."""
    mark = msgspec.json.decode(base64.urlsafe_b64decode(cursor_of(Given(), KEY) + "=="))[0]
    return base64.urlsafe_b64encode(f'["{mark}",'.encode() + octets + b"]").decode().rstrip("=")


NOT_JSON = (b"NaN", b"[NaN]", b"Infinity", b"[" * 500, b'["a"', b'"\\ud800"', b"\xff")


@pytest.mark.parametrize("written", [*map(msgspec.json.encode, WRONG), *NOT_JSON], ids=str)
def test_a_key_of_other_types_or_no_json_is_refused_although_it_belongs_to_the_query(written: bytes) -> None:
    with pytest.raises(Problem, match="not the `next`"):
        key_of(Given(), forged(written), PLACE)


def test_what_is_no_cursor_is_refused() -> None:
    for cursor in ("", "x", "é", "W10", "bnVsbA", "WyJhIiwxXQ", "a" * 999, "a\n", " "):
        with pytest.raises(Problem):
            key_of(Given(), cursor, PLACE)


def test_an_id_of_a_job_is_read_as_one() -> None:
    key = (KEY[0], UUID(int=7))
    assert key_of(Given(), cursor_of(Given(), key), tuple[Moment, UUID]) == key
    with pytest.raises(Problem):
        key_of(Given(), cursor_of(Given(), (KEY[0], "x")), tuple[Moment, UUID])


def test_a_cursor_that_was_changed_is_refused_or_names_a_different_place() -> None:
    cursor = cursor_of(Given(), KEY)
    changed = 0
    for at in range(len(cursor)):
        damaged = cursor[:at] + ("A" if cursor[at] != "A" else "B") + cursor[at + 1 :]
        try:
            key: Any = key_of(Given(), damaged, PLACE)
        except Problem:
            continue
        assert key != KEY
        changed += 1
    assert changed < len(cursor)
