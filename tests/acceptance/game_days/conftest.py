"""A game day for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.game_days.day import Clock, Day
from tests.acceptance.game_days.operator import Operator
from tests.acceptance.started import working


@pytest.fixture
def day(tmp_path: Path) -> Iterator[Day]:
    """Return a day whose app has not started."""
    clock = Clock()
    with working(tmp_path, clock=clock) as app:
        yield Day(app, clock, Operator(tmp_path))
