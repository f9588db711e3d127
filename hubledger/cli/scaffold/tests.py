"""The text of the tests of a room."""

from hubledger.cli.scaffold.code import bracketed, module
from hubledger.cli.scaffold.design import Design
from hubledger.cli.scaffold.samples import values_of
from local.feed.event_file import IN_BASE64


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
