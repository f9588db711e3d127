"""What every test of this folder declares is forgotten."""

from collections.abc import Iterator

import pytest

from tests.fakes.declared import forgotten


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    with forgotten():
        yield
