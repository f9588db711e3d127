"""The world in which the tests of a tick begin: one event is committed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.aggregation_engines import ingest
from tests.fakes.builders import reading
from tests.fakes.ticks import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    ingest(made.store, [reading()])
    yield made
    made.store.close()
