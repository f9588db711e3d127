"""A game day for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.game_days.day import Day, played


@pytest.fixture
def day(tmp_path: Path) -> Iterator[Day]:
    """Return a day whose app has not started."""
    with played(tmp_path) as day:
        yield day
