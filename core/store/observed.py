"""A database whose calls are observed: telemetry counts and times them, and sees their faults."""

from collections.abc import Callable
from time import perf_counter
from typing import Any, TypeVar

from core.store.database import Database
from core.store.script import Named, Outcome, Script

Answer = TypeVar("Answer")
NoteCall = Callable[[str, float, Exception | None], None]  # the operation, its seconds, and its fault


def observed(database: Database, note: NoteCall | None) -> Database:
    """Return a database that notes its calls; without a note, the database itself."""
    return database if note is None else ObservedDatabase(database, note)


class ObservedDatabase:
    """Notes each call to a database, also those that patience repeats. It changes no answer and no fault."""

    def __init__(self, database: Database, note: NoteCall) -> None:
        self._database, self._note = database, note

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        """Read, and note the call."""
        return self._noted("read", lambda: self._database.ask(statement, **values))

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        """Write, and note the call."""
        return self._noted("commit", lambda: self._database.run(script, rehearse))

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _noted(self, operation: str, call: Callable[[], Answer]) -> Answer:
        began = perf_counter()
        try:
            answer = call()
        except Exception as fault:
            self._note(operation, perf_counter() - began, fault)
            raise
        self._note(operation, perf_counter() - began, None)
        return answer
