"""The text of the tests of a room."""

from hubledger.cli.scaffold.code import bracketed
from hubledger.cli.scaffold.design import Design
from hubledger.cli.scaffold.fields import INSTANTS
from hubledger.cli.scaffold.samples import values_of
from local.lines import IN_BASE64


def tests_text(design: Design) -> str:
    """Return the module. The row of the first sample is made here, without the transform."""
    values = [(one.column, value) for one, value in values_of(design.first, design.fields)]
    first = bracketed(f"FIRST = {design.row_class}", [f"{name}={value}" for name, value in values])
    if design.each is not None:
        first = f"ELEMENT = transform.elements_of(SAMPLES[0])[0]\n{first}"
    return f'''"""Trials of the transform: `python -m pytest apps/{design.name}` runs them."""

{_imports(design)}
{_samples(design)}
{first}


{_first(design)}


def test_a_body_that_is_no_event_is_a_letter() -> None:
    assert_poison(transform, b"", "empty")
    assert_poison(transform, b"{{")
    assert_poison(transform, b"{"{}" if design.each and design.each.name == "array" else "[]"}")


{_of_strange_bodies(design)}


def test_an_event_has_one_outcome() -> None:
    check_deterministic(transform, SAMPLES)


def test_a_replay_writes_the_rows_that_the_ingestion_wrote() -> None:
    check_replay_identity(transform, SAMPLES)
'''


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


def _samples(design: Design) -> str:
    if not design.in_base64:
        return 'SAMPLES = (Path(__file__).parents[1] / "events.jsonl").read_bytes().splitlines()'
    lines = f'(Path(__file__).parents[1] / "events{IN_BASE64}").read_bytes().split()'
    return f"SAMPLES = [b64decode(line) for line in {lines}]"


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


def _imports(design: Design) -> str:
    classes = sorted([design.row_class, *([design.state_class] if design.key else [])])
    kinds = {one.kind for one, value in values_of(design.first, design.fields) if value != "None"}
    has_instants = not kinds.isdisjoint(INSTANTS)
    times = [*(["UTC"] if has_instants else []), *(["date"] if "date" in kinds else [])]
    times += ["datetime"] if has_instants else []
    local = ["assert_poison", "assert_rows", "check_any_body", "check_deterministic", "check_replay_identity"]
    return (
        ("from base64 import b64decode\n" if design.in_base64 else "")
        + ("from dataclasses import astuple\n" if design.key else "")
        + (f"from datetime import {', '.join(times)}\n" if times else "")
        + ("from decimal import Decimal\n" if "decimal" in kinds else "")
        + f"from pathlib import Path\n\nfrom {design.package} import transform\n"
        + f"from {design.package}.transform import {', '.join(classes)}\n"
        + f"from hubledger.testing import {', '.join(local)}\n"
    )


def _unknown(design: Design) -> str:
    name = "unknown"
    while any(one.name == name for one in design.fields):
        name += "_"
    return name
