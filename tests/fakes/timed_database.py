"""A database with the clock of a test."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from core.store.columns import instant_text
from core.store.database import Database
from core.store.script import Named, Outcome, Script


class TimedDatabase:
    """Any Database; only its time is a different one."""

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database, self._now = database, now

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        if statement == "read_time":
            return [(instant_text(self._now()),)]
        return self._database.ask(statement, **values)

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        return self._database.run(script, rehearse)

    def close(self) -> None:
        self._database.close()
