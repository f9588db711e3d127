"""Any body at all becomes rows or a letter: the transform raises no error but PoisonEvent and MissingReference.

A strategy makes the JSON of a message, so that names, tags, missing fields and zones come as publishers write them.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta, timezone
from typing import Any

import msgspec
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import inspect, structs

from core.errors import MissingReference, PoisonEvent
from core.model.events import Event
from core.model.rows import Row
from core.model.transforms import Transform
from local.trials.outcomes import Given, event_of, fault_of_rows, outcome_of, shown, transform_of

Json = st.SearchStrategy[Any]
TEXT = st.characters(codec="utf-8")
ANY_JSON: Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(TEXT),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(TEXT), inner, max_size=4),
    max_leaves=10,
)
_LAST_MINUTE = 24 * 60 - 1
ZONES = st.integers(-_LAST_MINUTE, _LAST_MINUTE).map(lambda minutes: timezone(timedelta(minutes=minutes)))
ARRAYS = (
    inspect.ListType, inspect.SetType, inspect.FrozenSetType, inspect.VarTupleType, inspect.CollectionType,
)  # fmt: skip
OBJECTS = (inspect.StructType, inspect.DataclassType, inspect.TypedDictType, inspect.NamedTupleType)


def messages(message: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for messages of a type: a Struct, a dataclass, a union of them, or any type of msgspec."""
    return bodies(message).map(msgspec.json.Decoder(message).decode)


def bodies(message: Any) -> st.SearchStrategy[bytes]:
    """Return a strategy for bodies that decode to a message of a type. Fields with a default are missing at times."""
    return values(message).map(msgspec.json.encode)


def values(message: Any) -> Json:
    return _Types().of(inspect.type_info(message))


class _Types:
    """The strategies of types. A recursive type refers to its own strategy."""

    def __init__(self) -> None:
        self._objects: dict[Any, Json] = {}

    def of(self, one: inspect.Type) -> Json:
        """Return the strategy of a type. Raises TypeError for one that JSON does not have."""
        if isinstance(one, inspect.Metadata):
            return self.of(one.type)
        if isinstance(one, OBJECTS):
            return self._object(one)
        if isinstance(one, inspect.UnionType):
            return st.one_of([self.of(each) for each in one.types])
        if isinstance(one, ARRAYS):
            return self._array(one)
        if isinstance(one, inspect.TupleType):
            return st.tuples(*map(self.of, one.item_types)).map(list)
        if isinstance(one, inspect.DictType):
            keys = self.of(one.key_type).map(_key_text)
            return st.dictionaries(keys, self.of(one.value_type), min_size=one.min_length or 0, max_size=_most(one))
        make = SCALARS.get(type(one))
        if make is None:
            raise TypeError(f"{one} has no strategy: write one, and give it as bodies")
        return make(one)

    def _array(self, one: Any) -> Json:
        unique = isinstance(one, inspect.SetType | inspect.FrozenSetType)
        key = (lambda each: msgspec.json.encode(each)) if unique else None
        return st.lists(self.of(one.item_type), min_size=one.min_length or 0, max_size=_most(one), unique_by=key)

    def _object(self, one: Any) -> Json:
        if one.cls not in self._objects:
            made: list[Json] = []
            self._objects[one.cls] = st.deferred(lambda: made[0])
            tag = [] if getattr(one, "tag_field", None) is None else [(one.tag_field, st.just(one.tag))]
            if getattr(one, "array_like", False) or isinstance(one, inspect.NamedTupleType):
                made.append(
                    st.tuples(*(each for _, each in tag), *(self.of(field.type) for field in one.fields)).map(list)
                )
            else:
                made.append(self._members(one.fields, dict(tag)))
        return self._objects[one.cls]

    def _members(self, fields: Sequence[inspect.Field], tag: Mapping[str, Json]) -> Json:
        required = {field.encode_name: self.of(field.type) for field in fields if field.required}
        optional = {field.encode_name: self.of(field.type) for field in fields if not field.required}
        return st.fixed_dictionaries({**tag, **required}, optional=optional)


def _key_text(key: Any) -> str:
    return key if isinstance(key, str) else msgspec.json.encode(key).decode()


def _most(one: Any) -> int | None:
    return one.max_length if one.max_length is not None else (one.min_length or 0) + 5


def _text(one: inspect.StrType) -> Json:
    least, most = one.min_length or 0, one.max_length
    if one.pattern is None:
        return st.text(TEXT, min_size=least, max_size=most)
    fitting = st.from_regex(one.pattern, alphabet=TEXT)
    if least == 0 and most is None:
        return fitting
    return fitting.filter(lambda text: least <= len(text) <= (len(text) if most is None else most))


def _whole(one: inspect.IntType) -> Json:
    least = one.ge if one.gt is None else one.gt + 1
    most = one.le if one.lt is None else one.lt - 1
    step = one.multiple_of or 1
    first = None if least is None else math.ceil(least / step)
    return st.integers(first, None if most is None else math.floor(most / step)).map(lambda number: number * step)


def _number(one: inspect.FloatType) -> Json:
    if one.multiple_of is not None:
        whole = _whole(inspect.IntType(gt=one.gt, ge=one.ge, lt=one.lt, le=one.le, multiple_of=one.multiple_of))  # type: ignore[arg-type]
        return whole.map(float)
    least, most = one.ge if one.gt is None else one.gt, one.le if one.lt is None else one.lt
    above, below = one.gt is not None, one.lt is not None
    return st.floats(least, most, allow_nan=False, allow_infinity=False, exclude_min=above, exclude_max=below)


def _zoned(moments: Callable[..., Json]) -> Callable[[Any], Json]:
    def make(one: Any) -> Json:
        zones = {True: ZONES, False: st.none(), None: st.none() | ZONES}[one.tz]
        return moments(timezones=zones).map(_written)

    return make


def _written(moment: Any) -> str:
    return str(moment.isoformat())


SCALARS: Mapping[type, Callable[[Any], Json]] = {
    inspect.AnyType: lambda _: ANY_JSON,
    inspect.RawType: lambda _: ANY_JSON,
    inspect.NoneType: lambda _: st.none(),
    inspect.BoolType: lambda _: st.booleans(),
    inspect.StrType: _text,
    inspect.IntType: _whole,
    inspect.FloatType: _number,
    inspect.BytesType: lambda one: st.binary(min_size=one.min_length or 0, max_size=one.max_length).map(
        msgspec.to_builtins
    ),
    inspect.LiteralType: lambda one: st.sampled_from(one.values),
    inspect.EnumType: lambda one: st.sampled_from([each.value for each in one.cls]),
    inspect.DateTimeType: _zoned(st.datetimes),
    inspect.TimeType: _zoned(st.times),
    inspect.DateType: lambda _: st.dates().map(_written),
    inspect.TimeDeltaType: lambda _: st.timedeltas().map(msgspec.to_builtins),
    inspect.UUIDType: lambda _: st.uuids().map(str),
    inspect.DecimalType: lambda _: st.decimals(allow_nan=False, allow_infinity=False).map(str),
}

EXAMPLES = 200


def check_any_body(
    transform: Given,
    message: Any = None,
    *,
    references: Iterable[Row] = (),
    samples: Sequence[object] = (),
    examples: int = EXAMPLES,
) -> None:
    """Assert that any bytes, any JSON and any message, whole or damaged, become rows that can be stored, or a letter.

    A `message` is the type that the transform decodes from JSON, and `samples` are good bodies or events of any format:
    without either, few bodies come as far as its fields. Each body comes with the properties of some sample. The
    examples are the same in each run.
    """
    loaded, known, whole = transform_of(transform), tuple(references), [event_of(each) for each in samples]

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(any_bodies(message, [each.body for each in whole]), st.sampled_from(whole or [event_of(b"")]))
    def check(body: bytes, sample: Event) -> None:
        _check(loaded, structs.replace(sample, body=body), known)

    check()


def any_bodies(message: Any = None, samples: Sequence[bytes] = ()) -> st.SearchStrategy[bytes]:
    """Return a strategy for bytes, JSON, and messages and samples that are whole or damaged."""
    junk = st.binary() | ANY_JSON.map(msgspec.json.encode)
    if samples:
        junk |= st.sampled_from(samples) | cut_or_changed(st.sampled_from(samples))
    return junk if message is None else bodies(message) | damaged(bodies(message)) | junk


@st.composite
def cut_or_changed(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Return a body that is cut off, or has a different byte."""
    body = draw(whole)
    at = draw(st.integers(0, max(0, len(body) - 1)))
    changed = draw(st.none() | st.binary(min_size=1, max_size=1))
    return body[:at] if changed is None else body[:at] + changed + body[at + 1 :]


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Return a message that is cut off, has a different byte, or has a field that is missing, different or new."""
    body = draw(whole)
    if draw(st.sampled_from(("octets", "octets", "field"))) == "octets":
        return draw(cut_or_changed(st.just(body)))
    fields = msgspec.json.decode(body)
    if not isinstance(fields, dict) or not fields:
        return msgspec.json.encode([fields, draw(ANY_JSON)])
    name = draw(st.sampled_from(sorted(fields)) | st.text(st.characters(codec="utf-8")))
    if draw(st.booleans()):
        fields[name] = draw(ANY_JSON)
    else:
        fields.pop(name, None)
    return msgspec.json.encode(fields)


def _check(transform: Transform, event: Event, known: tuple[Row, ...]) -> None:
    found, body = outcome_of(transform, event, known), event.body
    if found.error is not None and not isinstance(found.error, PoisonEvent | MissingReference):
        raise AssertionError(
            f"{shown(body)} raised {found}: such a letter is retried, although it can never succeed; raise PoisonEvent"
        ) from found.error
    if (fault := fault_of_rows(transform, found.rows)) is not None:
        raise AssertionError(f"{shown(body)}: {fault}; raise PoisonEvent for a value that is out of range")
