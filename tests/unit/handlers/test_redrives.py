"""handlers/redrives.py: the orchestration, driven by hand. It only drives, and only an id travels through it."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from handlers.orchestrations import PAUSE, SECOND
from handlers.redrives import drive_redrive

JOB = "6f1e2f2b-52c8-4c5f-9d0a-0d8d3a3b9b11"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Context:
    """The orchestration's context; what it makes is a tuple."""

    current_utc_datetime = NOW

    def __init__(self) -> None:
        self.continued: list[str] = []

    def get_input(self) -> str:
        return JOB

    def call_activity(self, name: str, given: str) -> tuple[str, str]:
        return name, given

    def create_timer(self, until: datetime) -> tuple[str, datetime]:
        return "timer", until

    def continue_as_new(self, given: str) -> None:
        self.continued.append(given)


def ended(work: Any, sent: object) -> object:
    """Send the last answer, and return the result."""
    with pytest.raises(StopIteration) as stop:
        work.send(sent)
    return stop.value.value


def test_a_job_that_is_over_ends_its_orchestration() -> None:
    context: Any = Context()
    work = drive_redrive(context)
    assert next(work) == ("redrive_pieces", JOB)
    assert ended(work, {"is_over": True, "pieces": 3, "looked_at": 2_000}) is not None
    assert context.continued == []


def test_a_slice_that_leaves_work_is_followed_by_the_next_one() -> None:
    context: Any = Context()
    work = drive_redrive(context)
    next(work)
    assert ended(work, {"is_over": False, "pieces": 3, "looked_at": 3_000}) is None
    assert context.continued == [JOB]


def test_a_fault_is_followed_by_a_pause() -> None:
    context: Any = Context()
    work = drive_redrive(context)
    next(work)
    assert work.send({"error": "StoreUnavailable"}) == ("timer", NOW + PAUSE + SECOND)
    assert ended(work, SimpleNamespace()) is None
    assert context.continued == [JOB]
