from collections.abc import Iterator
from pathlib import Path

import pytest

import core.aggregation.tick
from tests.fakes.aggregation_engines import AggregatingStore, AggregationEngine, aggregation_of, ingest
from tests.fakes.builders import reading
from tests.fakes.kept import PersistentEngine
from tests.fakes.ticks import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    ingest(made.store, [reading()])
    yield made
    made.store.close()


@pytest.fixture
def database(persistent: PersistentEngine) -> AggregationEngine:
    return aggregation_of(persistent)


@pytest.fixture
def store(database: AggregationEngine) -> Iterator[AggregatingStore]:
    opened = database.open()
    yield opened
    opened.close()


@pytest.fixture
def single(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core.aggregation.tick, "PORTION", 1)
