"""The text of transform.py: the body of an event, its row classes, and the function between them."""

from collections.abc import Iterator

from hubledger.cli.scaffold.code import bracketed, literal
from hubledger.cli.scaffold.design import Design, base_of, camel
from hubledger.cli.scaffold.fields import EPOCHS, INSTANTS, Field, Kind

_BODY: dict[Kind, str] = {
    "integer": "Integer", "float": "float", "decimal": "Decimal", "boolean": "bool", "instant": "Instant",
    "date": "Day", "json": "msgspec.Raw", **dict.fromkeys(EPOCHS, "Decimal"),
}  # fmt: skip
_COLUMN: dict[Kind, str] = {
    "integer": "int", "float": "float", "decimal": "Decimal", "boolean": "bool", "instant": "datetime",
    "date": "Day", "json": "str", **dict.fromkeys(EPOCHS, "datetime"),
}  # fmt: skip
_INSTANTS = """\


def _utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise PoisonEvent(f"{moment.isoformat()} is not in the years 1 to 9999 of UTC") from error
"""
_EPOCHS = """\


def _since_1970(number: Decimal, microsecond: Decimal) -> datetime:
    try:
        return EPOCH + timedelta(microseconds=int(number.quantize(microsecond, ROUND_FLOOR) / microsecond))
    except (ArithmeticError, ValueError) as error:
        raise PoisonEvent(f"{number:.40} is no time between the years 1 and 9999") from error
"""
_DECIMALS = """\


def _exact(number: Decimal) -> Decimal:
    if not number.is_finite() or number.adjusted() >= 28 or number != number.quantize(SCALE, context=DIGITS):
        raise PoisonEvent(f"{number:.40} has more than 28 digits before the point, or more than 10 after it")
    return number
"""
_TEXT = """\


def _json(value: msgspec.Raw) -> str:
    try:
        return bytes(value).decode()
    except UnicodeDecodeError as error:
        raise PoisonEvent(f"the body is not UTF-8: {error}") from error
"""


def transform_text(design: Design) -> str:
    """Return the module."""
    parts = [
        f'"""Events of {design.name}: a row for each {"element" if design.each else "event"}{_and_state(design)}."""\n',
        _imports(design),
        f'VERSION = "{design.name}/1"  # change it with each change of what transform() returns\n',
        "".join(_names(design)),
        _classes(design),
        _body(design) + (design.each.class_text() if design.each else ""),
        f"_decoded = body_decoder(Body)\n{design.each.names_text() if design.each else ''}\n\n" + _transform(design),
        _decode(design),
    ]
    return "\n".join(part for part in parts if part) + _helpers(design)


def kinds_of(design: Design) -> set[Kind]:
    """Return the kinds of the fields."""
    return {one.kind for one in design.fields}


def _and_state(design: Design) -> str:
    key = ", ".join(one.column for one in design.key[:2]) + (", ..." if design.key[2:] else "")
    return f", and the last state of each {key}" if key else ""


def _imports(design: Design) -> str:
    kinds = kinds_of(design)
    has_instants, has_epochs = not kinds.isdisjoint(INSTANTS), not kinds.isdisjoint(EPOCHS)
    times = [*(["UTC"] if has_instants else []), *(["date"] if "date" in kinds else [])]
    times += [*(["datetime"] if has_instants else []), *(["timedelta"] if has_epochs else [])]
    decimals = [*(["ROUND_FLOOR"] if has_epochs else []), *(["Context"] if "decimal" in kinds else [])]
    decimals += ["Decimal"] if has_epochs or "decimal" in kinds else []
    msgspecs = [*(["Meta"] if kinds & {"text", "ascii", "integer", "instant"} else []), "Struct"]
    has_batch = design.each is not None and design.each.of_field
    msgspecs += ["field"] if has_batch or any(one.name != one.column for one in design.fields) else []
    names = ["Event", "PoisonEvent", "References", "Row"]
    names += ["Text"] if any(one.length for one in design.fields) else []
    names += ["appended_to", "body_decoder", *(design.each.names if design.each else [])]
    names += ["state_of"] if design.key else []
    return (
        "from collections.abc import Iterable\nfrom dataclasses import dataclass\n"
        + (f"from datetime import {', '.join(times)}\n" if times else "")
        + (f"from decimal import {', '.join(decimals)}\n" if decimals else "")
        + ("from typing import Annotated\n" if "Meta" in msgspecs else "")
        + f"\nimport msgspec\nfrom msgspec import {', '.join(msgspecs)}\n\n"
        + ("" if design.is_json else f"from {design.package}.wire import json_of\n")
        + f"from hubledger import {', '.join(names)}\n"
    )


def _names(design: Design) -> Iterator[str]:
    kinds = kinds_of(design)
    if "ascii" in kinds:
        yield 'Code = Annotated[str, Meta(min_length=1, pattern="^[!-~]+\\\\Z")]\n'
    if any(one.kind == "text" for one in design.key):
        yield 'Name = Annotated[str, Meta(min_length=1, pattern="[^ ]\\\\Z")]  # SQL Server ignores a last space\n'
    if "integer" in kinds:
        yield "Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]  # as a column holds it\n"
    if "date" in kinds:
        yield "Day = date\n"
    if "instant" in kinds:
        yield "Instant = Annotated[datetime, Meta(tz=True)]\n"
    if not kinds.isdisjoint(EPOCHS):
        yield "EPOCH = datetime(1970, 1, 1, tzinfo=UTC)\n"
    for kind, microsecond in EPOCHS.items():
        if kind in kinds:
            yield f'{kind.upper()} = Decimal("{microsecond}")  # a microsecond\n'
    if "decimal" in kinds:
        yield 'SCALE, DIGITS = Decimal("1e-10"), Context(prec=38)  # as a column holds it\n'


def _classes(design: Design) -> str:
    columns = "".join(f"    {one.column}: {_type_of_column(one)}\n" for one in design.fields)
    appended = f'\n@appended_to("{design.table}")\n@dataclass(frozen=True, slots=True)\nclass {design.row_class}'
    noun = "element" if design.each else "event"
    if not design.key:
        return f'{appended}:\n    """One {noun}."""\n\n{columns}'
    base = f"_{camel(base_of(design.name))}"
    return (
        f"\n@dataclass(frozen=True, slots=True)\nclass {base}:\n{columns}\n"
        f'{appended}({base}):\n    """One {noun}."""\n\n\n'
        + _state_of(design)
        + "\n@dataclass(frozen=True, slots=True)\n"
        + f'class {design.state_class}({base}):\n    """The last {noun} of its key."""\n'
    )


def _state_of(design: Design) -> str:
    columns = [f'"{one.column}"' for one in design.key]
    key = f"({columns[0]},)" if len(columns) == 1 else bracketed("", columns, indent=4).lstrip()
    return bracketed("@state_of", [f'"{design.state_table}"', f"key={key}"])


def _type_of_column(one: Field) -> str:
    none = " | None" if one.is_optional else ""
    if one.kind not in ("text", "ascii"):
        return f"{_COLUMN[one.kind]}{none}"
    if one.length is None:
        return f"str{none}"
    return f"Annotated[str{none}, Text({one.length}{', ascii=True' if one.kind == 'ascii' else ''})]"


def _body(design: Design) -> str:
    ordered = sorted(design.fields, key=lambda one: one.is_optional)  # msgspec wants those without a default first
    lines = "".join(_field_of_body(one, one in design.key) for one in ordered)
    of = "An element of a body." if design.each else "The body of an event."
    head, said = "Struct", f"{of} Other fields of it are ignored, and counted in the app's status."
    if design.is_strict:
        head, said = "Struct, forbid_unknown_fields=True", of
    return f'\nclass Body({head}):\n    """{said}"""\n\n{lines}\n'


def _field_of_body(one: Field, is_key: bool) -> str:
    held = _type_of_text(one, is_key) if one.kind in ("text", "ascii") else _BODY[one.kind]
    default = ""
    if one.is_optional:
        held, default = (held, "msgspec.Raw()") if one.kind == "json" else (f"{held} | None", "None")
    head = f"{one.column}: {held}"
    if one.name == one.column:
        return f"    {head}{f' = {default}' if default else ''}\n"
    which = "default_factory=msgspec.Raw" if one.kind == "json" else f"default={default}"
    parts = [*([which] if default else []), f"name={literal(one.name)}"]
    return bracketed(f"{head} = field", parts, indent=4) + "\n"


def _type_of_text(one: Field, is_key: bool) -> str:
    base = "Code" if one.kind == "ascii" else "Name" if is_key else "str"
    return f"Annotated[{base}, Meta(max_length={one.length})]" if one.length else base


def _transform(design: Design) -> str:
    values = [_value(one) for one in design.fields]
    listed = "".join(f"        {value},\n" for value in values)
    columns = f"(\n{listed}    )" if values[1:] else f"({values[0]},)"
    rows = [f"{design.row_class}(*columns)", *([f"{design.state_class}(*columns)"] if design.key else [])]
    returned = bracketed("", rows, indent=4).lstrip()
    given = "event.body" if design.is_json else "json_of(event)"
    if design.each is not None:
        return (
            design.each.functions_text(design.name)
            + "\n\ndef _rows(element: bytes) -> tuple[Row, ...]:\n    body = _decode(element)\n"
            + f"    columns = {columns}\n    return {returned}\n"
        )
    return (
        "def transform(event: Event, references: References) -> Iterable[Row]:\n"
        f'    """Return the row{"s" if design.key else ""} of an event. Raises PoisonEvent for a malformed body."""\n'
        f"    body = _decode({given})\n    columns = {columns}\n    return {returned}\n"
    )


def _value(one: Field) -> str:
    given = f"body.{one.column}"
    if one.kind == "json":
        none = f' if bytes({given}) not in (b"", b"null") else None' if one.is_optional else ""
        return f"_json({given}){none}"
    made = {"instant": f"_utc({given})", "decimal": f"_exact({given})"}.get(one.kind, given)
    made = f"_since_1970({given}, {one.kind.upper()})" if one.kind in EPOCHS else made
    return f"None if {given} is None else {made}" if one.is_optional and made != given else made


def _decode(design: Design) -> str:
    empty = '    if not body:\n        raise PoisonEvent("the body is empty")\n'
    return f"""
def _decode(body: bytes) -> Body:
{"" if design.each else empty}    try:
        return _decoded(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PoisonEvent(f"the body is no event of {design.name}: {{error}}") from error
"""


def _helpers(design: Design) -> str:
    kinds = kinds_of(design)
    texts = {"instant": _INSTANTS, "decimal": _DECIMALS, "json": _TEXT}
    epochs = "" if kinds.isdisjoint(EPOCHS) else _EPOCHS
    return "".join(text for kind, text in texts.items() if kind in kinds) + epochs
