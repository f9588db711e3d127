"""The table of a row class: the columns of its fields, those that the store adds, and its key."""

from collections.abc import Iterator, Mapping
from typing import Any

from core.errors import InvalidTransform
from core.model.rows import COLUMN_TYPES, KEY_BYTES, PLACE, STATE_LINEAGE, Text, bytes_in_key, row_table, texts_of
from core.store.columns import fields_of, types_of
from hubledger.cli.ddl.types import PREFIX, Engine, listed, named, type_of

_LINEAGE: Mapping[Engine, Mapping[str, str]] = {
    "sqlite": {
        "stream_id": "INTEGER", "partition_id": "TEXT", "sequence_number": "INTEGER", "ordinal": "INTEGER",
        "commit_number": "INTEGER",
    },
    "sqlserver": {
        "stream_id": "int", "partition_id": type_of(str, "sqlserver", Text(40, ascii=True)),
        "sequence_number": "bigint", "ordinal": "smallint", "commit_number": "bigint",
    },
}  # fmt: skip


def row_table_text(row_class: type, engine: Engine) -> str:
    """Return the statement that creates the table of a row class, and for a state that of its index by place.

    Raises InvalidTransform for a state whose key SQL Server cannot hold, on both engines: a room has one form.
    """
    if faults := list(_faults_of_key(row_class)):
        raise InvalidTransform(*faults)
    table = row_table(row_class)
    lineage = STATE_LINEAGE if table.key else (*PLACE, "commit_number")
    of_store = [(name, f"{_LINEAGE[engine][name]} NOT NULL") for name in lineage]
    of_class = [(named(name), column_text(row_class, name, engine)) for name in table.columns]
    columns = [*of_class, *of_store] if table.key else [*of_store, *of_class]
    width = max(len(name) for name, _ in columns)
    lines = "".join(f"    {name:<{width}} {text},\n" for name, text in columns)
    key = f"    CONSTRAINT pk_{table.name} PRIMARY KEY {listed(table.unique_by)}\n"
    index = f"\n{place_index_text(row_class, engine)}" if table.key else ""
    return f"CREATE TABLE {PREFIX[engine]}{table.name} (\n{lines}{key}{_end(engine, is_state=bool(table.key))}\n{index}"


def place_index_name(row_class: type) -> str:
    """Return the name of the index of a table of states by place."""
    return f"ix_{row_table(row_class).name}_place"


def place_index_text(row_class: type, engine: Engine) -> str:
    """Return the statement that creates the index of a table of states by the place of the event that wrote each.

    The key of the table does not have the place, so an audit and a replay would read the whole table for a range.
    """
    held = ") INCLUDE (commit_number) WITH (ONLINE = ON)" if engine == "sqlserver" else ", commit_number)"
    on = f"{PREFIX[engine]}{row_table(row_class).name} ({', '.join(PLACE[:3])}{held}"
    return f"CREATE INDEX {place_index_name(row_class)}\n    ON {on};\n"


def column_text(row_class: type, name: str, engine: Engine) -> str:
    """Return the type of the column of a field, with NOT NULL if the field is never None."""
    hint = dict(fields_of(row_class))[name]
    written = type_of(kind_of(hint), engine, texts_of(row_class).get(name))
    return written if type(None) in types_of(hint) else f"{written} NOT NULL"


def _end(engine: Engine, *, is_state: bool) -> str:
    if engine == "sqlite":
        return ") STRICT, WITHOUT ROWID;"
    return ");" if is_state else ") WITH (DATA_COMPRESSION = PAGE);"


def kind_of(hint: Any) -> type:
    """Return the type of the values of a column, beside None."""
    return next(kind for kind in COLUMN_TYPES if kind in types_of(hint))


def _faults_of_key(row_class: type) -> Iterator[str]:
    """Yield the texts of the key that have no length; then the key if it may be too long."""
    texts, hints = texts_of(row_class), dict(fields_of(row_class))
    kinds = {name: kind_of(hints[name]) for name in row_table(row_class).key}
    endless = [name for name, kind in kinds.items() if kind is str and name not in texts]
    for name in endless:
        yield (
            f"{row_class.__name__}.{name} is in the key and has no length: write {name}: Annotated[str, Text(40)], or a"
            f" different length, because a key of SQL Server has at most {KEY_BYTES} bytes"
        )
    if endless:
        return
    size = sum(bytes_in_key(kind, texts.get(name)) for name, kind in kinds.items())
    if size > KEY_BYTES:
        yield (
            f"{row_class.__name__}: its key has up to {size} bytes, and a key of SQL Server has at most {KEY_BYTES}:"
            " shorten its texts, which take two bytes a character, or one with ascii=True"
        )
