"""The sample app with settings, and the fixtures of the unit tests."""

from pathlib import Path

import pytest

from tests.acceptance.functions_host.sample import write_settings
from tests.unit.local.functions_host.conftest import clock, empty_app, sample_app

__all__ = ["app", "clock", "empty_app", "sample_app"]


@pytest.fixture
def app(sample_app: Path) -> Path:
    """The sample app, ready to start."""
    write_settings(sample_app)
    return sample_app
