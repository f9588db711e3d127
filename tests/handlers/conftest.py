"""The app in this process, put together again for each test."""

from collections.abc import Iterator

import pytest

from tests.fakes.engines import SqliteEngine
from tests.handlers.running import Running


@pytest.fixture
def running(
    sqlite: SqliteEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Iterator[Running]:
    """The app over the database; it reads its settings, the environment, on its first use."""
    made = Running(sqlite, caplog, monkeypatch)
    yield made
    made.close()
