"""Subjects that were erased: how they are named without their value, and how their events stay forgotten.

A subject is a person or a thing: a partition key, or a value of the column that a row class declares as its subject. Of
an erased subject only a keyed hash is stored, with one time: its events that reached the hub until then are filtered,
in every stream of the database.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain

import msgspec

from core.model.events import Event
from core.model.policies import SubjectKey
from core.model.property_values import Unread
from core.model.rows import ReferenceKey, References, Row, row_table
from core.model.transforms import Transform
from core.settle.mentions import body_text, candidates_of, composed, sized_texts


@dataclass(frozen=True, slots=True)
class Erased:
    """Erased subjects: the time up to which their events are forgotten, by the hash of the subject."""

    until: Mapping[str, datetime]
    key: SubjectKey

    def names(self, event: Event, values: Iterable[str]) -> bool:
        """Return True when one of these values is a subject that was erased after the event had reached the hub."""
        keys = self.key.both
        found = (self.until.get(key.hash_of(value)) for value in values for key in keys)
        return any(erased_at is not None and event.enqueued_at <= erased_at for erased_at in found)

    def around(self, transform: Transform) -> Transform:
        """Return the transform without erased subjects: no rows of theirs, and no letters or counts that name them."""
        if not self.until:
            return transform
        ask = transform.references_of

        def rows_of(event: Event, references: References) -> Iterable[Row]:
            made = () if self._is_of(event) else transform.rows_of(event, references)
            return (row for row in made if not self.names(event, subjects_of(row)))

        def references_of(event: Event) -> Iterable[ReferenceKey]:
            return () if ask is None or self._is_of(event) else ask(event)

        return replace(
            transform,
            rows_of=rows_of,
            references_of=None if ask is None else references_of,
            is_erased=self._is_of,
            mentions_erased=self._is_in,
            quotes_erased=self.quotes,
        )

    def quotes(self, text: str) -> bool:
        """Return True when a text mentions a subject that was erased at any time."""
        return any(key.hash_of(one) in self.until for one in candidates_of(text) for key in self.key.both)

    def _is_in(self, event: Event, *texts: str) -> bool:
        return self.names(event, chain(words_of_event(event), candidates_of(*texts), sized_texts(event.body)))

    def _is_of(self, event: Event) -> bool:
        return self.names(event, [key for key in (event.key, event.partition_key) if key is not None])


NONE_ERASED = Erased({}, SubjectKey())


def subjects_of(row: Row) -> tuple[str, ...]:
    """Return the subject of a row, or nothing."""
    name = row_table(type(row)).subject
    value = getattr(row, name) if name else None
    return () if value is None else (str(value),)


def words_of_event(event: Event) -> set[str]:
    """Return every text of an event that may be a subject: what its body, key and properties mention, and the values of
    a JSON body."""
    body, found = body_text(event.body), set[str]()
    with suppress(ValueError, msgspec.DecodeError, RecursionError):
        found.update(map(composed, _json_values(msgspec.json.decode(body))))
    own = event.properties
    read = {own.form: own.content} if isinstance(own, Unread) else own
    sent = (*read, *read.values(), *event.sent_annotations, *event.sent_annotations.values())
    return found | candidates_of(body, event.key or "", event.partition_key or "", *map(str, sent))


def _json_values(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield str(name)
            yield from _json_values(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _json_values(inner)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, int) and not isinstance(value, bool):
        yield str(value)
