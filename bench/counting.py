"""Databases for measuring: one that counts the calls to a database, and one that accepts every commit at once."""

from typing import Any

from core.store.database import Database
from core.store.script import Named, Outcome, Script


class CountingDatabase:
    """Counts the calls that reach a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.calls = 0

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        self.calls += 1
        return self._database.ask(statement, **values)

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        self.calls += 1
        return self._database.run(script, rehearse)

    def close(self) -> None:
        self._database.close()


class TakesAll:
    """A database that stores nothing, so that its caller is measured alone."""

    def __init__(self) -> None:
        self._commits = 0

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        """Return one stream, anchored at 0 and without a commit."""
        answers: dict[Named, list[tuple[Any, ...]]] = {
            "find_stream": [(1,)],
            "read_anchor": [(0, "2026-01-01T00:00:00.000000Z", None, 0)],
        }
        return answers.get(statement, [])

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        self._commits += 1
        return Outcome({"commit_number": self._commits}, [])

    def close(self) -> None:
        """Close nothing."""
