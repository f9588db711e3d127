"""The indexes of the server's tables as the migrations leave them, and the columns by which a statement seeks."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.fakes.rooms import all_migrations
from tests.sql.statements import without_comments

ROOT = Path(__file__).parents[2]
_STEP = re.compile(
    r"CREATE TABLE hubledger\.(?P<made>\w+) \((?P<columns>.*?)\n *\)[^;]*;"
    r"|DROP TABLE IF EXISTS hubledger\.(?P<gone>\w+)"
    r"|CREATE (?:UNIQUE )?(?:CLUSTERED )?INDEX (?P<index>\w+)\s+ON hubledger\.(?P<table>\w+) \((?P<keys>[^)]*)\)"
    r"(?:\s+INCLUDE \((?P<included>[^)]*)\))?(?:\s+WHERE (?P<condition>(?:(?!\s+WITH \()[^;])*))?",
    re.S,
)
_KEY = re.compile(r"CONSTRAINT (\w+) (?:PRIMARY KEY|UNIQUE) \(([^)]*)\)")


@dataclass(frozen=True)
class Index:
    """An index or a key with its columns in order, and the condition of a filtered one."""

    name: str
    keys: tuple[str, ...]
    included: tuple[str, ...] = ()
    condition: str = ""

    @property
    def filters(self) -> set[str]:
        """The columns of its condition."""
        return set(re.findall(r"\b(\w+) (?:IN|=|<>|IS)\s", self.condition))


@cache
def indexes() -> Mapping[str, Mapping[str, Index]]:
    """Return the indexes of each table by name, its keys first."""
    found: dict[str, dict[str, Index]] = {}
    for migration in all_migrations("sqlserver"):
        text = without_comments(migration.text).replace("''", "'").replace("')", ";")
        for step in _STEP.finditer(text):
            if step["gone"]:
                found.pop(step["gone"], None)
            elif step["made"]:
                keys = _KEY.findall(step["columns"])
                found.setdefault(step["made"], {name: Index(name, _names(columns)) for name, columns in keys})
            elif step["table"]:
                one = Index(step["index"], _names(step["keys"]), _names(step["included"]), step["condition"] or "")
                found[step["table"]][step["index"]] = one
    return found


def compared(text: str, alias: str) -> tuple[set[str], set[str]]:
    """Return the columns that a statement compares bare, on the left of a comparison: for equality, and in all.

    Without an alias, the columns of a statement about one table.
    """
    column = rf"(?<![\w.@]){alias and alias + '[.]'}\[?(\w+)\]?(?: COLLATE \w+)?"
    equal = set(re.findall(rf"{column} (?:=|IS NULL)(?=\s|;)", text))
    ranged = set(re.findall(rf"{column} (?:IN|<|>|<=|>=|BETWEEN|IS NOT NULL)(?=\s|$)", text))
    return equal, equal | ranged


def sought(text: str, alias: str, index: Index) -> tuple[str, ...]:
    """Return the leading columns of an index by which a statement seeks: all but the last are compared for equality."""
    equal, every = compared(text, alias)
    keys: list[str] = []
    for name in index.keys:
        if name in every:
            keys.append(name)
        if name not in equal:
            break
    return tuple(keys)


def documented() -> Mapping[str, set[str]]:
    """Return the indexes in which each statement seeks, by the page's table."""
    page = (ROOT / "docs" / "sqlserver.md").read_text(encoding="utf-8")
    table = page.partition("\n## Statements and their indexes\n")[2].partition("\n## ")[0]
    found: dict[str, set[str]] = {}
    for indexes, statements in re.findall(r"^\| (.+) \| (`.+) \|$", table, re.M):
        for name in re.findall(r"`(\w+)`", statements):
            found.setdefault(name, set()).update(re.findall(r"`(\w+)`", indexes))
    return found


def _names(columns: str | None) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", columns or ""))
