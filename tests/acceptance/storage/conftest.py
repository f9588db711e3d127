"""One Azurite for all tests of this folder, and the sample app."""

from collections.abc import Iterator

import pytest

from local.stack import azurite
from tests.acceptance.functions_host.conftest import app, empty_app, sample_app

__all__ = ["app", "empty_app", "sample_app"]


@pytest.fixture(scope="session")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The connection string of an empty storage account."""
    if azurite.command() is None:
        pytest.skip("Azurite is not installed: `make azurite` does it, with npm")
    with azurite.running(tmp_path_factory.mktemp("azurite")) as connection:
        yield connection
