"""Fixtures of the tests of the contract."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.written_modules import WrittenModules, written_modules


@pytest.fixture
def modules(tmp_path: Path) -> Iterator[WrittenModules]:
    """A folder from which modules can be imported."""
    with written_modules(tmp_path) as found:
        yield found
