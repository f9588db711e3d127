from pathlib import Path

import pytest

from tests.hubledger.cli.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project without a room."""
    return Project(tmp_path)
