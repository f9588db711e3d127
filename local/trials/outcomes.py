"""The outcome of one event: its rows, or the error that the transform raised."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice, zip_longest
from types import ModuleType
from typing import Any, cast

import msgspec

from core.errors import MissingReference, PoisonEvent
from core.model.event_keys import under_key
from core.model.events import Event, SequenceNumber
from core.model.rows import LINEAGE, ReferenceKey, References, Row, row_table
from core.model.transforms import Transform
from core.store.columns import ValuesOf, compiled_values, instant_texts
from core.transforms.loading import load_transform
from local.feed.event_file import FileEvent

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
SHOWN = 300  # characters of a body in a message
Given = Transform | ModuleType | str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The rows of an event in their order, or the error that the transform raised."""

    rows: tuple[Row, ...] = ()
    error: Exception | None = None

    def __str__(self) -> str:
        if self.error is not None:
            return f"{type(self.error).__name__}: {self.error}"
        return f"({', '.join(map(repr, self.rows))})"


def transform_of(given: Given) -> Transform:
    """Return the transform of a module, or of the name of one. Raises InvalidTransform."""
    if isinstance(given, Transform):
        return given
    return load_transform(given if isinstance(given, str) else given.__name__)


def event_of(
    body: object,
    *,
    number: int = 0,
    partition_key: str | None = None,
    properties: Mapping[str, object] | None = None,
    system_properties: Mapping[str, object] | None = None,
) -> Event:
    """Return an event. A body that is no bytes, text or event is written as JSON: a dict, a Struct, a dataclass.

    An event of a file, as `events_in` reads it, has its own key and properties.

    The times of `system_properties` are texts in ISO 8601.
    """
    if isinstance(body, Event):
        return body
    if isinstance(body, FileEvent):
        sent = (body.key, body.properties, body.system_properties or None)
        body, (partition_key, properties, system_properties) = body.body, sent
    octets = body.encode() if isinstance(body, str) else body if isinstance(body, bytes) else msgspec.json.encode(body)
    at = BEGINNING + timedelta(seconds=number)
    place = (SequenceNumber(number), str(64 * number), at, partition_key)
    return Event(*place, properties or {}, octets, system_properties)


def outcome_of(transform: Transform, event: Event, known: Iterable[Row] = ()) -> Outcome:
    """Return the outcome of an event alone. It sees those `known` rows that references() asks for, as in the app."""
    by_key, event = {ReferenceKey.of(row): row for row in known}, under_key(event, transform.key_of)
    try:
        wanted = set(transform.references_of(event)) if transform.references_of else set()
    except Exception:  # noqa: BLE001 - the app reads no references then, and transform() decides
        wanted = set()
    references = References({key: row for key, row in by_key.items() if key in wanted})
    try:
        return Outcome(tuple(islice(transform.rows_of(event, references), transform.rows_limit + 1)))
    except Exception as error:  # noqa: BLE001 - any error is an outcome
        return Outcome(error=error)


def fault_of_rows(transform: Transform, rows: Iterable[Row]) -> str | None:
    """Return the reason why the app cannot store these rows, or None when it can."""
    for place, row in enumerate(rows):
        row_class = type(row)
        if row_class not in transform.row_classes:
            return f"{row_class.__name__} is no row class of the module: a replay would not find its rows"
        try:
            key = () if not row_table(row_class).key else ReferenceKey.of(row)
            hash(key)
            _values_of(row_class)([(0, 0, row)], 1, "0", 1)
        except (ValueError, TypeError, OverflowError, ArithmeticError) as error:
            return f"row {place + 1}, {row!r}, cannot be stored: {error}"
        if place >= transform.rows_limit:
            return f"the event becomes more than {transform.rows_limit} rows"
    return None


@cache
def _values_of(row_class: type) -> ValuesOf:
    return compiled_values(row_class, LINEAGE, instant_texts)


def shown(body: bytes) -> str:
    return repr(body) if len(body) <= SHOWN else f"{body[:SHOWN]!r}… ({len(body)} bytes)"


def assert_rows(transform: Given, body: object, *rows: Row, references: Iterable[Row] = ()) -> None:
    """Assert that an event becomes exactly these rows, in this order, or without rows that it is filtered.

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
