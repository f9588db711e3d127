import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.functions_host.doubles import ManualClock

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def sample_app(tmp_path: Path) -> Iterator[Path]:
    """A copy of the sample app. Its module is forgotten afterwards, since a process knows one `function_app`."""
    yield from forgotten(copied("sample_app", tmp_path))


@pytest.fixture
def durable_app(tmp_path: Path) -> Iterator[Path]:
    yield from forgotten(copied("durable_app", tmp_path))


def copied(name: str, into: Path) -> Path:
    directory = into / "app"
    shutil.copytree(FIXTURES / name, directory, ignore=shutil.ignore_patterns("__pycache__"))
    return directory


@pytest.fixture
def empty_app(tmp_path: Path) -> Iterator[Path]:
    """A folder with only a host.json. The test writes the functions."""
    directory = tmp_path / "app"
    directory.mkdir()
    (directory / "host.json").write_text('{"version": "2.0"}')
    yield from forgotten(directory)


def forgotten(directory: Path) -> Iterator[Path]:
    yield directory
    forget(directory)


def forget(directory: Path) -> None:
    sys.modules.pop("function_app", None)
    sys.path[:] = [entry for entry in sys.path if entry != str(directory)]
