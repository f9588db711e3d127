"""The database of an environment: its schema, its roles, and the identities of the app and of its jobs as users."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.errors import HubledgerError
from core.store import migrate
from core.store.queries import SQL
from core.store.sqlserver.odbc import Session, connect
from core.store.sqlserver.schema import SCHEMA, check_version
from infra.hooks.errors import HookRefused

USER = Path(__file__).with_name("database_user.sql")
APP, JOB = "hubledger_app", "hubledger_job"  # the roles of permissions.sql
Open = Callable[[str], Session]


@dataclass(frozen=True, slots=True)
class DatabaseUser:
    """An identity that signs in to the database: its name there, its client id, and its role."""

    name: str
    client_id: uuid.UUID
    role: str


def prepare(connection: str, users: Sequence[DatabaseUser], open_session: Open = connect) -> None:
    """Migrate the database with the deployer's token, then admit the users; safe to run again.

    Raise HookRefused when the database cannot be migrated or a user cannot be admitted.
    """
    if migrate.main(["--store", connection]):
        raise HookRefused(
            "the database was not migrated; the line above says why. If its firewall refuses your address:",
            "  azd env set DEPLOYER_ADDRESS <your address> && azd provision",
            "With VNET_ENABLED=true, run this from a machine inside the virtual network.",
        )
    admit(connection, users, open_session)


def admit(connection: str, users: Sequence[DatabaseUser], open_session: Open = connect) -> None:
    """Grant the roles their rights, and put each identity into its role."""
    session = _open(connection, open_session)
    failed = "the grants of permissions.sql were not made"
    try:
        session.run((SQL / "sqlserver" / "permissions.sql").read_text(encoding="utf-8"))
        for user in users:
            failed = f"the database user {user.name} was not made"
            session.run(USER.read_text(encoding="utf-8"), [user.name, user.client_id.bytes_le, user.role])
    except session.fault as error:
        raise HookRefused(f"{failed}: {error.args[-1]}") from error
    finally:
        session.close()
    for user in users:
        print(f"database user {user.name} is in the role {user.role}")


def refuse_other_schema(connection: str, open_session: Open = connect) -> None:
    """Raise HookRefused unless this code runs on the schema of the database."""
    session = _open(connection, open_session)
    try:
        check_version(session, SCHEMA)
    except HubledgerError as error:
        raise HookRefused(str(error)) from error
    finally:
        session.close()


def _open(connection: str, open_session: Open) -> Session:
    try:
        return open_session(connection)
    except HubledgerError as error:
        raise HookRefused(str(error)) from error
