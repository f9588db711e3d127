"""A store over a driver that fails on demand."""

import pytest

from core.model.transforms import NONE_UNKNOWN
from core.store.sqlserver.connections import Access
from core.store.sqlserver.database import SqlServerDatabase
from tests.fakes.odbc_driver import FakeDriver
from tests.fakes.store import Store
from tests.sql.values import ID


@pytest.fixture
def committed(driver: FakeDriver) -> FakeDriver:
    """Before a server with one commit of the partition, whose letter 7 is claimed."""
    driver.server.stream_id = 1
    driver.server.checkpoints["0"] = (7, "448", "2026-01-01T00:00:00", 1, str(ID), NONE_UNKNOWN)
    driver.server.held = {7}
    return driver


@pytest.fixture
def store(driver: FakeDriver) -> Store:
    return Store(SqlServerDatabase("SERVER=host;UID=app;PWD=secret", access=Access(lambda: driver)))
