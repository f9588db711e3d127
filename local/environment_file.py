"""The file `.env` of docker compose: made once, with a random password that only its owner may read."""

import os
import secrets
from pathlib import Path

_NAME = "MSSQL_SA_PASSWORD"
_SUFFIX = "-Aa1"  # SQL Server wants letters of both kinds and a digit or a sign


class EnvironmentRefused(Exception):
    """The file cannot be used; the message says what to do."""


def sa_password(file: Path) -> str:
    """Return the administrator's password of SQL Server; make the file with a random one when there is none.

    As in docker compose, a password in the environment comes before the one of the file. A file that others may read
    is closed to them. Raises EnvironmentRefused for a file without a password, OSError for one that cannot be used.
    """
    if not file.exists():
        _make(file)
    elif file.stat().st_mode & 0o077:
        file.chmod(0o600)
    password = os.environ.get(_NAME) or _value(file.read_text(encoding="utf-8", errors="replace"))
    if not password:
        raise EnvironmentRefused(f"{file.name} has no {_NAME}: add the line {_NAME}=... with a password of your own")
    return password


def _make(file: Path) -> None:
    text = f"ACCEPT_EULA=Y\n{_NAME}={secrets.token_urlsafe(24)}{_SUFFIX}\n"
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as made:
        made.write(text)
    licences = "accepts Microsoft's licences of SQL Server and of the Event Hubs emulator"
    print(f"func: made {file.name} with a random password; its line ACCEPT_EULA=Y {licences}", flush=True)


def _value(text: str) -> str:
    """Return the password in the text of the file, without quotes around it."""
    for line in text.splitlines():
        name, _, value = line.strip().removeprefix("export ").partition("=")
        if name.strip() == _NAME:
            value = value.strip()
            return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
    return ""
