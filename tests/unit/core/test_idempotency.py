"""core/api/idempotency.py: whether a request runs, gets the answer of an earlier one, or is refused."""

from dataclasses import replace
from datetime import timedelta

import pytest

from core.api.idempotency import KEPT_FOR, WORK_AT_MOST, KeptKey, KeyClaim, standing
from tests.fakes.builders import EPOCH

CLAIM = KeyClaim("key", "a" * 64, EPOCH)
KEPT = KeptKey("a" * 64, EPOCH, EPOCH + KEPT_FOR, None)
SECOND = timedelta(seconds=1)


def later(by: timedelta) -> KeyClaim:
    return replace(CLAIM, claimed_at=EPOCH + by)


def test_a_key_that_nobody_used_is_free() -> None:
    assert standing(CLAIM, None) == "free"


@pytest.mark.parametrize(
    ("after", "stands"), [(SECOND, "in_work"), (WORK_AT_MOST, "in_work"), (WORK_AT_MOST + SECOND, "free")]
)
def test_a_request_is_in_work_until_its_process_must_be_dead(after: timedelta, stands: str) -> None:
    assert standing(later(after), KEPT) == stands


@pytest.mark.parametrize(
    ("after", "stands"), [(SECOND, "answered"), (KEPT_FOR - SECOND, "answered"), (KEPT_FOR, "free")]
)
def test_an_answer_stands_for_a_day(after: timedelta, stands: str) -> None:
    assert standing(later(after), replace(KEPT, answer="{}")) == stands


@pytest.mark.parametrize("answer", [None, "{}"])
def test_another_request_is_told_so_until_the_key_expires(answer: str | None) -> None:
    kept = replace(KEPT, request_hash="b" * 64, answer=answer)
    assert standing(later(WORK_AT_MOST + SECOND), kept) == "other_request"
    assert standing(later(KEPT_FOR), kept) == "free"
