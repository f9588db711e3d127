"""An app for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.gaps.apps import App, working


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    """Return an app that has not started."""
    with working(tmp_path) as app:
        yield app
