"""Sessions with SQL Server: one for each thread, opened on first use, and dropped after a fault.

The source is "Troubleshoot transient connection errors in SQL Database", "Interval increase between retries"
(https://learn.microsoft.com/azure/azure-sql/database/troubleshoot-common-connectivity-issues): wait 5 seconds before
the first retry, because a shorter delay risks overwhelming the service. Let the delay grow exponentially, up to 60
seconds. After a fault of a command, the page says, wait and open a new connection before the command is sent again.
"""

import math
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol, TypeVar

from core.errors import StoreMisconfigured, StoreUnavailable, StoreUnreachable
from core.store.sqlserver.faults import Fault, read_trouble

FIRST_RECONNECT, LONGEST_RECONNECT = 5.0, 60.0  # seconds
Opened = TypeVar("Opened")


class Reconnects:
    """Lets a process connect only after a pause since the last failure of any of its threads.

    A failure of the login or of the schema is no reason to pause: a person mends it. `monotonic` gives seconds.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._pause = 0.0
        self._until = 0.0
        self._why = ""

    def attempt(self, connect: Callable[[], Opened]) -> Opened:
        """Return a new connection. Raises StoreUnreachable, at once during a pause."""
        with self._lock:
            left = self._until - self._monotonic()
        if left > 0:
            raise StoreUnreachable(f"{self._why}; the next attempt follows in {left:.0f} s", left)
        try:
            opened = connect()
        except StoreUnavailable as fault:
            with self._lock:
                now = self._monotonic()
                if now >= self._until:  # threads that fail together count once
                    self._pause = min(max(FIRST_RECONNECT, 2 * self._pause), LONGEST_RECONNECT)
                    self._until, self._why = now + self._pause, str(fault)
                left = self._until - now
            raise StoreUnreachable(str(fault), left) from fault
        with self._lock:
            self._pause = self._until = 0.0
        return opened


TOKEN_SCOPE = "https://database.windows.net/.default"
ACCESS_TOKEN = 1256  # SQL_COPT_SS_ACCESS_TOKEN of the Microsoft driver
LONG_TEXT, TEXT, NUMBER = (-9, 0, 0), (-9, 4_000, 0), (-5, 0, 0)  # nvarchar(max), nvarchar(4000), bigint
ONE_PIECE = 2**30  # bytes
LANGUAGE = "LANGUAGE=us_english"  # faults.py reads names in messages; a login may have a different default language
_CREDENTIALS = ("uid=", "user id=", "pwd=", "trusted_connection=", "authentication=")


class Driver(Protocol):
    """The part of the module pyodbc that the store uses."""

    Error: type[Exception]

    def connect(self, connection_string: str, /, **options: Any) -> Any:
        """Return a connection as DB-API describes it."""
        ...


class LongText(str):
    """A text of any length, such as JSON. Every other text has at most 4,000 characters."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The longest times of a sign-in and a statement. Both stay well inside the time of an invocation.

    Only a migration has statements without a deadline (None): it runs outside of every invocation.
    """

    sign_in: timedelta = timedelta(seconds=15)
    statement: timedelta | None = timedelta(seconds=30)


class Session:
    """One connection in autocommit mode: every batch opens and ends its own transaction.

    A session keeps one cursor, because closing a cursor costs a round trip, which tells the server to forget the batch.
    """

    def __init__(self, connection: Any, driver: Driver) -> None:
        self._connection = connection
        self._cursor: Any = None
        self.fault = driver.Error

    def run(self, text: str, given: Sequence[object] = ()) -> list[list[tuple[Any, ...]]]:
        """Run a batch to its end and return its results: an error after the first result shows only at nextset().

        Raises the driver's Error. A cursor that is read to its end, or closed after a fault, does not keep the
        connection busy.
        """
        if self._cursor is None:
            self._cursor = self._connection.cursor()
        try:
            self._cursor.setinputsizes([_size(value) for value in given])
            self._cursor.execute(text, list(given))
            results = self._fetched()
            while self._cursor.nextset():
                results += self._fetched()
        except BaseException:
            cursor, self._cursor = self._cursor, None
            with suppress(self.fault):
                cursor.close()
            raise
        return results

    def _fetched(self) -> list[list[tuple[Any, ...]]]:
        return [[tuple(row) for row in self._cursor.fetchall()]] if self._cursor.description else []

    def close(self) -> None:
        """Close the connection. The fault of a connection that is lost already is ignored."""
        with suppress(self.fault):
            self._connection.close()


def _size(value: object) -> tuple[int, int, int] | None:
    """Return the type to declare for a text or a whole number. None leaves it to the driver.

    The driver alone would declare a text by its length and a number by its size, and the server compiles a plan for
    each declaration of one batch. It would also send a long text piece by piece, after an extra round trip.
    """
    if isinstance(value, str):
        return LONG_TEXT if isinstance(value, LongText) else TEXT
    return NUMBER if isinstance(value, int) else None


def load_driver() -> Driver:
    """Return pyodbc, without its pool: a connection that is closed after a fault must not come back."""
    try:
        import pyodbc
    except ImportError as error:  # its wheel does not bring the ODBC manager
        raise StoreMisconfigured(f"STORE_CONNECTION: pyodbc cannot be loaded (install unixodbc): {error}") from error
    pyodbc.pooling = False
    return pyodbc  # type: ignore[no-any-return]


_credential: list[Any] = []
_credential_lock = threading.Lock()


def database_token() -> str:
    """Return a token for Azure SQL. The package azure-identity caches it and renews it before it expires."""
    from azure.core.exceptions import AzureError, ClientAuthenticationError
    from azure.identity import DefaultAzureCredential

    with _credential_lock:
        if not _credential:
            _credential.append(DefaultAzureCredential())
    try:
        return str(_credential[0].get_token(TOKEN_SCOPE).token)
    except ClientAuthenticationError as error:
        raise StoreMisconfigured(
            f"STORE_CONNECTION has no credentials, and Entra gives no token: {_first_line(error)}"
        ) from error
    except AzureError as error:
        raise StoreUnavailable(
            f"STORE_CONNECTION: no answer to the request for a token: {_first_line(error)}"
        ) from error


@dataclass(frozen=True, slots=True)
class Access:
    """The driver and the token of a connection. Neither is loaded before it is needed."""

    driver: Callable[[], Driver] = load_driver
    token: Callable[[], str] = database_token


class Connections:
    """Holds one session per thread. `check` may refuse a new session."""

    def __init__(
        self,
        open_session: Callable[[], Session],
        check: Callable[[Session], None],
        reconnects: Reconnects | None = None,
    ) -> None:
        self._open_session = open_session
        self._reconnects = reconnects or Reconnects()
        self._check = check
        self._local = threading.local()
        self._open: list[Session] = []
        self._lock = threading.Lock()

    def get(self) -> Session:
        """Return this thread's session. Raises StoreMisconfigured, SchemaMismatch or StoreUnavailable, in one line."""
        session: Session | None = getattr(self._local, "session", None)
        if session is None:
            session = self._reconnects.attempt(self._open_session)
            try:
                self._check(session)
            except BaseException:
                session.close()
                raise
            self._local.session = session
            with self._lock:
                self._open.append(session)
        return session

    def drop(self) -> None:
        """Close this thread's session after a fault. The next call opens and checks a new session."""
        session: Session | None = getattr(self._local, "session", None)
        if session is not None:
            self._local.session = None
            with self._lock:
                if session in self._open:  # not when `close` has closed all sessions
                    self._open.remove(session)
            session.close()

    def close(self) -> None:
        """Close the sessions of all threads."""
        with self._lock:
            sessions, self._open = self._open, []
            self._local = threading.local()
        for session in sessions:
            session.close()


def connect(connection_string: str, deadlines: Deadlines | None = None, access: Access | None = None) -> Session:
    """Open a session. It signs in by Entra token when the string has no credentials."""
    deadlines, access = deadlines or Deadlines(), access or Access()
    driver = access.driver()
    options: dict[str, Any] = {"autocommit": True, "timeout": _whole_seconds(deadlines.sign_in)}
    if not any(word in connection_string.lower().replace(" =", "=") for word in _CREDENTIALS):
        options["attrs_before"] = {ACCESS_TOKEN: token_attribute(access.token())}
    try:
        connection = driver.connect(f"{LANGUAGE};{connection_string}", **options)  # the first of two keywords counts
    except driver.Error as error:
        fault, text = read_trouble(error).fault, _first_line(error)
        if fault is Fault.DRIVER:
            why = f"STORE_CONNECTION: the ODBC driver that it names is not installed: {text}"
            raise StoreMisconfigured(why) from error
        if fault is Fault.LOGIN:
            why = f"STORE_CONNECTION: the server refuses the login or the database: {text}"
            raise StoreMisconfigured(why) from error
        raise StoreUnavailable(f"STORE_CONNECTION: the database cannot be reached: {text}") from error
    connection.timeout = 0 if deadlines.statement is None else _whole_seconds(deadlines.statement)
    connection.maxwrite = ONE_PIECE
    return Session(connection, driver)


def token_attribute(token: str) -> bytes:
    """Return a token in the form that the driver takes: its length in bytes, then UTF-16LE."""
    encoded = token.encode("utf-16-le")
    return struct.pack("<I", len(encoded)) + encoded


def _whole_seconds(deadline: timedelta) -> int:
    """Return a deadline in the form that the driver takes, at least 1, because 0 means no deadline."""
    return max(1, math.ceil(deadline.total_seconds()))


def _first_line(error: BaseException) -> str:
    return (str(error.args[-1] if error.args else error).splitlines() or [""])[0]
