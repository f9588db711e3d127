"""Answers that show a value: their fields are those of the value, in its order, and one function writes them.

A sequence number has 64 bits, so it is shown as a string. A word of a closed set is shown as a string too, because new
words may be added.
"""

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from core.api.operation import Answered
from core.model.spans import SequenceNumber

Shape = TypeVar("Shape", bound=Answered)


def shape_of(value_class: type, hidden: tuple[str, ...] = (), **types: Any) -> Any:
    """Return the base of an answer with the fields of a dataclass but for hidden ones, some with types of their own."""
    shown = [(name, types.get(name, _shown(hint))) for name, hint in _hints(value_class) if name not in hidden]
    return msgspec.defstruct(f"{value_class.__name__}Shape", shown, bases=(Answered,), kw_only=True)


def written(shape: type[Shape], value: object, **given: Any) -> Shape:
    """Return an answer that shows a value; `given` are the fields that differ from it, or that it does not have."""
    writers = _writers(cast(Any, shape), cast(Any, type(value)))
    own = {name: write(getattr(value, name)) for name, write in writers if name not in given}
    return shape(**own, **given)


@cache
def _writers(shape: Any, value_class: Any) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    return tuple((name, _writer(hint)) for name, hint in _hints(value_class) if name in shape.__struct_fields__)


def _hints(value_class: Any) -> list[tuple[str, Any]]:
    hints = get_type_hints(value_class)
    return [(one.name, hints[one.name]) for one in fields(value_class)]


def _writer(hint: Any) -> Callable[[Any], Any]:
    if SequenceNumber in _members(hint):
        return lambda value: None if value is None else str(value)
    return lambda value: value


def _shown(hint: Any) -> Any:
    """Return the type under which an answer shows a type."""
    shown = [_plain(one) for one in _members(hint)]
    return Union[tuple(shown)]  # noqa: UP007 - it is computed


def _plain(hint: Any) -> Any:
    if hint is SequenceNumber or get_origin(hint) is Literal:
        return str
    if get_origin(hint) is not None:
        return hint if get_origin(hint) is not tuple else list[_shown(get_args(hint)[0])]  # type: ignore[misc]
    return getattr(hint, "__supertype__", hint)


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
