"""Convert an ODBC connection string to a JDBC address, for Spark."""

import re
from dataclasses import dataclass

_PART = re.compile(r"\s*([^=;]+?)\s*=\s*(\{(?:[^}]|\}\})*\}|[^;]*)\s*(?:;|$)")
_SERVER = re.compile(r"(?:tcp:)?([^,\\]+)(?:\\[^,]*)?(?:,(\d+))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class JdbcAddress:
    """The address of a database, without secrets, and the user who signs in; None when a token is used instead."""

    url: str
    user: str | None
    password: str | None


def jdbc_address(connection_string: str) -> JdbcAddress:
    """Return the address in an ODBC connection string of SQL Server; ValueError without a server or a database."""
    parts = {name.lower(): value.strip("{}").strip() for name, value in _PART.findall(connection_string)}
    server = _SERVER.fullmatch(parts.get("server", ""))
    if server is None or not parts.get("database"):
        raise ValueError("the connection string names no Server and Database, which Spark needs")
    options = {
        "databaseName": parts["database"],
        "encrypt": "false" if parts.get("encrypt", "yes").lower() in ("no", "false", "optional") else "true",
        "trustServerCertificate": _yes(parts.get("trustservercertificate")),
    }
    url = f"jdbc:sqlserver://{server[1]}:{server[2] or 1433}"
    return JdbcAddress(
        ";".join([url, *(f"{name}={value}" for name, value in options.items())]), parts.get("uid"), parts.get("pwd")
    )


def _yes(value: str | None) -> str:
    return "true" if (value or "no").lower() in ("yes", "true") else "false"
