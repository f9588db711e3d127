"""Bodies of events that may have fields which their room does not know: these are ignored, and counted by name."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, Union, cast

import msgspec

Body = TypeVar("Body", bound=msgspec.Struct)

MOST_NAMES, NAME_LENGTH = 15, 40  # of fields that are counted by name; the names of others are not kept
OTHERS, NONE_UNKNOWN = "", "{}"
_counts: ContextVar[Counter[str] | None] = ContextVar("unknown fields", default=None)  # of this thread
_become = object.__dict__["__class__"].__set__  # of a class with the same fields; a frozen object takes it too


def body_decoder(*body_classes: type[Body]) -> Callable[[bytes], Body]:
    """Return a function that makes a body from JSON: an object of a subclass of `msgspec.Struct`, or of one of several
    with different tags.

    A field that the class does not have is ignored; `bin/hubledger try` and the status of the app count it by name. A
    class with `forbid_unknown_fields` refuses it. Raises as `msgspec.json.Decoder.decode` does.
    """
    own: dict[Any, type[Body]] = {_strict(one): one for one in body_classes}
    strict = _decoder(own)
    lenient = _decoder(body_classes)

    def decode(body: bytes) -> Body:
        try:
            found = strict(body)
            _become(found, own[type(found)])
        except msgspec.ValidationError:
            found = lenient(body)
            _note(body, found)
        return cast(Body, found)

    return decode


def _decoder(classes: Iterable[Any]) -> Callable[[bytes], Any]:
    return msgspec.json.Decoder(Union[tuple(classes)]).decode  # noqa: UP007 - it is computed


def _strict(body_class: Any) -> Any:
    """Return a class of the same fields that refuses unknown ones."""
    return type(body_class)(body_class.__name__, (body_class,), {}, forbid_unknown_fields=True)


def _note(body: bytes, found: msgspec.Struct) -> None:
    counts = _counts.get()
    if counts is not None:
        config = found.__struct_config__
        known = {*found.__struct_encode_fields__, config.tag_field}
        counts.update(name for name in msgspec.json.decode(body, type=dict[str, msgspec.Raw]) if name not in known)


@contextmanager
def counting_unknown_fields() -> Iterator[Counter[str]]:
    """Count the events that have each unknown field, among those that this thread decodes in the meantime."""
    counts: Counter[str] = Counter()
    before = _counts.set(counts)
    try:
        yield counts
    finally:
        _counts.reset(before)


def plus_unknown_fields(stored: str, found: Mapping[str, int]) -> str:
    """Return the stored counts, a JSON object, with those of a batch: long names cut, and too many in one sum."""
    if not found:
        return stored
    counts: Counter[str] = Counter(unknown_fields_of(stored))
    for name, events in found.items():
        cut = name[:NAME_LENGTH]
        counts[cut if cut in counts or len(counts) < MOST_NAMES else OTHERS] += events
    return msgspec.json.encode(counts).decode()


def unknown_fields_of(stored: str) -> dict[str, int]:
    """Return the events by the name of an unknown field; those of names that are not kept have none. Counts that were
    changed by hand and cannot be read begin again: they hold up no event."""
    try:
        return msgspec.json.decode(stored, type=dict[str, int])
    except msgspec.DecodeError:
        return {}
