"""The store of each contract test: it commits events and runs of aggregation over one database of each engine."""

from collections.abc import Iterator
from typing import cast

import pytest

import core.aggregation.tick
from tests.fakes.aggregation_engines import AggregatingStore, AggregationEngine, aggregation_of
from tests.fakes.kept import PersistentEngine


@pytest.fixture
def database(persistent: PersistentEngine) -> AggregationEngine:
    return aggregation_of(persistent)


@pytest.fixture
def store(database: AggregationEngine) -> Iterator[AggregatingStore]:
    opened = cast(AggregatingStore, database.open())
    yield opened
    opened.close()


@pytest.fixture
def single(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each slice be a separate transaction."""
    monkeypatch.setattr(core.aggregation.tick, "PORTION", 1)
