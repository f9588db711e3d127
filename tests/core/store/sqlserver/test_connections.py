"""core/store/sqlserver/connections.py: one session a thread, opened late and dropped after a fault."""

import logging
import os
import re
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from core.aggregation.store import Aggregations
from core.errors import SchemaMismatch, StoreMisconfigured, StoreUnavailable, StoreUnreachable
from core.store.sqlserver.connections import (
    Access,
    Connections,
    Deadlines,
    LongText,
    Reconnects,
    Session,
    connect,
    token_attribute,
)
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


def connections(driver: FakeDriver) -> Connections:
    return Connections(lambda: connect(WITH_PASSWORD, access=Access(lambda: driver)), lambda session: None)


def in_another_thread(call: Callable[[], Session]) -> Session:
    kept: list[Session] = []
    thread = threading.Thread(target=lambda: kept.append(call()))
    thread.start()
    thread.join()
    return kept[0]


def test_nothing_connects_before_it_is_used(driver: FakeDriver) -> None:
    connections(driver)
    assert driver.connections == []


def test_a_thread_keeps_its_session_and_another_has_its_own(driver: FakeDriver) -> None:
    pool = connections(driver)
    mine = pool.get()
    assert pool.get() is mine
    assert in_another_thread(pool.get) is not mine
    assert len(driver.connections) == 2


def test_a_dropped_session_is_closed_and_the_next_use_opens_another(driver: FakeDriver) -> None:
    pool = connections(driver)
    first = pool.get()
    pool.drop()
    pool.drop()
    assert driver.open == []
    assert pool.get() is not first


def test_dropping_leaves_the_sessions_of_other_threads(driver: FakeDriver) -> None:
    pool = connections(driver)
    in_another_thread(pool.get)
    pool.get()
    pool.drop()
    assert len(driver.open) == 1


def test_close_closes_the_sessions_of_all_threads_and_may_be_repeated(driver: FakeDriver) -> None:
    pool = connections(driver)
    pool.get()
    in_another_thread(pool.get)
    pool.close()
    pool.close()
    assert driver.open == []
    pool.get()
    assert len(driver.open) == 1


def test_a_connection_that_is_lost_already_is_closed_without_complaint(driver: FakeDriver) -> None:
    pool = connections(driver)
    pool.get()
    driver.connections[0].lost = True
    pool.close()
    assert driver.open == []


def test_a_session_that_the_check_refuses_is_closed(driver: FakeDriver) -> None:
    def refuse(session: Session) -> None:
        raise SchemaMismatch("too old")

    pool = Connections(lambda: connect(WITH_PASSWORD, access=Access(lambda: driver)), refuse)
    for _ in range(2):
        with pytest.raises(SchemaMismatch):
            pool.get()
    assert len(driver.connections) == 2
    assert driver.open == []


def test_an_error_after_the_first_result_surfaces_and_leaves_no_cursor_open(driver: FakeDriver) -> None:
    session = connect(WITH_PASSWORD, access=Access(lambda: driver))
    driver.server.faults.append((When.LATE, fault("23000", 515)))
    with pytest.raises(Error, match="515"):
        session.run(COMMIT)
    assert [cursor.closed for cursor in driver.connections[0].cursors] == [True]
    assert session.run("SET NOCOUNT ON;") == []


def test_a_session_keeps_one_cursor_and_takes_a_new_one_after_a_fault(driver: FakeDriver) -> None:
    session = connect(WITH_PASSWORD, access=Access(lambda: driver))
    for _ in range(3):
        session.run("DECLARE @a int = ?;", [1])
    driver.server.faults.append((When.AT_ONCE, fault("23000", 515)))
    with pytest.raises(Error, match="515"):
        session.run(COMMIT)
    for _ in range(3):
        session.run("SET NOCOUNT ON;")
    assert [cursor.closed for cursor in driver.connections[0].cursors] == [True, False]


def test_a_value_is_declared_by_its_kind_whatever_its_size_and_a_text_of_any_length_is_sent_within_its_batch(
    driver: FakeDriver,
) -> None:
    session = connect(WITH_PASSWORD, access=Access(lambda: driver))
    for given in (["", LongText(""), 7], ["x" * 4_000, LongText("👩" * 2_001), 2**62]):
        session.run("DECLARE @a nvarchar(4000) = ?, @b nvarchar(max) = ?, @c bigint = ?;", given)
        assert driver.connections[0].cursors[0].sizes == [(-9, 4_000, 0), (-9, 0, 0), (-5, 0, 0)]
    with pytest.raises(AssertionError, match="by its size"):
        session.run("DECLARE @a float = ?;", [0.5])  # no whole number: the driver declares it
    assert driver.connections[0].maxwrite > 2 * 1024 * 1024


@pytest.mark.parametrize(
    ("given", "sent"), [(0.2, 1), (1, 1), (1.2, 2), (15, 15)], ids=["below 1", "whole", "above 1", "the usual"]
)
def test_deadlines_are_whole_seconds_and_never_for_ever(driver: FakeDriver, given: float, sent: int) -> None:
    deadline = timedelta(seconds=given)
    connect(WITH_PASSWORD, Deadlines(deadline, deadline), Access(lambda: driver))
    assert driver.options[0]["timeout"] == driver.connections[0].timeout == sent


def test_a_token_is_its_length_in_bytes_and_then_utf_16() -> None:
    assert token_attribute("aé") == struct.pack("<I", 4) + b"a\x00\xe9\x00"


def test_a_string_without_credentials_signs_in_by_token(driver: FakeDriver) -> None:
    connect(BY_TOKEN, access=Access(lambda: driver, lambda: "abc"))
    assert driver.options[0]["attrs_before"] == {1256: b"\x06\x00\x00\x00a\x00b\x00c\x00"}
    assert driver.options[0]["autocommit"] is True


@pytest.mark.parametrize(
    "credentials", ["UID=a;PWD=b", "uid = a", "Trusted_Connection=yes", "Authentication=ActiveDirectoryMsi"]
)
def test_a_string_with_credentials_needs_no_token(driver: FakeDriver, credentials: str) -> None:
    connect(f"{BY_TOKEN};{credentials}", access=Access(lambda: driver, lambda: pytest.fail("a token was asked for")))
    assert "attrs_before" not in driver.options[0]


def test_messages_are_in_english_because_races_are_read_from_them(driver: FakeDriver) -> None:
    connect("SERVER=host;UID=a;PWD=b;LANGUAGE=French", access=Access(lambda: driver))
    assert driver.options[0]["string"] == "LANGUAGE=us_english;SERVER=host;UID=a;PWD=b;LANGUAGE=French"


def test_a_token_that_cannot_be_had_opens_no_connection(driver: FakeDriver) -> None:
    def refuse() -> str:
        raise StoreMisconfigured("STORE_CONNECTION has no credentials")

    with pytest.raises(StoreMisconfigured):
        connect(BY_TOKEN, access=Access(lambda: driver, refuse))
    assert driver.options == []


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


class TestRealDriver:
    """pyodbc itself, as far as it goes without a server."""

    @pytest.fixture
    def access(self, odbc_manager: None) -> Access:
        return Access()

    @pytest.fixture
    def silent_port(self) -> Iterator[int]:
        """A server that accepts and says nothing."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            yield server.getsockname()[1]

    def test_a_driver_that_is_not_installed(self, access: Access) -> None:
        with pytest.raises(StoreMisconfigured, match=r"^STORE_CONNECTION: the ODBC driver .* is not installed: "):
            connect("DRIVER={No Such Driver 99};SERVER=127.0.0.1,1;UID=a;PWD=b", access=access)

    def test_a_data_source_that_does_not_exist(self, access: Access) -> None:
        with pytest.raises(StoreMisconfigured, match=r"^STORE_CONNECTION: .*IM002"):
            connect("DSN=no_such_source;UID=a;PWD=b", access=access)

    def test_its_pool_is_off_so_that_a_closed_connection_is_gone(self, access: Access) -> None:
        assert access.driver().pooling is False  # type: ignore[attr-defined]

    @pytest.mark.slow
    def test_a_server_that_does_not_answer_is_unavailable_in_time(
        self, access: Access, silent_port: int, driver_name: str
    ) -> None:
        text = f"DRIVER={{{driver_name}}};SERVER=127.0.0.1,{silent_port};UID=a;PWD=b"
        with pytest.raises(StoreUnavailable, match=r"^STORE_CONNECTION: .*Login timeout expired"):
            connect(text, Deadlines(sign_in=timedelta(seconds=1)), access)


def fault_of_a_process(environment: dict[str, str]) -> str:
    """Return the output of a separate process that signs in with this environment."""
    program = f"from core.store.sqlserver.connections import connect\nconnect({BY_TOKEN!r})"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=allowed(60),
    )
    return done.stderr.splitlines()[-1]


def test_a_pyodbc_that_does_not_load_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "pyodbc.py").write_text("raise ImportError('libodbc.so.2: cannot open shared object file')")
    assert fault_of_a_process({"PYTHONPATH": str(tmp_path)}) == (
        "core.errors.StoreMisconfigured: STORE_CONNECTION: pyodbc cannot be loaded (install unixodbc):"
        " libodbc.so.2: cannot open shared object file"
    )


@pytest.mark.slow
def test_a_token_that_nobody_gives_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "pyodbc.py").write_text("")  # the token comes first: nothing of the driver is used
    given = {"PYTHONPATH": str(tmp_path), "AZURE_TOKEN_CREDENTIALS": "EnvironmentCredential"}
    assert fault_of_a_process(given).startswith(
        "core.errors.StoreMisconfigured: STORE_CONNECTION has no credentials, and Entra gives no token: "
    )


CONNECTION = "SERVER=host;UID=app;PWD=secret"


class Attempts:
    """The attempts of a process on a fake clock; each of them fails while there are faults."""

    def __init__(self, *faults: Exception) -> None:
        self.clock = FakeClock()
        self.reconnects = Reconnects(self.clock.monotonic)
        self.faults = list(faults)
        self.attempts = 0

    def connect(self) -> str:
        return self.reconnects.attempt(self._open)

    def pause(self) -> float:
        """Return the pause after an attempt that fails."""
        with pytest.raises(StoreUnreachable) as caught:
            self.connect()
        return caught.value.pause

    def _open(self) -> str:
        self.attempts += 1
        if self.faults:
            raise self.faults.pop(0)
        return "a connection"


def test_pauses_begin_with_5_seconds_and_double_up_to_60() -> None:
    attempts = Attempts(*[StoreUnavailable("no answer")] * 7)
    pauses = []
    for _ in range(7):
        pauses.append(attempts.pause())
        attempts.clock.advance(pauses[-1])
    assert pauses == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0, 60.0]
    assert attempts.connect() == "a connection"


def test_a_connection_ends_the_row_of_failures() -> None:
    attempts = Attempts(*[StoreUnavailable("no answer")] * 2)
    for pause in (5.0, 10.0):
        assert attempts.pause() == pause
        attempts.clock.advance(pause)
    attempts.connect()
    attempts.faults = [StoreUnavailable("no answer")]
    assert attempts.pause() == 5.0


def test_during_a_pause_nobody_attempts_and_the_fault_says_why_and_how_long() -> None:
    attempts = Attempts(StoreUnavailable("the database cannot be reached"))
    attempts.pause()
    attempts.clock.advance(2)
    with pytest.raises(
        StoreUnreachable, match="the database cannot be reached; the next attempt follows in 3 s"
    ) as caught:
        attempts.connect()
    assert (caught.value.pause, attempts.attempts) == (3.0, 1)


def test_threads_that_fail_together_count_once() -> None:
    attempts = Attempts(StoreUnavailable("first"))
    attempts.faults = [StoreUnavailable("second")]

    def fail_within() -> str:
        assert attempts.pause() == 5.0  # a different thread fails while this one waits for its answer
        raise StoreUnavailable("first")

    with pytest.raises(StoreUnreachable) as caught:
        attempts.reconnects.attempt(fail_within)
    assert caught.value.pause == 5.0
    attempts.clock.advance(5)
    attempts.faults = [StoreUnavailable("third")]
    assert attempts.pause() == 10.0


@pytest.mark.parametrize("fault", [StoreMisconfigured("a login"), SchemaMismatch("too old")], ids=["login", "schema"])
def test_a_fault_that_a_person_mends_makes_no_pause(fault: Exception) -> None:
    attempts = Attempts(fault)
    with pytest.raises(type(fault)):
        attempts.connect()
    assert attempts.connect() == "a connection"


def test_all_sessions_of_a_database_share_the_pause() -> None:
    driver, clock = FakeDriver(), FakeClock()
    driver.refusals = [lost()]
    pool = Connections(
        lambda: connect(CONNECTION, access=Access(lambda: driver)), lambda session: None, Reconnects(clock.monotonic)
    )
    for _ in range(3):
        with pytest.raises(StoreUnreachable, match=r"^STORE_CONNECTION: "):
            pool.get()
    assert len(driver.options) == 1
    clock.advance(5)
    assert pool.get() is pool.get()


OPTIONS = "d.compatibility_level"


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
