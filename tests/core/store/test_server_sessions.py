"""The first batch of a session with SQL Server, and who loses a deadlock."""

import logging
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.aggregation.store import Aggregations
from core.errors import StoreMisconfigured
from core.store.sqlserver.connections import Access, Deadlines
from core.store.sqlserver.database import SqlServerDatabase
from examples.home_security.aggregates.home_activity import HomeActivity
from tests.fakes.odbc_driver import FakeDriver
from tests.offenders import holds_for
from tests.sql.statements import every_run, every_script
from tests.sql.values import EPOCH

CONNECTION = "SERVER=host;UID=app;PWD=secret"
OPTIONS = "d.compatibility_level"


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver()


def database_of(driver: FakeDriver, level: int = 160, has_row_versions: int = 1) -> SqlServerDatabase:
    driver.server.answers[OPTIONS] = [("ledger", level, has_row_versions)]
    return SqlServerDatabase(CONNECTION, access=Access(lambda: driver))


def test_a_session_waits_for_a_lock_for_less_time_than_a_statement_has(driver: FakeDriver) -> None:
    """After its deadline the outcome of a statement is unknown; after a lock that was not free, nothing was written."""
    database = database_of(driver)
    database.ask("read_commit_numbers")
    text, given = driver.server.executed[0]
    (milliseconds,) = re.findall(r"SET LOCK_TIMEOUT (\d+);", text)
    longest = Deadlines().statement
    assert longest is not None
    assert 0 < int(milliseconds) < longest.total_seconds() * 1_000 / 2
    assert given == [], "an option that a batch with values sets ends with the batch"


def test_a_database_without_openjson_is_named_with_the_statement_that_mends_it(driver: FakeDriver) -> None:
    database_of(driver, level=130).ask("read_commit_numbers")
    with pytest.raises(
        StoreMisconfigured, match=r"^the database ledger .* 120, .*ALTER DATABASE \[ledger\] SET COMPAT"
    ):
        database_of(driver, level=120).ask("read_commit_numbers")


def test_readers_that_wait_for_writers_are_reported_once(driver: FakeDriver, caplog: pytest.LogCaptureFixture) -> None:
    database = database_of(driver, has_row_versions=0)
    with ThreadPoolExecutor(1) as pool:
        database.ask("read_commit_numbers")
        pool.submit(database.ask, "read_commit_numbers").result()
    (record,) = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert record.__dict__["action"] == "check_database"
    assert "ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON" in record.getMessage()
    caplog.clear()
    database_of(driver).ask("read_commit_numbers")
    assert caplog.records == []


GIVING_WAY = re.compile(r"purge .*|erasure .* piece|run slices.*|run result|replay (?!open|close).*|rehearsal .*")


@holds_for(every_script())
def test_a_long_transaction_that_nobody_waits_for_loses_each_deadlock_with_a_batch(name: str) -> None:
    text, given = every_run()[name]
    assert text.partition("\n")[0].endswith(" SET DEADLOCK_PRIORITY LOW;") == bool(GIVING_WAY.fullmatch(name))
    assert given, "without values, the option would stay on the session"


def test_a_removal_of_windows_loses_each_deadlock_too(driver: FakeDriver) -> None:
    driver.server.answers["@removed AS removed"] = [(0,)]
    assert Aggregations(database_of(driver)).remove_windows(HomeActivity, EPOCH, 9) == 0
    text, given = driver.server.executed[-1]
    assert "DELETE" in text
    assert text.startswith("SET NOCOUNT ON; SET DEADLOCK_PRIORITY LOW;\n")
    assert given
