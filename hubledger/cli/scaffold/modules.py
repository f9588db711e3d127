"""The modules of a new room, from the templates: its transform, aggregate and tests, laid out as `ruff format` does."""

import ast
import json
import re
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path
from string import Template

import msgspec

from core.model.aggregates import ADDED
from core.model.ports import parse_instant
from hubledger.cli.scaffold.design import EPOCHS, LONGEST_COLUMN, Design, Field, Kind, base_of, camel

WIDTH, PIECE, INDENT = 120, 70, 4  # characters
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BODY: dict[Kind, str] = {
    "integer": "Integer", "float": "float", "decimal": "Decimal", "boolean": "bool", "instant": "Instant",
    "date": "Day", "json": "msgspec.Raw", **dict.fromkeys(EPOCHS, "Decimal"),
}  # fmt: skip
_COLUMN = {**_BODY, "integer": "int", "instant": "datetime", "json": "str", **dict.fromkeys(EPOCHS, "datetime")}


def literal(text: str) -> str:
    """Return a text in quotes, as ruff quotes it: in double quotes unless that needs more escapes."""
    if any(not letter.isprintable() for letter in text):
        escaped = ('\\"' if letter == '"' else letter if letter == "'" else ascii(letter)[1:-1] for letter in text)
        return f'"{"".join(escaped)}"'
    single = "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return single if text.count('"') > text.count("'") else json.dumps(text, ensure_ascii=False)


def bracketed(head: str, parts: Sequence[str], *, indent: int = 0) -> str:
    """Return `head(parts)` in one line, or with its parts in a line of their own, or with each in one."""
    space, inner = " " * indent, " " * (indent + 4)
    comma = "," if not head and len(parts) == 1 else ""
    line = f"{space}{head}({', '.join(parts)}{comma})"
    if len(line) <= WIDTH and "\n" not in line:
        return line
    together = f"{inner}{', '.join(parts)}"
    if len(together) <= WIDTH and "\n" not in together and not comma:
        return f"{space}{head}(\n{together}\n{space})"
    each = "".join(f"{inner}{part},\n" for part in parts)
    return f"{space}{head}(\n{each}{space})"


def rendered(name: str, parts: Collection[str], /, **values: str) -> str:
    """Return a template of the folder `templates` with its values.

    A line `#: a !b` begins what a room with `a` and without `b` in its `parts` has.
    """
    lines, is_kept = [], True
    for line in (Path(__file__).with_name("templates") / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#:"):
            is_kept = all((word.removeprefix("!") in parts) != word.startswith("!") for word in line[2:].split())
        elif is_kept:
            lines.append(line)
    return Template("\n".join([*lines, ""])).substitute(values)


def module(name: str, parts: Collection[str], /, **values: str) -> str:
    """Return a module from a template, without the imports, constants and private functions that it does not use."""
    text = rendered(name, parts, **values)
    body, used, before = ast.parse(text).body, {"VERSION"}, set[str]()

    def is_unused(node: ast.stmt) -> bool:
        if isinstance(node, ast.FunctionDef):
            return node.name.startswith("_") and node.name not in used
        targets = node.targets if isinstance(node, ast.Assign) else []
        names = {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
        return bool(targets) and not names & used

    while used != before:
        before, kept = used, [node for node in body if not is_unused(node)]
        found = (one for node in kept for one in ast.walk(node) if isinstance(one, ast.Name))
        used = used.union(one.id for one in found if isinstance(one.ctx, ast.Load))
    lines: list[str | None] = [*text.split("\n")]
    for node in body:
        first, last = node.lineno - 1, node.end_lineno or 0
        if isinstance(node, ast.ImportFrom):
            names = [one.name for one in node.names if one.name in used]
            line = f"from {node.module} import {', '.join(names)}"
            if len(line) > WIDTH:
                line = f"from {node.module} import (\n{''.join(f'    {name},{chr(10)}' for name in names)})"
            lines[first] = line if names else None
        elif node not in kept:
            lines[first:last] = [None] * (last - first)
    left = "\n".join(line for line in lines if line is not None)
    return re.sub(r"\n{4,}", "\n\n\n", left).rstrip() + "\n"


def parts_of(design: Design) -> set[str]:
    """Return the names of the parts of the templates that a room has."""
    facts = {
        "key": bool(design.key), "strict": design.is_strict, "json": design.is_json, "base64": design.in_base64,
        "each": design.each is not None,
    }  # fmt: skip
    place = [] if design.each is None else ["field" if design.each.of_field else design.each.name]
    return {*(name for name, is_so in facts.items() if is_so), *place}


def transform_text(design: Design) -> str:
    """Return the module."""
    key = ", ".join(one.column for one in design.key[:2]) + (", ..." if design.key[2:] else "")
    columns = [f'"{one.column}"' for one in design.key]
    listed = f"({columns[0]},)" if len(columns) == 1 else bracketed("", columns, indent=4).lstrip()
    rows = [f"{design.row_class}(*columns)", *([f"{design.state_class}(*columns)"] if design.key else [])]
    values = [_value(one) for one in design.fields]
    lines = "".join(f"        {value},\n" for value in values)
    ordered = sorted(design.fields, key=lambda one: one.is_optional)  # msgspec wants those without a default first
    return module(
        "transform.py",
        parts_of(design),
        room=design.name,
        package=design.package,
        noun="element" if design.each else "event",
        and_state=f", and the last state of each {key}" if key else "",
        base=f"_{camel(base_of(design.name))}",
        table=design.table,
        row_class=design.row_class,
        state_class=design.state_class,
        state_of=bracketed("@state_of", [f'"{design.state_table}"', f"key={listed}"]),
        columns="\n".join(f"    {one.column}: {_type_of_column(one)}" for one in design.fields),
        body_of="An element of a body." if design.each else "The body of an event.",
        fields="\n".join(_field_of_body(one, one in design.key) for one in ordered),
        place=literal(design.each.name) if design.each else "",
        s="s" if design.key else "",
        given="event.body" if design.is_json else "json_of(event)",
        values=f"(\n{lines}    )" if values[1:] else f"({values[0]},)",
        rows=bracketed("", rows, indent=4).lstrip(),
    )


def _type_of_column(one: Field) -> str:
    none = " | None" if one.is_optional else ""
    if one.kind not in ("text", "ascii"):
        return f"{_COLUMN[one.kind]}{none}"
    if one.length is None:
        return f"str{none}"
    return f"Annotated[str{none}, Text({one.length}{', ascii=True' if one.kind == 'ascii' else ''})]"


def _field_of_body(one: Field, is_key: bool) -> str:
    text = "Code" if one.kind == "ascii" else "Name" if is_key else "str"
    text = f"Annotated[{text}, Meta(max_length={one.length})]" if one.length else text
    held, default = _BODY.get(one.kind, text), ""
    if one.is_optional:
        held, default = (held, "msgspec.Raw()") if one.kind == "json" else (f"{held} | None", "None")
    head = f"{one.column}: {held}"
    if one.name == one.column:
        return f"    {head}{f' = {default}' if default else ''}"
    which = "default_factory=msgspec.Raw" if one.kind == "json" else f"default={default}"
    parts = [*([which] if default else []), f"name={literal(one.name)}"]
    return bracketed(f"{head} = field", parts, indent=4)


def _value(one: Field) -> str:
    given = f"body.{one.column}"
    if one.kind == "json":
        none = f' if bytes({given}) not in (b"", b"null") else None' if one.is_optional else ""
        return f"_json({given}){none}"
    made = {"instant": f"_utc({given})", "decimal": f"_exact({given})"}.get(one.kind, given)
    made = f"_since_1970({given}, {one.kind.upper()})" if one.kind in EPOCHS else made
    return f"None if {given} is None else {made}" if one.is_optional and made != given else made


MOST_SUMS = 5
# A number that names a thing, a place in an order or a time: its sum says nothing.
_NAME = re.compile(
    r"(?:^|_)(?:"
    r"id|ids|uid|pid|key|ref|serial|number|no|nr|num|code|zip|postcode|port|phone|msisdn|imei|imsi|iccid|ean|gtin|sku"
    r"|version|revision|index|idx|seq|sequence|offset|epoch|timestamp|ts|time|at|date|day|month|year|unix"
    r")(?:_(?:number|no|ns|us|ms|s|sec|seconds|millis|micros|nanos|utc))*$"
)


def aggregate_text(design: Design, at: Field, by: Field) -> str:
    """Return the module: the number of events, their first and last time, and the sums of integers."""
    declared = [design.row_class, f'"{design.aggregate}"', f'at="{at.column}"', "window=timedelta(hours=1)"]
    whole = [one for one in design.fields if one.kind == "integer" and one not in design.keys]
    sums = [one for one in whole if not _NAME.search(one.column)][:MOST_SUMS]
    measures = [
        ("events", "int, Count()"),
        *((f"sum_of_{one.column}", f'int{" | None" if one.is_optional else ""}, Sum("{one.column}")') for one in sums),
        (f"first_{at.column}", f'datetime, Least("{at.column}")'),
        (f"last_{at.column}", f'datetime, Most("{at.column}")'),
    ]
    taken, lines = {by.column, *ADDED}, []
    for name, holds in measures:
        free = name[: LONGEST_COLUMN + 10]
        while free in taken:
            free += "_"
        taken.add(free)
        lines.append(f"    {free}: Annotated[{holds}]")
    return module(
        "aggregate.py",
        (),
        package=design.package,
        row_class=design.row_class,
        declared=bracketed("@aggregate_of", declared),
        windows=camel(design.aggregate),
        at=at.column,
        by=by.column,
        type="str" if by.length else "int",
        key=f"Key({by.length}{', ascii=True' if by.kind == 'ascii' else ''})" if by.length else "Key()",
        measures="\n".join(lines),
    )


def tests_text(design: Design) -> str:
    """Return the module. The row of the first sample is made here, without the transform."""
    rows = ["FIRST", *([f"{design.state_class}(*astuple(FIRST))"] if design.key else [])]
    unknown = "unknown"
    while any(one.name == unknown for one in design.fields):
        unknown += "_"
    longer = f"""{"ELEMENT" if design.each else "SAMPLES[0]"}.rstrip()[:-1] + b', "{unknown}": 1}}'"""
    longer, first = (f"body_of({longer})", "body_of(ELEMENT)") if design.each else (longer, "SAMPLES[0]")

    body, values = msgspec.json.decode(design.first, type=dict[str, msgspec.Raw]), []
    for one in design.fields:  # each column with its value in the sample, as the expression of Python that the row has
        raw = bytes(body.get(one.name, b"null")).decode()
        values.append(f"{one.column}={'None' if raw == 'null' and one.is_optional else _expression(one.kind, raw)}")

    def becomes(body: str, rows: Sequence[str]) -> str:
        return bracketed("assert_rows", ["transform", body, *rows], indent=4)

    return module(
        "test_transform.py",
        parts_of(design),
        room=design.name,
        package=design.package,
        row_class=design.row_class,
        state_class=design.state_class,
        samples=design.samples_file[0],
        first=bracketed(f"FIRST = {design.row_class}", values),
        first_rows=becomes(first, rows),
        rows_twice=becomes("body_of(ELEMENT, ELEMENT)", 2 * rows),
        begin=repr(design.each.begin) if design.each else "",
        unknown=unknown,
        longer=longer,
        longer_rows=becomes(longer, rows),
    )


def _expression(kind: Kind, raw: str) -> str:
    """Return the expression of a value. Raises ValueError for a value of a different kind."""
    value = raw if kind == "json" else json.loads(raw, parse_float=Decimal)
    if kind == "decimal":
        return f'Decimal("{value}")'
    if kind == "float":
        return repr(float(value)).replace("e+", "e")
    if kind == "date":
        day = msgspec.convert(value, date)
        return f"date({day.year}, {day.month}, {day.day})"
    if kind == "instant" or kind in EPOCHS:
        if kind == "instant":
            at = parse_instant(value)
        else:
            number, microsecond = Decimal(value), Decimal(EPOCHS[kind])
            at = EPOCH + timedelta(microseconds=int(number.quantize(microsecond, ROUND_FLOOR) / microsecond))
        parts = [at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond]
        while len(parts) > 5 and not parts[-1]:
            parts.pop()
        return f"datetime({', '.join(map(str, parts))}, tzinfo=UTC)"
    if not isinstance(value, str):
        return repr(value)
    if len(whole := literal(value)) <= PIECE:
        return whole
    space, half = " " * (INDENT + 4), PIECE // 2  # a long text in pieces, each in a line of its own
    lines = "".join(f"{space}{literal(value[at : at + half])}\n" for at in range(0, len(value), half))
    return f"(\n{lines}{' ' * INDENT})"
