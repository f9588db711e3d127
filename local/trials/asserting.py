"""Assert the outcome of one event, with a message that names each field that differs."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import zip_longest
from typing import Any, cast

from core.errors import MissingReference, PoisonEvent
from core.model.rows import Row
from local.trials.outcomes import Given, Outcome, event_of, fault_of_rows, outcome_of, shown, transform_of


def assert_rows(transform: Given, body: object, *rows: Row, references: Iterable[Row] = ()) -> None:
    """Assert that an event becomes exactly these rows, in this order; without rows, that it is filtered.

    `references` are the rows of the store that the transform may look up: those that references() names.
    """
    found, subject = _outcome(transform, body, references)
    if found.error is not None:
        raise AssertionError(f"{subject} became no rows: the transform raised {found}") from found.error
    if (fault := fault_of_rows(transform_of(transform), found.rows)) is not None:
        raise AssertionError(f"{subject}: {fault}")
    if differences := list(_differences(found.rows, rows)):
        raise AssertionError("\n  ".join([f"{subject} became different rows:", *differences]))


def assert_poison(transform: Given, body: object, match: str = "", *, references: Iterable[Row] = ()) -> None:
    """Assert that the transform raises PoisonEvent, with a text in which the pattern `match` is found."""
    _assert_error(PoisonEvent, match, *_outcome(transform, body, references))


def assert_missing(transform: Given, body: object, match: str = "", *, references: Iterable[Row] = ()) -> None:
    """Assert that the transform raises MissingReference, which makes a letter that is tried again."""
    _assert_error(MissingReference, match, *_outcome(transform, body, references))


def _outcome(transform: Given, body: object, references: Iterable[Row]) -> tuple[Outcome, str]:
    event = event_of(body)
    return outcome_of(transform_of(transform), event, references), shown(event.body)


def _assert_error(wanted: type[Exception], match: str, found: Outcome, subject: str) -> None:
    if not isinstance(found.error, wanted):
        raise AssertionError(f"{subject} raised no {wanted.__name__}: its outcome is {found}") from found.error
    if not re.search(match, str(found.error), re.DOTALL):
        raise AssertionError(f"{subject} raised {found}, in which {match!r} is not found") from found.error


def _differences(found: Sequence[Row], expected: Sequence[Row]) -> Iterator[str]:
    for place, (one, other) in enumerate(zip_longest(found, expected), 1):
        if other is None:
            yield f"row {place} is not expected: {one!r}"
        elif one is None:
            yield f"row {place} is missing: {other!r}"
        elif type(one) is not type(other):
            yield f"row {place} is {one!r}, expected {other!r}"
        else:
            yield from _fields_that_differ(f"row {place}, {type(one).__name__}", one, other)


def _fields_that_differ(which: str, found: Any, expected: Any) -> Iterator[str]:
    for field in fields(cast(Any, found)):
        one, other = getattr(found, field.name), getattr(expected, field.name)
        if one != other or type(one) is not type(other):
            yield f"{which}: {field.name} is {one!r}, expected {other!r}"
