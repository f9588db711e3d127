"""Fixtures of the tests of the store: a driver that fails on demand."""

import pytest

from tests.fakes.odbc_driver import FakeDriver


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver()
