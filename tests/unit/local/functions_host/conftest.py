"""What the tests of the local functions host share."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.local.functions_host.doubles import ManualClock

SAMPLE_APP = Path(__file__).parents[3] / "fixtures" / "sample_app"


@pytest.fixture
def clock() -> ManualClock:
    """A clock that the test moves."""
    return ManualClock()


@pytest.fixture
def sample_app(tmp_path: Path) -> Iterator[Path]:
    """A copy of the sample app; its module is forgotten afterwards, since a process knows one `function_app`."""
    directory = tmp_path / "app"
    shutil.copytree(SAMPLE_APP, directory, ignore=shutil.ignore_patterns("__pycache__"))
    yield from forgotten(directory)


@pytest.fixture
def empty_app(tmp_path: Path) -> Iterator[Path]:
    """A folder with only a host.json; the test writes the functions."""
    directory = tmp_path / "app"
    directory.mkdir()
    (directory / "host.json").write_text('{"version": "2.0"}')
    yield from forgotten(directory)


def forgotten(directory: Path) -> Iterator[Path]:
    """Lend the folder and forget what was imported from it."""
    yield directory
    sys.modules.pop("function_app", None)
    sys.path[:] = [entry for entry in sys.path if entry != str(directory)]
