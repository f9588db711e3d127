"""Properties and values of AMQP as JSON, without loss: docs/transforms.md has the table of the encoding.

JSON holds null, booleans, texts, finite floats, whole numbers up to 2^53, lists, and objects with texts as keys. Any
other value becomes a tag: an object whose only key begins with "$". An object that looks like a tag is written as pairs
(`$map`), and a value below MOST_NESTED levels as a flat list (`$flat`), because readers of JSON limit its depth.
"""

import json
import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Literal
from uuid import UUID

from core.errors import PoisonEvent
from core.model.ports import parse_instant

EXACT = 2**53 - 1  # the largest whole number that every reader of JSON keeps
MOST_NESTED = 64  # levels of lists and objects; a value below them is written flat

Json = Any
_BROKEN = (TypeError, ValueError, LookupError, InvalidOperation, OverflowError)


@dataclass(frozen=True, slots=True)
class Described:
    """A value of AMQP with its descriptor."""

    descriptor: object
    value: object


@dataclass(frozen=True, slots=True)
class Unread(Mapping[str, object]):
    """Properties that could not be read, as they came: `amqp` in base64, or `json`. Any access raises PoisonEvent."""

    form: Literal["amqp", "json"]
    content: str

    def __getitem__(self, name: str) -> object:
        raise self._fault()

    def __iter__(self) -> Iterator[str]:
        raise self._fault()

    def __len__(self) -> int:
        raise self._fault()

    def _fault(self) -> PoisonEvent:
        return PoisonEvent(f"the properties of this event could not be read; its letter has them as ${self.form}")


OWN, SYSTEM = "$properties", "$system"  # the keys of properties that are stored with system properties


def encode_properties(properties: Mapping[str, object], system: Mapping[str, object] | None = None) -> str:
    """Return properties as the text of a JSON object, in ASCII. Those with system properties are two objects in one."""
    written = {f"${properties.form}": properties.content} if isinstance(properties, Unread) else to_json(properties)
    if system or SYSTEM in written:
        written = {OWN: written, SYSTEM: to_json(system or {})}
    return json.dumps(written, allow_nan=False)


def decode_properties(text: str) -> Mapping[str, object]:
    """Return the properties of `decode_sent` without the system properties."""
    return decode_sent(text)[0]


def decode_sent(text: str) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Return the properties and system properties that `encode_properties` wrote, or plain JSON as properties.

    Somebody may have changed the text by hand: properties that are no object, or nested too deeply, are Unread.
    """
    try:
        found, system = json.loads(text), {}
        if isinstance(found, dict) and found.keys() == {OWN, SYSTEM}:
            found, system = found[OWN], from_json(found[SYSTEM])
        read = from_json(found)
    except (ValueError, RecursionError):
        return Unread("json", text), {}
    system = system if isinstance(system, dict) else {}
    match found:
        case {"$amqp": str(content), **others} if not others:
            return Unread("amqp", content), system
        case {"$json": str(content), **others} if not others:
            return Unread("json", content), system
        case dict():
            return read if isinstance(read, dict) else found, system
    return Unread("json", text), system


def shown_properties(text: str) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return stored properties and system properties as JSON to show: every value that JSON does not hold is a tag."""
    properties, system = decode_sent(text)
    shown = json.loads(encode_properties(properties, system))
    return (shown[OWN], shown[SYSTEM]) if SYSTEM in shown else (shown, {})


def encode_body(value: object) -> bytes:
    """Return the body of an event whose AMQP body is no data: the value as JSON in UTF-8."""
    return json.dumps(to_json(value), allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


def to_json(value: object, depth: int = 0) -> Json:
    """Return a value as JSON. The inverse is `from_json`."""
    if depth == MOST_NESTED and isinstance(value, (list, tuple, Mapping, Described)):
        return {"$flat": _flat(value)}
    if isinstance(value, (list, tuple)):
        return [to_json(each, depth + 1) for each in value]
    if isinstance(value, Mapping):
        if all(isinstance(name, str) and is_whole(name) for name in value) and not looks_like_a_tag(value):
            return {name: to_json(each, depth + 1) for name, each in value.items()}
        return {"$map": [[to_json(name, depth + 1), to_json(each, depth + 1)] for name, each in value.items()]}
    if isinstance(value, Described):
        return {"$described": [to_json(value.descriptor, depth + 1), to_json(value.value, depth + 1)]}
    return _leaf(value)


def from_json(found: Json) -> Any:
    """Return the value that `to_json` wrote. An object with an unknown or broken tag stays an object."""
    if isinstance(found, list):
        return [from_json(each) for each in found]
    if not isinstance(found, dict):
        return found
    if looks_like_a_tag(found):
        ((tag, content),) = found.items()
        if (read := _READERS.get(tag)) is not None:
            try:
                return read(content)
            except _BROKEN:
                return found
    return {name: from_json(each) for name, each in found.items()}


def readable(value: Json) -> Json:
    """Return a value of a column, or the text of a whole number that JavaScript would round."""
    return str(value) if isinstance(value, int) and abs(value) > EXACT else value


def looks_like_a_tag(value: Mapping[Any, object]) -> bool:
    """Return True for an object of the form that stands for a value which JSON does not hold."""
    return len(value) == 1 and next(iter(value)).startswith("$")


def is_whole(text: str) -> bool:
    """Return True for a text without lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _leaf(value: object) -> Json:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value if is_whole(value) else {"$utf16": _base64(value.encode("utf-16-le", "surrogatepass"))}
    if isinstance(value, int):
        return int(value) if abs(value) <= EXACT else {"$integer": str(int(value))}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$double": _NON_FINITE[str(float(value))]}
    if isinstance(value, datetime):
        return {"$timestamp": value.astimezone(UTC).isoformat()}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"$binary": _base64(bytes(value))}
    if isinstance(value, UUID):
        return {"$uuid": str(value)}
    return {"$decimal": str(value)} if isinstance(value, Decimal) else _leaf(str(value))


_NON_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _base64(raw: bytes) -> str:
    return b64encode(raw).decode()


def _binary(content: str) -> bytes:
    return b64decode(content, validate=True)


def _described(content: Json) -> Described:
    descriptor, value = content
    return Described(from_json(descriptor), from_json(value))


def _flat(value: object) -> list[Json]:
    """Return the values of a tree, each before its members: a leaf as [leaf], a branch as [kind, members]."""
    found: list[Json] = []
    waiting: list[object] = [value]
    while waiting:
        each = waiting.pop()
        members: list[object]
        if isinstance(each, (list, tuple)):
            kind, members = "list", list(each)
        elif isinstance(each, Mapping):
            kind, members = "map", [one for pair in each.items() for one in pair]
        elif isinstance(each, Described):
            kind, members = "described", [each.descriptor, each.value]
        else:
            found.append([_leaf(each)])
            continue
        found.append([kind, len(members)])
        waiting.extend(reversed(members))
    return found


def _from_flat(content: Json) -> Any:
    values: list[Any] = []
    for each in reversed(content):
        if len(each) == 1:
            values.append(from_json(each[0]))
            continue
        kind, count = each
        members = [values.pop() for _ in range(count)]
        values.append(_BRANCHES[kind](members))
    (value,) = values
    return value


_BRANCHES: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "map": lambda members: dict(zip(members[::2], members[1::2], strict=True)),
    "described": lambda members: Described(*members),
}
_READERS: dict[str, Callable[[Any], Any]] = {
    "$binary": _binary,
    "$decimal": Decimal,
    "$described": _described,
    "$double": float,
    "$flat": _from_flat,
    "$integer": int,
    "$map": lambda pairs: {from_json(name): from_json(each) for name, each in pairs},
    "$timestamp": parse_instant,
    "$utf16": lambda content: _binary(content).decode("utf-16-le", "surrogatepass"),
    "$uuid": UUID,
}
