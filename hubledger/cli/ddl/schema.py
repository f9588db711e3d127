"""The schema that migrations make: tables with columns and keys, and indexes. Names are in lower case."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core.transforms.rooms import MIGRATIONS
from hubledger.cli.ddl.types import Engine


@dataclass(frozen=True, slots=True)
class StandingColumn:
    """A column of a table. `fills_itself`: it is computed or has a default, so that no row has to name it."""

    type: str
    is_required: bool
    collation: str = ""
    fills_itself: bool = False


@dataclass(frozen=True, slots=True)
class SchemaTable:
    """A table with its columns by name, and the names of its key.

    On SQLite, `text` and `indexes` are the statements that made it. Without a text it cannot be copied.
    """

    columns: Mapping[str, StandingColumn]
    key: tuple[str, ...]
    text: str = ""
    indexes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables by name, the names of indexes, and the statements that were not understood, each with its place.

    `unclear` has every word of the statements that were not understood: a table with such a name is not compared.
    """

    tables: Mapping[str, SchemaTable]
    indexes: frozenset[str]
    unread: tuple[str, ...] = ()
    unclear: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SchemaScript:
    """The text of a migration, and the file that a person knows it by."""

    place: str
    text: str


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text, in lower case."""
    return frozenset(re.findall(r"\w+", text.lower()))


def scripts_of(room_folder: Path, engine: Engine) -> tuple[SchemaScript, ...]:
    """Return the migrations of a room in their order; none for a room that has none yet."""
    paths = sorted((room_folder / MIGRATIONS / engine).glob("*.sql"))
    return tuple(SchemaScript(f"{engine}/{path.name}", path.read_text(encoding="utf-8-sig")) for path in paths)
