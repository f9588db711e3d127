import gc
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import examples.flight_info.aggregates.flight_punctuality
import examples.home_security.aggregates.home_activity  # noqa: F401
from core.errors import StoreMisconfigured
from core.store.sqlserver.connections import load_driver
from local.stack.sql_server import MISSING, microsoft_driver
from tests.afterwards import close_all
from tests.fakes.engines import CONNECTION, EACH_ENGINE, ENGINES, SqliteEngine
from tests.fakes.kept import Engine, PersistentEngine
from tests.fakes.store import Store

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts a job in the background without it
settings.register_profile(
    "repeatable",
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("quick", settings.get_profile("repeatable"), max_examples=20)  # of `make check`
settings.load_profile("repeatable")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("server") and not CONNECTION:
        pytest.skip("MSSQL_CONNECTION names no T-SQL server")


@pytest.fixture(autouse=True)
def _afterwards() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture(params=EACH_ENGINE)
def persistent(request: pytest.FixtureRequest, tmp_path: Path) -> PersistentEngine:
    return ENGINES[request.param](tmp_path)


@pytest.fixture
def engine(persistent: PersistentEngine) -> Engine:
    return persistent


@pytest.fixture
def make_store(engine: Engine) -> Iterator[Callable[[], Store]]:
    opened: list[Store] = []

    def make() -> Store:
        opened.append(engine.open())
        return opened[-1]

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def store(make_store: Callable[[], Store]) -> Store:
    return make_store()


@pytest.fixture
def sqlite(tmp_path: Path) -> SqliteEngine:
    return SqliteEngine(tmp_path / "store.db")


@pytest.fixture(scope="session")
def odbc_manager() -> None:
    """Skip what loads pyodbc on a machine without the ODBC manager."""
    try:
        load_driver()
    except StoreMisconfigured as missing:
        pytest.skip(f"no ODBC manager here: apt-get install unixodbc ({missing})")


@pytest.fixture(scope="session")
def driver_name() -> str:
    name = microsoft_driver()
    if name is None:
        pytest.skip(MISSING)
    return name


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
