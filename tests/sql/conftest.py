"""Fixtures of the tests that need a T-SQL server: its schema, emptied, and a store over it whose line is watched."""

from collections.abc import Iterator

import pytest

from core.store.sqlserver.connections import Session, connect
from core.store.sqlserver.database import SqlServerDatabase
from tests.fakes.engines import CONNECTION
from tests.fakes.server_schema import empty_schema, shared_schema
from tests.fakes.store import Store
from tests.sql.wire import Wire


@pytest.fixture
def server_session() -> Iterator[Session]:
    """To look and work by hand in the process's own schema, which is emptied first."""
    opened = connect(CONNECTION)
    empty_schema(opened, shared_schema(CONNECTION))
    yield opened
    opened.close()


@pytest.fixture
def line() -> Iterator[tuple[Wire, str]]:
    """A line to the server that is counted and can be cut, and the string that leads through it."""
    wire, through = Wire.before(CONNECTION)
    yield wire, through
    wire.close()


@pytest.fixture
def wire(line: tuple[Wire, str]) -> Wire:
    return line[0]


@pytest.fixture
def server_store(server_session: Session, line: tuple[Wire, str]) -> Iterator[Store]:
    """A store over the emptied schema, behind that line."""
    opened = Store(SqlServerDatabase(line[1], schema=shared_schema(CONNECTION)))
    yield opened
    opened.close()
