"""Subjects that were erased: how they are named without their value, and how their events stay forgotten.

A subject is a person or a thing: a partition key, or a value of the column that a row class declares as its subject. Of
an erased subject only a keyed hash is stored, with the last sequence number that is forgotten.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

import msgspec

from core.errors import InfrastructureFault
from core.model.events import Event, SequenceNumber
from core.model.policies import SubjectKey
from core.model.rows import ReferenceKey, References, Row, row_table
from core.model.transforms import Transform
from core.settle.settle import ChildNotStarted, EventKilled

_WORD = re.compile(r"""[^\s"'`,;:|/\\(){}\[\]<>=]+""")
_QUOTED = re.compile(r"""'([^']*)'|"([^"]*)\"""")
_ENDS_THE_CALL = (MemoryError, KeyboardInterrupt, EventKilled, ChildNotStarted)


class ErasureKeyMissing(InfrastructureFault):
    """Subjects were erased with a key that the settings do not have: nobody can tell which events to forget."""

    def __init__(self) -> None:
        super().__init__(
            "subjects were erased with a different ERASURE_KEY: set the key of that time again; without it an erased"
            " event could come back"
        )


@dataclass(frozen=True, slots=True)
class Erased:
    """The erased subjects of a partition: the last number that is forgotten, by the hash of the subject."""

    until: Mapping[str, int]
    key: SubjectKey

    def names(self, number: SequenceNumber, values: Iterable[str]) -> bool:
        """Return True when one of these values is a subject that is forgotten up to this number or a later one."""
        return any(self.until.get(self.key.hash_of(value), -1) >= number for value in values)

    def around(self, transform: Transform) -> Transform:
        """Return the transform with one change: it makes no rows of what was erased, and no letters."""
        if not self.until:
            return transform
        ask = transform.references_of

        def rows_of(event: Event, references: References) -> Iterable[Row]:
            if self._is_of(event):
                return ()
            try:
                made = tuple(islice(transform.rows_of(event, references), transform.rows_limit + 1))
            except BaseException as error:
                if isinstance(error, _ENDS_THE_CALL) or not self.names(event.sequence_number, words_of_event(event)):
                    raise
                return ()
            return tuple([row for row in made if not self.names(event.sequence_number, subjects_of(row))])

        def references_of(event: Event) -> Iterable[ReferenceKey]:
            return () if ask is None or self._is_of(event) else ask(event)

        return replace(transform, rows_of=rows_of, references_of=None if ask is None else references_of)

    def _is_of(self, event: Event) -> bool:
        return event.partition_key is not None and self.names(event.sequence_number, (event.partition_key,))


def subjects_of(row: Row) -> tuple[str, ...]:
    """Return the subject of a row, or nothing."""
    name = row_table(type(row)).subject
    value = getattr(row, name) if name else None
    return () if value is None else (str(value),)


def words_of_event(event: Event) -> set[str]:
    """Return every text of an event that may name a subject."""
    return words_of(event.body, event.partition_key, str(dict(event.properties)))


def words_of(body: bytes, *texts: str | None) -> set[str]:
    """Return the texts whole, their words and what they quote, and every value of a JSON body, as texts.

    A body that is neither JSON nor text has no words: then its partition key names its subject, or nothing does.
    """
    given = [text for text in texts if text is not None]
    found = set(given)
    if body:
        given.append(body.decode("utf-8", "replace"))
        with suppress(ValueError, msgspec.DecodeError, RecursionError):
            found.update(_json_values(msgspec.json.decode(body)))
    for text in given:
        found.update(word.strip(".!?") for word in _WORD.findall(text))
        found.update(one or other for one, other in _QUOTED.findall(text))
    return found


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
