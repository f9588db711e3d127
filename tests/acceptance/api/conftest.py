"""One host for all tests that change nothing, over a store with letters and ranges in it, and one for those that do."""

from collections.abc import Iterator

import pytest

from tests.acceptance.api.served import Served, fill


def filled(factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(factory.mktemp("served"))
    fill(made)
    yield made
    made.close()


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    yield from filled(tmp_path_factory)


@pytest.fixture(scope="package")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A filled app whose store a test changes."""
    yield from filled(tmp_path_factory)
