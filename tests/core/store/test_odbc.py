"""connections.py: one session per thread, opened late, dropped after a fault; and who may sign in."""

import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from core.errors import SchemaMismatch, StoreMisconfigured, StoreUnavailable
from core.store.sqlserver.connections import Access, Connections, Deadlines, LongText, Session, connect, token_attribute
from tests.fakes.odbc_driver import COMMIT, Error, FakeDriver, When, fault
from tests.patience import allowed

ROOT = Path(__file__).parents[3]
WITH_PASSWORD = "DRIVER={ODBC Driver 18 for SQL Server};SERVER=host;UID=app;PWD=secret"
BY_TOKEN = "DRIVER={ODBC Driver 18 for SQL Server};SERVER=host;DATABASE=hubledger"


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver()


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
