"""The connection of the store, as a setting names it."""

from collections.abc import Mapping
from pathlib import Path

from core.errors import SettingsRefused

EMBEDDED = "sqlite:"
SERVER_WORDS = ("driver=", "dsn=")  # one of them is in every ODBC connection string


def read_store_connection(environment: Mapping[str, str]) -> str:
    """Return the setting STORE_CONNECTION; SettingsRefused when it is missing or wrong."""
    value = environment.get("STORE_CONNECTION") or ""
    if not value:
        raise SettingsRefused(["STORE_CONNECTION must be set"])
    server = any(word in value.lower().replace(" ", "") for word in SERVER_WORDS)
    if not server and (not value.startswith(EMBEDDED) or value == EMBEDDED):
        raise SettingsRefused(
            [f"STORE_CONNECTION must be {EMBEDDED}PATH (the embedded store in a file) or an ODBC connection string"]
        )
    return value


def embedded_path(store_connection: str) -> Path | None:
    """Return the file of the embedded store, or None for a server."""
    path = store_connection.removeprefix(EMBEDDED)
    return None if path == store_connection else Path(path)
