"""A database that notes its calls."""

from typing import Any

from core.errors import StoreUnavailable
from core.store.database import Database
from core.store.script import Named, Outcome, Script


class NotedDatabase:
    """Any Database: `calls` names each call by its first statement, and those that are `out` get no answer."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.calls: list[str] = []
        self.out: set[str] = set()

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        self._note(statement)
        return self._database.ask(statement, **values)

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        self._note(script.steps[0].statement)
        return self._database.run(script, rehearse)

    def close(self) -> None:
        self._database.close()

    def _note(self, statement: Named) -> None:
        self.calls.append(str(statement))
        if statement in self.out:
            raise StoreUnavailable("the database does not answer")
