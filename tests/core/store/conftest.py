import pytest

from tests.fakes.odbc_driver import FakeDriver


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver()
