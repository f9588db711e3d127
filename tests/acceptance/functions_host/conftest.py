from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.acceptance.functions_host import runtime_worker
from tests.acceptance.functions_host.sample import write_settings
from tests.local.functions_host.conftest import clock, durable_app, empty_app, sample_app

__all__ = ["app", "clock", "durable_app", "empty_app", "sample_app"]

IS_MISSING = find_spec("azure_functions_runtime") is None
MICROSOFT_S = pytest.mark.skipif(IS_MISSING, reason=runtime_worker.HOW_TO_GET_IT)
WORKERS = ("builtin", pytest.param("microsoft", marks=MICROSOFT_S))


@pytest.fixture
def app(sample_app: Path) -> Path:
    write_settings(sample_app)
    return sample_app
