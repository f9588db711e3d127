"""The tables that our T-SQL uses, and how: for the locks of a transaction and the rights of a role.

This reads the form in which all statements of `sql/` are written, and no other T-SQL.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_REMARKS_AND_TEXTS = re.compile(r"--[^\n]*|'(?:[^']|'')*'")
_TABLE = re.compile(r"\bhubledger\.(?P<table>\w+)(?: AS (?P<alias>\w+))?")
_INSERTED = re.compile(r"\bINTO hubledger\.(\w+)")
_CHANGED = re.compile(r"\b(?P<verb>UPDATE|DELETE)(?: TOP \(@\w+\))?(?: FROM)? (?:hubledger\.)?(?P<target>\w+)")


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """The use of a table: SELECT, INSERT, UPDATE or DELETE, which is also the right that the use needs."""

    table: str
    verb: str


def uses_of(text: str) -> tuple[Use, ...]:
    """Return the uses of tables in the order in which the statements of a text come, each once.

    A statement that changes existing rows reads them too: SQL Server asks for SELECT wherever it has a condition.
    """
    statements = _REMARKS_AND_TEXTS.sub("''", text).split(";")
    return tuple(dict.fromkeys(use for statement in statements for use in _uses(statement)))


def _uses(statement: str) -> Iterator[Use]:
    inserted, changed = _INSERTED.search(statement), _CHANGED.search(statement)
    if inserted:
        yield Use(inserted[1], "INSERT")
        statement = statement[: inserted.start()] + statement[inserted.end() :]
    named = list(_TABLE.finditer(statement))
    if changed:
        tables = {found["alias"] or found["table"]: found["table"] for found in named}
        yield Use(tables[changed["target"]], changed["verb"])
    yield from (Use(found["table"], "SELECT") for found in named)
