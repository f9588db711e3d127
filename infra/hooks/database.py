"""The database of a new environment: schema, the role of the app, and the app's identity as a user in that role."""

import uuid
from collections.abc import Callable
from pathlib import Path

from core.errors import HubledgerError
from core.store import migrate
from core.store.odbc import Session, connect
from core.store.queries import SQL
from core.store.server_schema import SCHEMA, check_version
from infra.hooks.errors import HookRefused

APP_USER = Path(__file__).with_name("app_user.sql")
Open = Callable[[str], Session]


def prepare(connection: str, user: str, client_id: uuid.UUID, open_session: Open = connect) -> None:
    """Migrate with the deployer's own token, then let the app in; safe to run again. HookRefused when it cannot be."""
    if migrate.main(["--store", connection]):
        raise HookRefused(
            "the database was not migrated, the line above says why. When its firewall refuses your address:",
            "  azd env set DEPLOYER_ADDRESS <your address> && azd provision",
            "With VNET_ENABLED=true run this from a machine inside the virtual network.",
        )
    admit(connection, user, client_id, open_session)


def admit(connection: str, user: str, client_id: uuid.UUID, open_session: Open = connect) -> None:
    """Give the app's role its grants, and the app's identity the role."""
    session = _open(connection, open_session)
    try:
        session.run((SQL / "sqlserver" / "permissions.sql").read_text(encoding="utf-8"))
        session.run(APP_USER.read_text(encoding="utf-8"), [user, client_id.bytes_le])
    except session.fault as error:
        raise HookRefused(f"the database user {user} was not made: {error.args[-1]}") from error
    finally:
        session.close()
    print(f"database user {user} is in the role hubledger_app")


def refuse_other_schema(connection: str, open_session: Open = connect) -> None:
    """HookRefused unless the database has exactly the schema that this code was written for."""
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
