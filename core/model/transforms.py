"""The transform as the app calls it, and the decoder of JSON bodies.

Times are cut to microseconds: msgspec rounds them, so that the last instant of a day would become the next day.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar, Union, cast

import msgspec
from msgspec.structs import force_setattr

from core.model.events import Event, Partition
from core.model.rows import ReferenceKey, References, Row

Body = TypeVar("Body", bound=msgspec.Struct)
Read = TypeVar("Read")

MOST_NAMES, NAME_LENGTH = 15, 40  # of fields that are counted by name; the names of others are not kept
OTHERS, NONE_UNKNOWN = "", "{}"
WITHOUT_KEY = "\0"  # among the counts of unknown fields, the name that counts events without a readable key
_counts: ContextVar[Counter[str] | None] = ContextVar("unknown fields", default=None)  # of this thread
_LONG = re.compile(rb"\.\d{7}")  # quick to look for; a number may have it too
_FRACTION = re.compile(rb"(\d:\d\d\.\d{6})(\d+)")  # of a time, with more digits than a datetime holds
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
# Parts of bodies that no JSON in UTF-8 has; docs/bodies.md has the remedies.
_FAULTS = {
    rb"\A\xef\xbb\xbf": "it begins with a byte order mark (docs/bodies.md)",
    rb"\A(\xff\xfe|\xfe\xff|[{\[]\0|\0[{\[])": "it is in `UTF-16`, and JSON is in `UTF-8` (docs/bodies.md)",
    rb"\A\x1f\x8b": "it is compressed by gzip (docs/bodies.md)",
    rb"\AObj\x01": "it is an Avro container file (docs/bodies.md)",
    rb"\A(\0+\Z|\s*[{\[][^\0]*\0)": "it has a NUL byte (docs/bodies.md)",
    rb"[}\]][ \t\r]*\n\s*[{\[]": "it has several JSON texts: `new --each lines` reads them",
}
_NO_TIME = re.compile(rb'"\d{4}-\d\d-\d\d[Tt ](24:\d\d:\d\d|\d\d:\d\d:60)')
_become = object.__dict__["__class__"].__set__  # of a class with the same fields; a frozen object takes it too


def body_decoder(*body_classes: type[Body]) -> Callable[[bytes], Body]:
    """Return a function that makes a body from JSON: an object of a subclass of `msgspec.Struct`, or of one of several
    with different tags.

    A field that the class does not have is ignored. `bin/hubledger try` and the status of the app count it by name. A
    class with `forbid_unknown_fields` refuses it. A time is cut to microseconds. A text stays whole. Raises as
    `msgspec.json.Decoder.decode` does, with the text of `fault_of_body`.
    """
    own: dict[Any, type[Body]] = {_refusing_unknown(one): one for one in body_classes}
    strict = cutting_times(_decoder(own))
    lenient = cutting_times(_decoder(body_classes))

    def decode(body: bytes) -> Body:
        try:
            try:
                found = strict(body)
                _become(found, own[type(found)])
            except msgspec.ValidationError:
                found = lenient(body)
                _count_unknown_of(body, found)
        except msgspec.DecodeError as error:
            raise type(error)(fault_of_body(body, error)) from error
        return cast(Body, found)

    return decode


def cutting_times(decode: Callable[[bytes], Read]) -> Callable[[bytes], Read]:
    """Return a decoder of JSON by msgspec that cuts a time to microseconds, and leaves texts as they are."""

    def cut(body: bytes) -> Read:
        if not _LONG.search(body):  # as in most bodies
            return decode(body)
        shorter = cut_times(body)
        return decode(body) if shorter is body else cast(Read, _with_texts(decode(shorter), body))

    return cut


def cut_times(body: bytes) -> bytes:
    """Return JSON with zeros beyond the microseconds of its times. The same object when there is no such time."""
    if not _LONG.search(body) or not _FRACTION.search(body):
        return body
    return _FRACTION.sub(lambda found: found[1] + b"0" * len(found[2]), body)


def _with_texts(found: Any, raw: bytes | msgspec.Raw) -> Any:
    """Return a value that was read from a cut JSON with its texts as they are in the whole one."""
    if not _FRACTION.search(raw):
        return found
    if isinstance(found, str):
        return msgspec.json.decode(raw)
    if isinstance(found, msgspec.Raw):
        return msgspec.Raw(bytes(raw))
    if isinstance(found, list | tuple):
        return type(found)(map(_with_texts, found, msgspec.json.decode(raw, type=list[msgspec.Raw])))
    if isinstance(found, dict):
        pairs = zip(found.items(), _members(raw).items(), strict=True)
        return {
            key if isinstance(name, str) else name: _with_texts(each, whole) for (name, each), (key, whole) in pairs
        }
    if isinstance(found, msgspec.Struct):
        whole = _members(raw)
        for name, encoded in zip(found.__struct_fields__, found.__struct_encode_fields__, strict=True):
            if encoded in whole and type(value := getattr(found, name)) is not datetime:
                force_setattr(found, name, _with_texts(value, whole[encoded]))
    return found


def _decoder(classes: Iterable[Any]) -> Callable[[bytes], Any]:
    return msgspec.json.Decoder(Union[tuple(classes)]).decode  # noqa: UP007 - it is computed


def _refusing_unknown(body_class: Any) -> Any:
    """Return a class of the same fields that refuses unknown ones."""
    return type(body_class)(body_class.__name__, (body_class,), {}, forbid_unknown_fields=True)


def _count_unknown_of(body: bytes, found: msgspec.Struct) -> None:
    if _counts.get() is not None:
        config = found.__struct_config__
        known = {*found.__struct_encode_fields__, config.tag_field}
        names = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        count_unknown_fields(dict.fromkeys((name for name in names if name not in known), 1))


def count_unknown_fields(found: Mapping[str, int]) -> None:
    """Add the counts of an event, such as those of a child process, to the counts of this thread."""
    if (counts := _counts.get()) is not None:
        counts.update(found)


def fault_of_body(body: bytes, error: Exception) -> str:
    """Return the fault of a body that its decoder refused with an error of msgspec.

    A body in a different encoding, or with several events, has a text of its own, and so its letters have a cause of
    their own. Every other body has the text of the error.
    """
    for part, fault in _FAULTS.items():
        if re.search(part, body):
            return fault
    said = str(error)
    if said.startswith("Invalid RFC3339") and _NO_TIME.search(body):
        return f"{said}: neither an hour 24 nor a second 60 is a time here"
    if said == "Expected `object`, got `array`":
        return "it is a list: `new --each array` reads it"
    if said.startswith("Object missing required field") and " - at " not in said:
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            names = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
            if len(names) == 1 and bytes(*names.values()).startswith(b"["):
                return "its only field is a list: `new --each FIELD` reads it"
    return said


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
        counts[cut if cut in counts or len(counts) < MOST_NAMES or name == WITHOUT_KEY else OTHERS] += events
    return msgspec.json.encode(counts).decode()


def unknown_fields_of(stored: str) -> dict[str, int]:
    """Return the events by the name of an unknown field. Names that are not kept are not in it. Counts that were
    changed by hand and cannot be read begin again: they hold up no event."""
    try:
        return msgspec.json.decode(stored, type=dict[str, int])
    except msgspec.DecodeError:
        return {}


ROWS_LIMIT = 10_000  # rows of one event

# Watches over the transform while it works on some events, of a partition where one is known.
Watch = Callable[[Partition | None, Sequence[Event]], AbstractContextManager[None]]

# Gives the transform whose functions run in a child process, for as long as its context is entered. Before it tries an
# event in a second child, it calls the function, which raises a fault when another owner has done the work.
InChild = Callable[["Transform", Callable[[], None]], AbstractContextManager["Transform"]]


KeyOf = Callable[[Event], object]


def may_be_signalled() -> bool:
    """Take every KeyboardInterrupt for a signal."""
    return True


def unwatched(of: Partition | None, events: Sequence[Event]) -> AbstractContextManager[None]:
    """Let the transform work without a watch."""
    return nullcontext()


def of_nothing(*of: object) -> bool:
    """Return False: nothing was erased."""
    return False


@dataclass(frozen=True, slots=True)
class Transform:
    """A transform module, read once. `row_classes` are those in its namespace. A replay retracts their rows.

    An event that becomes more than `rows_limit` rows is a letter, before its rows fill the memory. Where no signal is
    taken, a KeyboardInterrupt is raised by the transform, and would be at every retry: it is the outcome of its event.
    An event that `is_erased` is filtered, and waits for no letter. An event that fails is filtered too when it, or its
    error, `mentions_erased`. A field whose name `quotes_erased` is not counted. `key_of` gives an event its key, and
    `key_name` names that key: "" is the partition key.
    """

    version: str
    rows_of: Callable[[Event, References], Iterable[Row]]
    references_of: Callable[[Event], Iterable[ReferenceKey]] | None = None
    row_classes: tuple[type, ...] = ()
    rows_limit: int = ROWS_LIMIT
    watch: Watch = unwatched
    takes_signals: Callable[[], bool] = may_be_signalled
    is_erased: Callable[[Event], bool] = of_nothing
    mentions_erased: Callable[..., bool] = of_nothing  # an event, and texts about it
    quotes_erased: Callable[[str], bool] = of_nothing
    key_of: KeyOf | None = None
    key_name: str = ""
