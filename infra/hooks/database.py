"""The database of an environment: its schema, its roles, and the identities of the app and of its jobs as users."""

import uuid
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from core.errors import HubledgerError, StoreUnavailable
from core.store.queries import SQL
from core.store.sqlserver.connections import Access, Session, connect
from core.store.sqlserver.schema import SCHEMA, MigrationRun, check_version, migrate_server
from core.transforms.loading import Room
from infra.hooks.errors import HookRefused
from infra.hooks.patience import Clock, NotYet, patiently
from infra.hooks.room import rights_of

USER = Path(__file__).with_name("database_user.sql")
APP, JOB = "hubledger_app", "hubledger_job"  # the roles of permissions.sql
NOT_KNOWN = "not currently configured to accept this token"  # of error 18456, while a server has no administrator yet
ADMINISTRATOR = "sign in as the administrator of the server or a member of its group (docs/deploy.md)"
Answer = TypeVar("Answer")

# By a part of the driver's text, the first that fits: the time in which the refusal may pass, and the action if not.
PASSING = {
    "(40615)": (
        timedelta(minutes=5),
        "`azd env set DEPLOYER_ADDRESS ''` has your address found; your own server admits nobody by itself",
    ),
    "(40613)": (timedelta(minutes=5), "look at the database in the portal: a paused one takes a minute to resume"),
    NOT_KNOWN: (timedelta(minutes=2), ADMINISTRATOR),
}


@dataclass(frozen=True, slots=True)
class DatabaseUser:
    """An identity that signs in to the database: its name there, its client id, and its role."""

    name: str
    client_id: uuid.UUID
    role: str


@dataclass(frozen=True, slots=True)
class ServerDatabase:
    """The database of an environment: its connection string, the sign-in of the hooks, and the clock of their patience.

    Each method raises HookRefused when the server refuses. It waits where a refusal passes by itself, and is safe to
    run again.
    """

    connection: str
    access: Access
    clock: Clock
    rooms: tuple[Room, ...] = ()

    def migrate(self) -> None:
        """Bring the schema up to this code."""
        run = MigrationRun(_tell)
        self._patiently(lambda: migrate_server(self.connection, access=self.access, run=run, rooms=self.rooms))
        _tell("the schema of the database is up to date")

    def admit(self, users: Sequence[DatabaseUser]) -> None:
        """Grant the roles their rights, and put each identity into its role."""
        self._patiently(lambda: self._admit(users))
        for user in users:
            _tell(f"database user {user.name} is in the role {user.role}")

    def refuse_other_schema(self) -> None:
        """Refuse unless this code runs on the schema of the database."""
        self._patiently(self._check_schema)

    def _admit(self, users: Sequence[DatabaseUser]) -> None:
        with self._session() as session:
            failed = "the grants of permissions.sql were not made"
            try:
                session.run((SQL / "sqlserver" / "permissions.sql").read_text(encoding="utf-8"))
                for room in self.rooms:
                    failed = f"the grants of {room.name}/permissions.sql were not made"
                    for batch in rights_of(room):
                        session.run(batch)
                for user in users:
                    failed = f"the database user {user.name} was not made"
                    session.run(USER.read_text(encoding="utf-8"), [user.name, user.client_id.bytes_le, user.role])
            except session.fault as error:
                raise HookRefused(f"{failed}: {error.args[-1]}") from error

    def _check_schema(self) -> None:
        with self._session() as session:
            check_version(session, SCHEMA, self.rooms)

    def _session(self) -> "closing[Session]":
        return closing(connect(self.connection, access=self.access))

    def _patiently(self, step: Callable[[], Answer]) -> Answer:
        def attempt() -> Answer:
            try:
                return step()
            except HubledgerError as error:
                raise _refusal(error) from error

        return patiently(attempt, self.clock)


def _refusal(error: HubledgerError) -> HookRefused:
    """Return the refusal that a fault of the database means.

    Error 18456 is that of a wrong account, which no wait ends. Only its wording for a server without an administrator
    is waited for, and not for long, because a wrong tenant has it too.
    """
    text = f"{error} {error.__cause__ or ''}"
    for part, (patience, remedy) in PASSING.items():
        if part in text:
            return NotYet(str(error), patience, remedy)
    if "(18456)" in text:
        return HookRefused(f"{error}: {ADMINISTRATOR}")
    if isinstance(error, StoreUnavailable):
        return HookRefused(f"{error}; with VNET_ENABLED=true only machines in the virtual network reach the database")
    return HookRefused(str(error))


def _tell(line: str) -> None:
    print(line, flush=True)
