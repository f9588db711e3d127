"""The production database, SQL Server or Azure SQL: a whole transaction is one T-SQL batch and one round trip."""

import logging
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from core.errors import (
    CommitOutcomeUnknown,
    DataRefused,
    SchemaMismatch,
    StoreMisconfigured,
    StoreUnavailable,
    StoreUnreachable,
)
from core.store.migrations import check_columns
from core.store.script import Named, OfRows, Outcome, Script
from core.store.sqlserver.batch import UNMET, Batch, ask_batch, run_batch
from core.store.sqlserver.connections import FIRST_RECONNECT, Access, Connections, Deadlines, Session, connect
from core.store.sqlserver.faults import Fault, Trouble, read_trouble
from core.store.sqlserver.schema import SCHEMA, ask_in, check_version, in_schema, misfit, open_session
from core.transforms.loading import rooms_of

log = logging.getLogger("hubledger.store")

STAYS = (Fault.DATA, Fault.DUPLICATE, Fault.THROWN, Fault.CROSSED)  # after these faults, the connection is good

WAITING_READERS = (
    "READ_COMMITTED_SNAPSHOT is off in this database, so readers wait for writers, and aggregation jobs refuse to run;"
    " run ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON"
)

Results = list[list[tuple[Any, ...]]]


class _StateTaken(Exception):
    """The server refused the key of a state: another transaction wrote it first, or two keys are one to the server."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.text)
        self.key = trouble.taken


class SqlServerDatabase:
    """A Database on a server. Only tests use a `schema` other than `hubledger`: they create their own and drop it.

    It does not open unless the rows of the `needed` classes have their tables, and their rooms their migrations.
    """

    def __init__(
        self,
        connection_string: str,
        deadlines: Deadlines | None = None,
        schema: str = SCHEMA,
        access: Access | None = None,
        needed: tuple[type, ...] = (),
    ) -> None:
        self._schema, self._needed = schema, needed
        self._driver = (access or Access()).driver
        self._connections = Connections(lambda: connect(connection_string, deadlines, access), self._check)
        self._looked_at_columns = False
        self._crossings = count(1)

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        results = self._execute(ask_batch(statement, values), _error_of_reading, str(statement))
        return results[-1] if results else []

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        """Run a script. When the key of a state is refused, run it again.

        If a different transaction wrote the state first, its state is there by then. A second refusal of one key is no
        race: then the data holds keys that the column's collation takes for one.
        """
        refused: set[str] = set()
        while True:
            try:
                results = self._execute(run_batch(script, rehearse), partial(_error_of_writing, script), script.subject)
            except _StateTaken as taken:
                if taken.key in refused:
                    why = "the database refuses a key twice, so no other transaction wrote it"
                    raise DataRefused(f"{why}: {taken}") from taken.__cause__
                refused.add(taken.key)
                continue
            names = dict.fromkeys(name for step in script.steps for name in (step.keeps, step.counts) if name)
            kept = dict(zip(names, results.pop()[0], strict=True)) if names else {}
            return Outcome(kept, results[-1] if results else [])

    def close(self) -> None:
        self._connections.close()

    def _check(self, session: Session) -> None:
        """Check the database of a new session and its schema, and once in a process the columns of the row classes."""
        has_row_versions = open_session(session)
        check_version(session, self._schema, rooms_of(self._needed))
        if not self._looked_at_columns:
            if not has_row_versions:
                log.warning(WAITING_READERS, extra={"action": "check_database"})
            read = partial(ask_in, session, self._schema, "read_row_columns")
            check_columns(lambda tables: read(tables=tables), self._needed, misfit)
            self._looked_at_columns = True

    def _execute(self, batch: Batch, error_of: Callable[[Trouble], Exception], subject: str) -> Results:
        text, given = batch
        try:
            return self._connections.get().run(in_schema(text, self._schema), given)
        except self._driver().Error as error:
            trouble = read_trouble(error)
            if trouble.fault not in STAYS:
                self._connections.drop()
            if trouble.fault is Fault.CROSSED:
                facts = {"action": "cross_locks", "sql_error": trouble.number, "subject": subject}
                log.warning("locks crossed; nothing was written", extra=facts | {"crossings": next(self._crossings)})
            raise error_of(trouble) from error
        except UnicodeEncodeError as error:
            raise DataRefused(f"the database refuses the data: {error}") from error


def _error_of_reading(trouble: Trouble) -> Exception:
    if trouble.fault in (Fault.DATA, Fault.DUPLICATE):
        return DataRefused(f"the database refuses the data: {trouble.text}")
    if trouble.fault is Fault.SCHEMA:
        return SchemaMismatch(f"{trouble.fault.value}; run `python -m core.store.migrate`: {trouble.text}")
    if trouble.fault is Fault.TRIGGER:
        return SchemaMismatch(f"{trouble.fault.value}; drop or disable the trigger: {trouble.text}")
    if trouble.fault in (Fault.LOGIN, Fault.DRIVER):
        return StoreMisconfigured(f"STORE_CONNECTION: {trouble.text}")
    text = f"the database is not usable: {trouble.text}"
    return StoreUnavailable(text) if trouble.fault in STAYS else StoreUnreachable(text, FIRST_RECONNECT)


def _error_of_writing(script: Script, trouble: Trouble) -> Exception:
    """Return the error of the step whose number the batch threw, or of the step that raced: another transaction was
    first. Other duplicates are data."""
    if trouble.fault is Fault.THROWN:
        place = (trouble.number or 0) - UNMET
        thrown = script.steps[place].otherwise if 0 <= place < len(script.steps) else None
        if thrown is not None:
            return thrown()
    raced = trouble.fault is Fault.DUPLICATE and [one for one in script.steps if trouble.names_key(one.races)]
    if raced:
        if raced[0].otherwise:
            return raced[0].otherwise()
        if isinstance(raced[0].statement, OfRows):
            return _StateTaken(trouble)
        return StoreUnavailable(f"another transaction was first: {trouble.text}")
    if trouble.fault is Fault.LOST and not script.may_repeat:
        return CommitOutcomeUnknown(f"{script.subject}: the commit was not answered: {trouble.text}")
    return _error_of_reading(trouble)
