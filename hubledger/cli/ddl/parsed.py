"""The tables that T-SQL scripts make, read from their text with sqlglot.

Conditions count as true. A statement that may change a table and is not understood is unread, with its file and line.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hubledger.cli.ddl.schema import Schema, SchemaScript, SchemaTable, StandingColumn, words_of
from hubledger.cli.ddl.statements import Statement, statements_of

_GO = re.compile(r"^[ \t]*GO[ \t]*\d*[ \t]*$", re.M | re.I)
_TEXT = re.compile(r"EXEC(?:UTE)?\s*(?:\(\s*|\(?(?:sys\.)?sp_executesql\s+)N?'((?:[^']|'')*)'\s*\)?", re.I)
_INDEX = re.compile(r"(?P<verb>CREATE|DROP)\b.*?\bINDEX\s+(?:IF\s+EXISTS\s+)?(?:\w+\.)*\[?(?P<name>\w+)", re.I | re.S)
_OPTIONS = re.compile(r"(?<=\bKEY)\s+(?:NON)?CLUSTERED\b|\bWITH\s+VALUES\b", re.I)  # unknown to sqlglot
_WITHOUT_COLUMNS = re.compile(
    r"CREATE\s+TABLE\s+#|ALTER\s+TABLE\s+\S+\s+(?:REBUILD|SET|ENABLE|DISABLE|(?:NO)?CHECK|(?:WITH\s+(?:NO)?CHECK\s+)?"
    r"ADD\s+CONSTRAINT\s+\S+\s+(?:DEFAULT|CHECK|FOREIGN|UNIQUE))\b",
    re.I,
)
_WITHOUT_TABLES = frozenset({
    "INSERT", "UPDATE", "DELETE", "SELECT", "DECLARE", "IF", "ELSE", "BEGIN", "END", "PRINT", "MERGE", "GRANT", "DENY",
    "REVOKE", "SET", "WITH", "THROW", "RAISERROR", "TRUNCATE", "WAITFOR", "WHILE", "COMMIT", "RETURN",
})  # fmt: skip
_RENAMED = re.compile(
    r"EXEC(?:UTE)?\s+(?:sys\.)?sp_rename\s+(?:@objname\s*=\s*)?N?'(?:\[?hubledger\]?\.)?\[?(\w+)\]?\.\[?(\w+)\]?'\s*,"
    r"\s*(?:@newname\s*=\s*)?N?'(\w+)'\s*,\s*(?:@objtype\s*=\s*)?N?'COLUMN'",
    re.I,
)
_MODULES = frozenset({"VIEW", "PROCEDURE", "PROC", "FUNCTION", "TRIGGER"})
_NO_TABLE = frozenset({"SCHEMA", "ROLE", "USER", "SEQUENCE", "SYNONYM", "STATISTICS", "TYPE", "PARTITION"})


_FILLING = {"defaultcolumnconstraint", "computedcolumnconstraint", "generatedasidentitycolumnconstraint"}


class _UnreadText(Exception):
    """A statement that is not understood."""


@dataclass(slots=True)
class _ScriptReading:
    """The tables and indexes that the statements so far have made, the names of the constraints of keys, and the
    statements that were not understood, with their words."""

    tables: dict[str, SchemaTable] = field(default_factory=dict)
    indexes: set[str] = field(default_factory=set)
    keys: dict[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    unclear: set[str] = field(default_factory=set)

    def leave(self, place: str, line: int, text: str) -> None:
        """Note a statement that is not understood."""
        self.unread.append(f"{place}:{line}: not understood, compare by hand: {' '.join(text.split())[:60]}")
        self.unclear |= words_of(text)


def read_server(scripts: Iterable[SchemaScript]) -> Schema:
    """Return what scripts make, one after the other."""
    reading = _ScriptReading()
    for script in scripts:
        for found in _GO.finditer(script.text):
            line = script.text.count("\n", 0, found.start()) + 1
            reading.unread.append(
                f"{script.place}:{line}: GO is a word of sqlcmd, and a migration is sent in one piece: remove it"
            )
        _read(reading, script.place, _GO.sub(";", script.text), 0)
    unread, unclear = tuple(reading.unread), frozenset(reading.unclear)
    return Schema(dict(reading.tables), frozenset(reading.indexes), unread, unclear)


def _read(reading: _ScriptReading, place: str, text: str, before: int) -> None:
    """Read a text that begins after so many lines of its file."""
    from sqlglot.errors import TokenError

    try:
        statements = list(statements_of(text))
    except TokenError:  # such as a quote that is never closed
        reading.leave(place, before + 1, text)
        return
    for one in statements:
        if _MODULES.intersection(one.words[1:2] if one.words[1:2] != ("OR",) else one.words[3:4]):
            return  # a module is alone in its batch: what follows is its body
        inner = _TEXT.fullmatch(one.text)
        try:
            if inner is None:
                _apply(reading, one)
            else:
                lines = before + one.line - 1 + one.text.count("\n", 0, inner.start(1))
                _read(reading, place, inner[1].replace("''", "'"), lines)
        except _UnreadText:
            reading.leave(place, before + one.line, one.text)


def _apply(reading: _ScriptReading, one: Statement) -> None:
    word, following = one.words[0], one.words[1:4]
    if word in _WITHOUT_TABLES or (following and following[0] in _NO_TABLE):
        return
    if (renamed := _RENAMED.fullmatch(one.text)) is not None:
        _rename_column(reading, *(name.lower() for name in renamed.groups()))
    elif "INDEX" in following and word != "ALTER":
        _apply_index(reading, one.text)
    elif following[:1] == ("TABLE",):
        _apply_table(reading, word, _parsed(one.text))
    elif following[:1] != ("INDEX",):
        raise _UnreadText


def _rename_column(reading: _ScriptReading, name: str, old: str, new: str) -> None:
    table = reading.tables.get(name)
    if table is None or old not in table.columns:
        raise _UnreadText
    columns = {new if column == old else column: each for column, each in table.columns.items()}
    reading.tables[name] = SchemaTable(columns, tuple(new if column == old else column for column in table.key))


def _apply_index(reading: _ScriptReading, text: str) -> None:
    if (found := _INDEX.match(text)) is None:
        raise _UnreadText
    change = reading.indexes.add if found["verb"].upper() == "CREATE" else reading.indexes.discard
    change(found["name"].lower())


def _parsed(text: str) -> Any:
    """Return the tree of a statement; None for one that changes no column."""
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    if _WITHOUT_COLUMNS.match(text):
        return None
    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns of what it leaves unread, which we report
    try:
        tree = parse_one(_OPTIONS.sub("", text), read="tsql")
    except SqlglotError as error:
        raise _UnreadText from error
    if isinstance(tree, exp.Command):
        raise _UnreadText
    return tree


def _apply_table(reading: _ScriptReading, word: str, tree: Any) -> None:
    if tree is None:
        return
    if word == "DROP":
        for table in tree.args["tables"]:
            reading.tables.pop(table.name.lower(), None)
        return
    name = tree.this.this.name if word == "CREATE" and tree.this.key == "schema" else tree.this.name
    if word == "CREATE":
        reading.tables[name.lower()] = SchemaTable({}, ())
    elif name.lower() not in reading.tables:
        return  # a table of ours, or of a different room
    for each in tree.this.expressions if word == "CREATE" else tree.args["actions"]:
        _change(reading, name.lower(), each)


def _change(reading: _ScriptReading, name: str, each: Any) -> None:
    """Apply a column or a constraint of CREATE TABLE, or an action of ALTER TABLE."""
    changes: Mapping[str, Callable[[_ScriptReading, str, Any], None]] = {
        "columndef": _add_column, "altercolumn": _alter_column, "drop": _drop, "primarykey": _set_key,
        "constraint": _constrain, "addconstraint": _each, "foreignkey": _ignore,
        "checkcolumnconstraint": _ignore, "uniquecolumnconstraint": _ignore, "schema": _each,
    }  # fmt: skip
    if each.key not in changes:
        raise _UnreadText
    changes[each.key](reading, name, each)


def _add_column(reading: _ScriptReading, name: str, each: Any) -> None:
    if each.name.upper() == "INDEX" and not each.this.args.get("quoted"):
        raise _UnreadText
    constraints = {one.kind.key: one.kind for one in each.args.get("constraints") or []}
    required = constraints.get("notnullcolumnconstraint")
    collation = constraints.get("collatecolumnconstraint")
    is_key = "primarykeycolumnconstraint" in constraints
    column = StandingColumn(
        type=each.kind.sql("tsql").lower() if each.kind is not None else "computed",
        is_required=is_key or (required is not None and not required.args.get("allow_null")),
        collation=collation.this.name if collation is not None else "",
        fills_itself=each.kind is None or bool(_FILLING & constraints.keys()),
    )
    table = reading.tables[name]
    key = (each.name.lower(),) if is_key else table.key
    reading.tables[name] = SchemaTable({**table.columns, each.name.lower(): column}, key)


def _alter_column(reading: _ScriptReading, name: str, each: Any) -> None:
    table, column = reading.tables[name], each.this.name.lower()
    if each.args.get("dtype") is None or column not in table.columns:
        raise _UnreadText
    collation = each.args.get("collate")
    changed = replace(
        table.columns[column],
        type=each.args["dtype"].sql("tsql").lower(),
        is_required=each.args.get("allow_null") is False,
        collation=collation.name if collation else table.columns[column].collation,
    )
    reading.tables[name] = replace(table, columns={**table.columns, column: changed})


def _drop(reading: _ScriptReading, name: str, each: Any) -> None:
    table, names = reading.tables[name], {one.name.lower() for one in each.args["tables"]}
    if each.args["kind"] == "CONSTRAINT":
        gone = reading.keys.get(name) in names
        reading.tables[name] = replace(table, key=()) if gone else table
    elif each.args["kind"] == "COLUMN":
        left = {column: one for column, one in table.columns.items() if column not in names}
        reading.tables[name] = replace(table, columns=left)
    else:
        raise _UnreadText


def _set_key(reading: _ScriptReading, name: str, each: Any) -> None:
    table = reading.tables[name]
    key = tuple(one.name.lower() or one.this.name.lower() for one in each.expressions)
    columns = {
        column: replace(one, is_required=one.is_required or column in key) for column, one in table.columns.items()
    }
    reading.tables[name] = SchemaTable(columns, key)


def _constrain(reading: _ScriptReading, name: str, each: Any) -> None:
    if any(one.key == "primarykey" for one in each.expressions):
        reading.keys[name] = each.name.lower()
    _each(reading, name, each)


def _each(reading: _ScriptReading, name: str, each: Any) -> None:
    for one in each.expressions:
        _change(reading, name, one)


def _ignore(reading: _ScriptReading, name: str, each: Any) -> None:
    """Change nothing: the rule of a constraint is not compared."""
