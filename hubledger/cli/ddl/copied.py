"""A table of SQLite with wider columns: SQLite changes no column, so a new table takes the rows and the name."""

import re
from collections.abc import Mapping

from hubledger.cli.ddl.schema import SchemaTable, StandingColumn
from hubledger.cli.ddl.types import listed, named

_BEGINS = r"[(,]\s*(?:--.*\n\s*)*"  # a column in a CREATE TABLE, after the comments of the one before
_COMPUTED = re.compile(r"\bAS\s*\(", re.IGNORECASE)


def copied_text(name: str, standing: SchemaTable, wider: Mapping[str, StandingColumn]) -> str | None:
    """Return the statements that copy a table, or None where a copy could lose a part of it."""
    made, found = re.subn(rf"^(CREATE TABLE\s+){_either(name)}(?=\s*\()", rf"\g<1>{name}_wider", standing.text)
    for column, new in wider.items():
        definition = f"{new.type}{' NOT NULL' if new.is_required else ''}"
        written = rf"({_BEGINS}{_either(column)}\s+)\w+(?:\s+NOT\s+NULL)?(?=\s*[,)])"
        made, count = re.subn(written, rf"\g<1>{definition}", made, flags=re.IGNORECASE)
        found = min(found, count) if count < 2 else 0
    if not found or _COMPUTED.search(made):
        return None
    columns = listed(tuple(standing.columns))
    chosen = ", ".join(map(named, standing.columns))
    return "\n".join(
        [
            f"{made};\n",
            f"INSERT INTO {name}_wider {columns}\nSELECT {chosen}\n  FROM {name};\n",
            f"DROP TABLE {name};\n",
            f"ALTER TABLE {name}_wider RENAME TO {name};",
            *(f"\n{index};" for index in standing.indexes),
        ]
    )


def _either(name: str) -> str:
    """Return the pattern of a name, which may be in brackets or in quotes."""
    return rf'[\["]?{re.escape(name)}[\]"]?'
