from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.started import App, working


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    with working(tmp_path) as app:
        yield app


@pytest.fixture
def place(tmp_path: Path) -> Iterator[App]:
    with working(tmp_path, 8) as place:
        yield place
