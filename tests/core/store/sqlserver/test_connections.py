import logging
import os
import re
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from core.aggregation.store import Aggregations
from core.errors import SchemaMismatch, StoreMisconfigured, StoreUnavailable, StoreUnreachable
from core.store.sqlserver.connections import Access, Connections, Deadlines, LongText, Reconnects, Session, connect
from core.store.sqlserver.database import SqlServerDatabase
from examples.home_security.aggregates.home_activity import HomeActivity
from tests.fakes.builders import FakeClock
from tests.fakes.odbc_driver import COMMIT, Error, FakeDriver, When, fault, lost
from tests.offenders import holds_for
from tests.patience import allowed
from tests.sql.statements import every_run, every_script
from tests.sql.values import EPOCH

ROOT = Path(__file__).parents[4]
WITH_PASSWORD = "DRIVER={ODBC Driver 18 for SQL Server};SERVER=host;UID=app;PWD=secret"
BY_TOKEN = "DRIVER={ODBC Driver 18 for SQL Server};SERVER=host;DATABASE=hubledger"


@pytest.fixture
def session(driver: FakeDriver) -> Session:
    return connect(WITH_PASSWORD, access=Access(lambda: driver))


def pool_of(driver: FakeDriver, check: object = None, reconnects: Reconnects | None = None) -> Connections:
    given = [reconnects] if reconnects else []
    return Connections(lambda: connect(WITH_PASSWORD, access=Access(lambda: driver)), check or id, *given)  # type: ignore[arg-type]


def test_each_thread_opens_its_session_late_and_drops_only_its_own_until_all_are_closed(driver: FakeDriver) -> None:
    pool = pool_of(driver)
    assert driver.connections == []
    mine = pool.get()
    assert pool.get() is mine
    with ThreadPoolExecutor(1) as other:
        assert other.submit(pool.get).result() is not mine
    assert len(driver.open) == 2
    for _ in range(2):
        pool.drop()
        assert driver.open == driver.connections[1:]
    assert pool.get() is not mine
    driver.connections[-1].lost = True  # a connection that is lost already is closed without complaint
    for _ in range(2):
        pool.close()
        assert driver.open == []
    pool.get()
    assert len(driver.open) == 1


def test_a_session_that_the_check_refuses_is_closed(driver: FakeDriver) -> None:
    def refuse(session: Session) -> None:
        raise SchemaMismatch("too old")

    pool = pool_of(driver, refuse)
    for opened in (1, 2):
        with pytest.raises(SchemaMismatch):
            pool.get()
        assert (len(driver.connections), driver.open) == (opened, [])


@pytest.mark.parametrize("when", [When.AT_ONCE, When.LATE])
def test_a_session_keeps_one_cursor(session: Session, driver: FakeDriver, when: When) -> None:
    for _ in range(3):
        session.run("DECLARE @a int = ?;", [1])
    driver.server.faults.append((when, fault("23000", 515)))
    with pytest.raises(Error, match="515"):
        session.run(COMMIT)
    for _ in range(3):
        assert session.run("SET NOCOUNT ON;") == []
    assert [cursor.closed for cursor in driver.connections[0].cursors] == [True, False]


def test_a_value_is_declared_by_its_kind_whatever_its_size(session: Session, driver: FakeDriver) -> None:
    for given in (["", LongText(""), 7], ["x" * 4_000, LongText("👩" * 2_001), 2**62]):
        session.run("DECLARE @a nvarchar(4000) = ?, @b nvarchar(max) = ?, @c bigint = ?;", given)
        assert driver.connections[0].cursors[0].sizes == [(-9, 4_000, 0), (-9, 0, 0), (-5, 0, 0)]
    with pytest.raises(AssertionError, match="by its size"):
        session.run("DECLARE @a float = ?;", [0.5])  # no whole number: the driver declares it
    assert driver.connections[0].maxwrite > 2 * 1024 * 1024


def test_deadlines_are_whole_seconds_and_never_for_ever(driver: FakeDriver) -> None:
    for given, sent in ((0.2, 1), (1, 1), (1.2, 2), (15, 15)):
        deadline = timedelta(seconds=given)
        connect(WITH_PASSWORD, Deadlines(deadline, deadline), Access(lambda: driver))
        assert driver.options[-1]["timeout"] == driver.connections[-1].timeout == sent


def test_a_string_without_credentials_signs_in_by_token_or_not_at_all(driver: FakeDriver) -> None:
    connect(BY_TOKEN, access=Access(lambda: driver, lambda: "aé"))
    assert driver.options[0]["attrs_before"] == {1256: b"\x04\x00\x00\x00a\x00\xe9\x00"}
    assert driver.options[0]["autocommit"] is True

    def refuse() -> str:
        raise StoreMisconfigured("STORE_CONNECTION has no credentials")

    with pytest.raises(StoreMisconfigured):
        connect(BY_TOKEN, access=Access(lambda: driver, refuse))
    assert len(driver.options) == 1


def test_a_string_with_credentials_needs_no_token_and_messages_are_in_english(driver: FakeDriver) -> None:
    access = Access(lambda: driver, lambda: pytest.fail("a token was asked for"))
    every = (
        "UID=a;PWD=b",
        "uid = a",
        "Trusted_Connection=yes",
        "Authentication=ActiveDirectoryMsi",
        "UID=a;LANGUAGE=x",
    )
    for credentials in every:
        connect(f"{BY_TOKEN};{credentials}", access=access)
        assert "attrs_before" not in driver.options[-1]
        assert driver.options[-1]["string"] == f"LANGUAGE=us_english;{BY_TOKEN};{credentials}"


SIGN_INS = {
    "a login refused": (fault("28000", 18456, "Login failed.", "SQLDriverConnect"), StoreMisconfigured),
    "a firewall": (fault("42000", 40615, "Cannot open server.", "SQLDriverConnect"), StoreMisconfigured),
    "no driver": (Error("01000", "[01000] [unixODBC]Can't open lib 'x' : file not found (0) (S)"), StoreMisconfigured),
    "no data source": (Error("IM002", "[IM002] [unixODBC]Data source name not found (0) (S)"), StoreMisconfigured),
    "a database that is not open": (fault("42000", 4060, "Cannot open database.", "SQLDriver"), StoreUnavailable),
    "no answer": (Error("HYT00", "[HYT00] [Microsoft]Login timeout expired (0) (SQLDriverConnect)"), StoreUnavailable),
    "an unknown refusal": (fault("42000", 99999, "No.\nAnd another line.", "SQLDriverConnect"), StoreUnavailable),
}


@pytest.mark.parametrize("case", SIGN_INS)
def test_a_sign_in_that_fails_says_so_in_one_line_that_names_the_setting(driver: FakeDriver, case: str) -> None:
    error, named = SIGN_INS[case]
    driver.refusals.append(error)
    with pytest.raises(named, match=r"^STORE_CONNECTION: .+$") as caught:
        connect(WITH_PASSWORD, access=Access(lambda: driver))
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is error


def test_the_real_driver_does_not_pool_and_names_what_is_not_installed(odbc_manager: None) -> None:
    access = Access()
    assert access.driver().pooling is False  # type: ignore[attr-defined]  # a closed connection is gone
    with pytest.raises(StoreMisconfigured, match=r"^STORE_CONNECTION: the ODBC driver .* is not installed: "):
        connect("DRIVER={No Such Driver 99};SERVER=127.0.0.1,1;UID=a;PWD=b", access=access)
    with pytest.raises(StoreMisconfigured, match=r"^STORE_CONNECTION: .*IM002"):
        connect("DSN=no_such_source;UID=a;PWD=b", access=access)


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_unavailable_in_time(odbc_manager: None, driver_name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        text = f"DRIVER={{{driver_name}}};SERVER=127.0.0.1,{silent.getsockname()[1]};UID=a;PWD=b"
        with pytest.raises(StoreUnavailable, match=r"^STORE_CONNECTION: .*Login timeout expired"):
            connect(text, Deadlines(sign_in=timedelta(seconds=1)), Access())


@pytest.mark.parametrize(
    ("module", "environment", "message"),
    [
        (
            "raise ImportError('libodbc.so.2: cannot open shared object file')",
            {},
            ": pyodbc cannot be loaded (install unixodbc): libodbc.so.2: cannot open shared object file",
        ),
        pytest.param(  # the token comes first: nothing of the driver is used
            "",
            {"AZURE_TOKEN_CREDENTIALS": "EnvironmentCredential"},
            " has no credentials, and Entra gives no token: ",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["a pyodbc that does not load", "a token that nobody gives"],
)
def test_a_process_that_cannot_sign_in_says_so_in_one_clear_line(
    tmp_path: Path, module: str, environment: dict[str, str], message: str
) -> None:
    (tmp_path / "pyodbc.py").write_text(module)
    program = f"from core.store.sqlserver.connections import connect\nconnect({BY_TOKEN!r})"
    surroundings = os.environ | environment | {"PYTHONPATH": str(tmp_path)}
    command, timeout = [sys.executable, "-c", program], allowed(60)
    done = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True, timeout=timeout)
    assert done.stderr.splitlines()[-1].startswith(f"core.errors.StoreMisconfigured: STORE_CONNECTION{message}")


def failing(fault: Exception) -> str:
    raise fault


def pause(reconnects: Reconnects, fault: Exception) -> float:
    with pytest.raises(StoreUnreachable) as caught:
        reconnects.attempt(lambda: failing(fault))
    return caught.value.pause


def test_pauses_begin_with_5_seconds_and_double_up_to_60() -> None:
    clock = FakeClock()
    reconnects = Reconnects(clock.monotonic)
    for expected in (5.0, 10.0, 20.0, 40.0, 60.0, 60.0, 60.0):
        assert pause(reconnects, StoreUnavailable("no answer")) == expected
        clock.advance(2)  # during a pause nobody attempts
        with pytest.raises(
            StoreUnreachable, match=f"no answer; the next attempt follows in {expected - 2:.0f} s"
        ) as caught:
            reconnects.attempt(lambda: pytest.fail("an attempt during a pause"))
        assert caught.value.pause == expected - 2
        clock.advance(expected - 2)
    assert reconnects.attempt(lambda: "a connection") == "a connection"
    assert pause(reconnects, StoreUnavailable("no answer")) == 5.0  # a connection ends the row of failures


def test_threads_that_fail_together_count_once() -> None:
    clock = FakeClock()
    reconnects = Reconnects(clock.monotonic)

    def fail_within() -> str:
        assert pause(reconnects, StoreUnavailable("second")) == 5.0  # a different thread fails while this one waits
        raise StoreUnavailable("first")

    with pytest.raises(StoreUnreachable) as caught:
        reconnects.attempt(fail_within)
    assert caught.value.pause == 5.0
    clock.advance(5)
    assert pause(reconnects, StoreUnavailable("third")) == 10.0


@pytest.mark.parametrize("fault", [StoreMisconfigured("a login"), SchemaMismatch("too old")], ids=["login", "schema"])
def test_a_fault_that_a_person_mends_makes_no_pause(fault: Exception) -> None:
    reconnects = Reconnects(FakeClock().monotonic)
    with pytest.raises(type(fault)):
        reconnects.attempt(lambda: failing(fault))
    assert reconnects.attempt(lambda: "a connection") == "a connection"


def test_all_sessions_of_a_database_share_the_pause(driver: FakeDriver) -> None:
    clock = FakeClock()
    driver.refusals = [lost()]
    pool = pool_of(driver, reconnects=Reconnects(clock.monotonic))
    for _ in range(3):
        with pytest.raises(StoreUnreachable, match=r"^STORE_CONNECTION: "):
            pool.get()
    assert len(driver.options) == 1
    clock.advance(5)
    assert pool.get() is pool.get()


def database_of(driver: FakeDriver, level: int = 160, has_row_versions: int = 1) -> SqlServerDatabase:
    driver.server.answers["d.compatibility_level"] = [("ledger", level, has_row_versions)]
    return SqlServerDatabase(WITH_PASSWORD, access=Access(lambda: driver))


def test_a_session_waits_for_a_lock_for_less_time_than_a_statement_has(driver: FakeDriver) -> None:
    """After its deadline the outcome of a statement is unknown. After a lock that was not free, nothing was written."""
    database_of(driver).ask("read_commit_numbers")
    text, given = driver.server.executed[0]
    (milliseconds,) = re.findall(r"SET LOCK_TIMEOUT (\d+);", text)
    longest = Deadlines().statement
    assert longest is not None
    assert 0 < int(milliseconds) < longest.total_seconds() * 1_000 / 2
    assert given == [], "an option that a batch with values sets ends with the batch"


def test_a_database_without_openjson_is_named_with_the_statement_that_mends_it(driver: FakeDriver) -> None:
    database_of(driver, level=130).ask("read_commit_numbers")
    mends = r"^the database ledger .* 120, .*ALTER DATABASE \[ledger\] SET COMPAT"
    with pytest.raises(StoreMisconfigured, match=mends):
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


GIVING_WAY = re.compile(r"purge .*|erasure piece.*|run slices.*|run result|replay (?!open|close).*|rehearsal .*")


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
