"""The stores of aggregation on which each contract test of runs is run: SQLite, and the server of MSSQL_CONNECTION."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

import core.aggregation.commit
from tests.fakes.aggregation_engines import AggregatingStore, AggregationEngine, engines


@pytest.fixture(params=sorted(engines(Path(), os.environ.get("MSSQL_CONNECTION", ""))))
def database(request: pytest.FixtureRequest, tmp_path: Path) -> AggregationEngine:
    return engines(tmp_path, os.environ.get("MSSQL_CONNECTION", ""))[request.param]()


@pytest.fixture
def store(database: AggregationEngine) -> Iterator[AggregatingStore]:
    opened = cast(AggregatingStore, database.open())
    yield opened
    opened.close()


@pytest.fixture
def single(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each slice be a separate transaction."""
    monkeypatch.setattr(core.aggregation.commit, "PORTION", 1)
