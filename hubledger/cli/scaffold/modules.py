"""The modules of a new room: transform.py, its aggregate and its tests, from the templates."""

import re
from collections.abc import Iterator

from core.model.aggregates import ADDED
from hubledger.cli.scaffold.code import bracketed, literal, module, rendered
from hubledger.cli.scaffold.design import EPOCHS, LONGEST_COLUMN, Design, Field, Kind, base_of, camel
from hubledger.cli.scaffold.samples import values_of
from local.feed.event_file import IN_BASE64

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


MOST_SUMS = 5
_NAME = re.compile(
    r"(?:^|_)(?:"
    r"id|ids|uid|pid|key|ref|serial|number|no|nr|num|code|zip|postcode|port|phone|msisdn|imei|imsi|iccid|ean|gtin|sku"
    r"|version|revision|index|idx|seq|sequence|offset|epoch|timestamp|ts|time|at|date|day|month|year|unix"
    r")(?:_(?:number|no|ns|us|ms|s|sec|seconds|millis|micros|nanos|utc))*$"
)


def aggregate_text(design: Design, at: Field, by: Field) -> str:
    """Return the module: the number of events, their first and last time, and the sums of integers."""
    declared = bracketed(
        "@aggregate_of",
        [design.row_class, f'"{design.aggregate}"', f'at="{at.column}"', "window=timedelta(hours=1)"],
    )
    return module(
        "aggregate.py",
        package=design.package,
        row_class=design.row_class,
        declared=declared,
        windows=camel(design.aggregate),
        at=at.column,
        by=by.column,
        type="str" if by.length else "int",
        key=f"Key({by.length}{', ascii=True' if by.kind == 'ascii' else ''})" if by.length else "Key()",
        measures="\n".join(f"    {line}" for line in _measures(design, at, by)),
    )


def _measures(design: Design, at: Field, by: Field) -> Iterator[str]:
    taken = {by.column}
    yield f"{_free('events', taken)}: Annotated[int, Count()]"
    whole = [one for one in design.fields if one.kind == "integer" and one not in design.keys and not _is_name(one)]
    for one in whole[:MOST_SUMS]:
        none = " | None" if one.is_optional else ""
        yield f'{_free(f"sum_of_{one.column}", taken)}: Annotated[int{none}, Sum("{one.column}")]'
    yield f'{_free(f"first_{at.column}", taken)}: Annotated[datetime, Least("{at.column}")]'
    yield f'{_free(f"last_{at.column}", taken)}: Annotated[datetime, Most("{at.column}")]'


def _is_name(one: Field) -> bool:
    """Return True for a number that names a thing, a place in an order or a time, so that its sum says nothing."""
    return _NAME.search(one.column) is not None


def _free(name: str, taken: set[str]) -> str:
    name = name[: LONGEST_COLUMN + 10]
    while name in taken or name in ADDED:
        name += "_"
    taken.add(name)
    return name


def tests_text(design: Design) -> str:
    """Return the module. The row of the first sample is made here, without the transform."""
    values = [(one.column, value) for one, value in values_of(design.first, design.fields)]
    first = bracketed(f"FIRST = {design.row_class}", [f"{name}={value}" for name, value in values])
    read = '(Path(__file__).parents[1] / "events.jsonl").read_bytes().splitlines()'
    if design.in_base64:
        read = f'[b64decode(line) for line in (Path(__file__).parents[1] / "events{IN_BASE64}").read_bytes().split()]'
    return module(
        "test_transform.py",
        room=design.name,
        package=design.package,
        row_class=design.row_class,
        state_class=design.state_class,
        samples=read,
        first=f"ELEMENT = transform.elements_of(SAMPLES[0])[0]\n{first}" if design.each else first,
        of_first=_first(design),
        no_event="{}" if design.each and design.each.name == "array" else "[]",
        of_strange_bodies=_of_strange_bodies(design),
    )


def _first(design: Design) -> str:
    """Return the tests of the rows of the first sample."""
    if design.each is None:
        return f"def test_the_first_sample_becomes_these_rows() -> None:\n{_rows('SAMPLES[0]', design)}"
    twice = bracketed("assert_rows", ["transform", "body_of(ELEMENT, ELEMENT)", *2 * _of_first(design)], indent=4)
    return f"""{design.each.body_text()}

def test_the_first_element_becomes_these_rows_each_time_that_it_comes() -> None:
{_rows("body_of(ELEMENT)", design)}
{twice}


def test_an_error_names_its_element() -> None:
    assert_poison(transform, body_of(ELEMENT, b"1"), "element 2")"""


def _of_strange_bodies(design: Design) -> str:
    """Return the tests of bodies that no producer should send."""
    if not design.is_json:
        return """def test_a_body_that_is_cut_is_a_letter() -> None:
    assert_poison(transform, SAMPLES[0][:-1])


def test_any_body_becomes_rows_or_a_letter() -> None:
    check_any_body(transform, samples=SAMPLES)"""
    outcome, tried = _of_an_added_field(design)
    message = "list[transform.Body]" if design.each and design.each.name == "array" else "transform.Body"
    return f"""def test_a_field_that_nobody_knows_{outcome}() -> None:
{tried}


def test_any_body_becomes_rows_or_a_letter() -> None:
    check_any_body(transform, {message}{", samples=SAMPLES" if design.each else ""})"""


def _rows(body: str, design: Design) -> str:
    """Return the assertion that a body becomes the first rows."""
    return bracketed("assert_rows", ["transform", body, *_of_first(design)], indent=4)


def _of_first(design: Design) -> list[str]:
    return ["FIRST", *([f"{design.state_class}(*astuple(FIRST))"] if design.key else [])]


def _of_an_added_field(design: Design) -> tuple[str, str]:
    """Return what becomes of an event with an unknown field, in words, and the assertion of it."""
    first, end = ("ELEMENT", ")") if design.each else ("SAMPLES[0]", "")
    body = f"""{"body_of(" if design.each else ""}{first}.rstrip()[:-1] + b', "{_unknown(design)}": 1}}'{end}"""
    if design.is_strict:
        return "is_a_letter", f'    assert_poison(transform, {body}, "{_unknown(design)}")'
    return "changes_nothing", _rows(body, design)


def _unknown(design: Design) -> str:
    name = "unknown"
    while any(one.name == name for one in design.fields):
        name += "_"
    return name
