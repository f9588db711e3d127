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
    yield from filled(tmp_path_factory)
