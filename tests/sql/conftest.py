from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import pytest

from core.store.sqlserver.connections import Deadlines, Session, connect
from core.store.sqlserver.database import SqlServerDatabase
from tests.fakes.engines import CONNECTION, empty_schema, shared_schema
from tests.fakes.store import Store
from tests.sql.wire import Wire

SOON = Deadlines(statement=timedelta(seconds=5))


@pytest.fixture
def server_session() -> Iterator[Session]:
    """To look and work by hand in the process's own schema, which is emptied first."""
    opened = connect(CONNECTION)
    empty_schema(opened, shared_schema())
    yield opened
    opened.close()


@pytest.fixture
def line() -> Iterator[tuple[Wire, str]]:
    wire, through = Wire.before(CONNECTION)
    yield wire, through
    wire.close()


@pytest.fixture
def wire(line: tuple[Wire, str]) -> Wire:
    return line[0]


@pytest.fixture
def server_store(server_session: Session, line: tuple[Wire, str]) -> Iterator[Store]:
    opened = Store(SqlServerDatabase(line[1], schema=shared_schema()))
    yield opened
    opened.close()


@pytest.fixture
def hasty(server_session: Session) -> Iterator[Store]:
    with closing(Store(SqlServerDatabase(CONNECTION, SOON, schema=shared_schema()))) as opened:
        yield opened
