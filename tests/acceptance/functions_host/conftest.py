"""The sample app with settings, the fixtures of the unit tests, and both workers."""

from pathlib import Path

import pytest

from tests.acceptance.functions_host import runtime_worker
from tests.acceptance.functions_host.sample import write_settings
from tests.local.functions_host.conftest import clock, durable_app, empty_app, sample_app

__all__ = ["app", "clock", "durable_app", "empty_app", "sample_app"]

MICROSOFT_S = pytest.mark.skipif(not runtime_worker.is_installed(), reason=runtime_worker.HOW_TO_GET_IT)
WORKERS = ("builtin", pytest.param("microsoft", marks=MICROSOFT_S))


@pytest.fixture
def app(sample_app: Path) -> Path:
    """The sample app, ready to start."""
    write_settings(sample_app)
    return sample_app
