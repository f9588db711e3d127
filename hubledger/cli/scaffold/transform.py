"""The text of transform.py: the body of an event, its row classes, and the function between them."""

from hubledger.cli.scaffold.code import bracketed, literal, module, rendered
from hubledger.cli.scaffold.design import Design, base_of, camel
from hubledger.cli.scaffold.fields import EPOCHS, Field, Kind

_BODY: dict[Kind, str] = {
    "integer": "Integer", "float": "float", "decimal": "Decimal", "boolean": "bool", "instant": "Instant",
    "date": "Day", "json": "msgspec.Raw", **dict.fromkeys(EPOCHS, "Decimal"),
}  # fmt: skip
_COLUMN: dict[Kind, str] = {
    "integer": "int", "float": "float", "decimal": "Decimal", "boolean": "bool", "instant": "datetime",
    "date": "Day", "json": "str", **dict.fromkeys(EPOCHS, "datetime"),
}  # fmt: skip


def transform_text(design: Design) -> str:
    """Return the module."""
    each, noun = design.each, "element" if design.each else "event"
    of = "An element of a body." if each else "The body of an event."
    said = of if design.is_strict else f"{of} Other fields of it are ignored, and counted in the app's status."
    ordered = sorted(design.fields, key=lambda one: one.is_optional)  # msgspec wants those without a default first
    return module(
        "transform.py",
        room=design.name,
        package=design.package,
        noun=noun,
        and_state=_and_state(design),
        classes=_classes(design, noun),
        struct=f"Struct{', forbid_unknown_fields=True' if design.is_strict else ''}",
        said=said,
        fields="\n".join(_field_of_body(one, one in design.key) for one in ordered),
        of_elements=each.class_text() if each else "",
        decoded_elements=each.names_text() if each else "",
        function=_function(design).rstrip(),
        refused_empty="" if each else '    if not body:\n        raise PoisonEvent("the body is empty")\n',
    )


def _and_state(design: Design) -> str:
    key = ", ".join(one.column for one in design.key[:2]) + (", ..." if design.key[2:] else "")
    return f", and the last state of each {key}" if key else ""


def _classes(design: Design, noun: str) -> str:
    columns = "".join(f"    {one.column}: {_type_of_column(one)}\n" for one in design.fields)
    appended = f'@appended_to("{design.table}")\n@dataclass(frozen=True, slots=True)\nclass {design.row_class}'
    if not design.key:
        return f'{appended}:\n    """One {noun}."""\n\n{columns}'.rstrip()
    base = f"_{camel(base_of(design.name))}"
    return (
        f"@dataclass(frozen=True, slots=True)\nclass {base}:\n{columns}\n\n"
        f'{appended}({base}):\n    """One {noun}."""\n\n\n'
        f"{_state_of(design)}\n@dataclass(frozen=True, slots=True)\n"
        f'class {design.state_class}({base}):\n    """The last {noun} of its key."""'
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


def _field_of_body(one: Field, is_key: bool) -> str:
    held = _type_of_text(one, is_key) if one.kind in ("text", "ascii") else _BODY[one.kind]
    default = ""
    if one.is_optional:
        held, default = (held, "msgspec.Raw()") if one.kind == "json" else (f"{held} | None", "None")
    head = f"{one.column}: {held}"
    if one.name == one.column:
        return f"    {head}{f' = {default}' if default else ''}"
    which = "default_factory=msgspec.Raw" if one.kind == "json" else f"default={default}"
    parts = [*([which] if default else []), f"name={literal(one.name)}"]
    return bracketed(f"{head} = field", parts, indent=4)


def _type_of_text(one: Field, is_key: bool) -> str:
    base = "Code" if one.kind == "ascii" else "Name" if is_key else "str"
    return f"Annotated[{base}, Meta(max_length={one.length})]" if one.length else base


def _function(design: Design) -> str:
    """Return transform(), and the functions for the elements of a body."""
    values = [_value(one) for one in design.fields]
    listed = "".join(f"        {value},\n" for value in values)
    rows = [f"{design.row_class}(*columns)", *([f"{design.state_class}(*columns)"] if design.key else [])]
    columns = f"(\n{listed}    )" if values[1:] else f"({values[0]},)"
    returned = bracketed("", rows, indent=4).lstrip()
    if design.each is not None:
        return rendered("elements.py", found=design.each.found_text(design.name), columns=columns, rows=returned)
    given = "event.body" if design.is_json else "json_of(event)"
    return rendered("event.py", s="s" if design.key else "", given=given, columns=columns, rows=returned)


def _value(one: Field) -> str:
    given = f"body.{one.column}"
    if one.kind == "json":
        none = f' if bytes({given}) not in (b"", b"null") else None' if one.is_optional else ""
        return f"_json({given}){none}"
    made = {"instant": f"_utc({given})", "decimal": f"_exact({given})"}.get(one.kind, given)
    made = f"_since_1970({given}, {one.kind.upper()})" if one.kind in EPOCHS else made
    return f"None if {given} is None else {made}" if one.is_optional and made != given else made
