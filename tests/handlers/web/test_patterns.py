"""The patterns of all requests end at the end of the text, and are ECMA's in the description."""

from collections.abc import Iterator
from typing import Any

import msgspec

from handlers.api import OPERATIONS
from handlers.web.openapi import describe


def patterns(within: Any) -> Iterator[str]:
    """Yield each pattern of a JSON schema."""
    if isinstance(within, dict):
        if isinstance(within.get("pattern"), str):
            yield within["pattern"]
        for each in within.values():
            yield from patterns(each)
    elif isinstance(within, list):
        for each in within:
            yield from patterns(each)


def of_requests() -> set[str]:
    shapes = [shape for one in OPERATIONS.values() for shape in (one.path, one.query, one.body)]
    return {found for shape in shapes for found in patterns(msgspec.json.schema(shape))}


def test_a_pattern_ends_at_the_end_of_the_text_and_not_before_a_newline() -> None:
    assert len(of_requests()) > 5
    assert [pattern for pattern in of_requests() if pattern.endswith("$") or not pattern.endswith("\\Z")] == []


def test_the_description_has_patterns_of_ecma_which_has_no_capital_z() -> None:
    described = set(patterns(describe(OPERATIONS)))
    assert {pattern.replace("\\Z", "$") for pattern in of_requests()} <= described
    assert [pattern for pattern in described if "\\Z" in pattern] == []
