from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.written_modules import WrittenModules, written_modules


@pytest.fixture
def modules(tmp_path: Path) -> Iterator[WrittenModules]:
    with written_modules(tmp_path) as found:
        yield found
