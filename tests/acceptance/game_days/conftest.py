from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.game_days.day import Day
from tests.acceptance.game_days.operator import Operator
from tests.acceptance.started import MovableClock, working


@pytest.fixture
def day(tmp_path: Path) -> Iterator[Day]:
    clock = MovableClock()
    with working(tmp_path, clock=clock) as app:
        yield Day(app, clock, Operator(tmp_path))
