"""Connections to SQL Server: one per thread, opened on first use, dropped after a fault; by token or by string."""

import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from core.errors import SchemaMismatch, StoreMisconfigured, StoreUnavailable
from core.store.faults import Fault, classify

TOKEN_SCOPE = "https://database.windows.net/.default"
ACCESS_TOKEN = 1256  # SQL_COPT_SS_ACCESS_TOKEN of the Microsoft driver
_CREDENTIALS = ("uid=", "user id=", "pwd=", "trusted_connection=", "authentication=")


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long a sign-in and a statement may take; both stay well inside an invocation's time."""

    sign_in: timedelta = timedelta(seconds=15)
    statement: timedelta = timedelta(seconds=30)


class Connections:
    """One autocommitting connection per thread. `check` looks at each new one and may refuse it."""

    def __init__(
        self, connection_string: str, check: Callable[[Any], None], deadlines: Deadlines | None = None
    ) -> None:
        self._string = connection_string
        self._check = check
        self._deadlines = deadlines or Deadlines()
        self._local = threading.local()
        self._open: list[Any] = []
        self._lock = threading.Lock()

    def get(self) -> Any:
        """This thread's connection. Raises StoreMisconfigured, SchemaMismatch or StoreUnavailable, in one line."""
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = connect(self._string, self._deadlines)
            try:
                self._check(connection)
            except BaseException:
                connection.close()
                raise
            self._local.connection = connection
            with self._lock:
                self._open.append(connection)
        return connection

    def drop(self) -> None:
        """Close this thread's connection after a fault: the next call opens and checks a new one."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            self._local.connection = None
            with self._lock:
                self._open.remove(connection)
            _close_quietly(connection)

    def close(self) -> None:
        """Close all, of every thread."""
        with self._lock:
            connections, self._open = self._open, []
            self._local = threading.local()
        for connection in connections:
            _close_quietly(connection)


def connect(connection_string: str, deadlines: Deadlines) -> Any:
    """A new connection; by Entra token where the string has no credentials of its own."""
    pyodbc = _driver()
    options: dict[str, Any] = {"autocommit": True, "timeout": round(deadlines.sign_in.total_seconds())}
    if not any(word in connection_string.lower().replace(" =", "=") for word in _CREDENTIALS):
        options["attrs_before"] = {ACCESS_TOKEN: token_attribute(_token())}
    try:
        connection = pyodbc.connect(connection_string, **options)
    except pyodbc.Error as error:
        raise _sign_in_fault(error) from error
    connection.timeout = round(deadlines.statement.total_seconds())
    return connection


def token_attribute(token: str) -> bytes:
    """A token as the driver takes it: UTF-16LE behind its length in bytes."""
    encoded = token.encode("utf-16-le")
    return struct.pack("<I", len(encoded)) + encoded


def _driver() -> Any:
    try:
        import pyodbc
    except ImportError as error:  # its wheel does not bring the ODBC manager
        raise StoreMisconfigured(
            f"STORE_CONNECTION: pyodbc cannot be loaded, is unixodbc installed? {error}"
        ) from error
    return pyodbc


_credential: list[Any] = []
_credential_lock = threading.Lock()


def _token() -> str:
    """A token for Azure SQL; azure-identity keeps it and renews it before it expires."""
    from azure.core.exceptions import ClientAuthenticationError
    from azure.identity import CredentialUnavailableError, DefaultAzureCredential

    with _credential_lock:
        if not _credential:
            _credential.append(DefaultAzureCredential())
    try:
        return str(_credential[0].get_token(TOKEN_SCOPE).token)
    except (ClientAuthenticationError, CredentialUnavailableError) as error:
        first_line = str(error).splitlines()[0]
        raise StoreMisconfigured(
            f"STORE_CONNECTION has no credentials, and no Entra token can be had: {first_line}"
        ) from error


def _sign_in_fault(error: BaseException) -> StoreMisconfigured | StoreUnavailable | SchemaMismatch:
    fault, text = classify(error), str(error.args[-1] if error.args else error)
    if fault is Fault.DRIVER:
        return StoreMisconfigured(f"STORE_CONNECTION: the ODBC driver that it names is not installed: {text}")
    if fault is Fault.LOGIN:
        return StoreMisconfigured(f"STORE_CONNECTION: the server refuses the login or the database: {text}")
    return StoreUnavailable(f"the database cannot be reached: {text}")


def _close_quietly(connection: Any) -> None:
    pyodbc = _driver()
    try:
        connection.close()
    except pyodbc.Error:
        return
