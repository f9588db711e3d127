"""bench/sqlserver.py: the schema of a measurement goes when it ends."""

from collections.abc import Sequence
from typing import Any

from bench.sqlserver import drop_schema
from core.store.sqlserver.connections import Session
from tests.fakes.odbc_driver import FakeDriver


class Standing:
    """A connection and its cursor to a schema with two tables, of which one refers to the other."""

    def __init__(self) -> None:
        self.tables, self.keys, self.schemas = ["a", "b"], [("b", "fk_b_a")], ["s"]
        self._rows: list[tuple[str, ...]] = []
        self.closed = False

    def cursor(self) -> "Standing":
        return self

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        assert sizes == []

    def execute(self, text: str, given: Sequence[Any]) -> None:
        self._rows = list(self.keys) if "sys.foreign_keys" in text else [(one,) for one in self.tables]
        words = text.rstrip(";").split()
        if words[:2] == ["DROP", "TABLE"]:
            assert not self.keys, "a table that others refer to stays"
            self.tables.remove(words[2].removeprefix("s."))
        elif words[:2] == ["ALTER", "TABLE"]:
            self.keys.remove((words[2].removeprefix("s."), words[-1]))
        elif words[:2] == ["DROP", "SCHEMA"]:
            assert not self.tables, "a schema with tables stays"
            self.schemas.remove(words[2])

    @property
    def description(self) -> list[str]:
        return ["a column"]

    def fetchall(self) -> list[tuple[str, ...]]:
        return self._rows

    def nextset(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


def test_the_tables_that_stand_are_dropped_and_no_others() -> None:
    """Migrations have dropped some tables since, and others belong to rooms."""
    standing = Standing()
    drop_schema(Session(standing, FakeDriver()), "s")
    assert (standing.tables, standing.keys, standing.schemas, standing.closed) == ([], [], [], True)
