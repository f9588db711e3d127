"""Values of any type of the product, none of which occurs twice."""

import random
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import date, datetime, timedelta
from functools import cache
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from msgspec import Struct
from msgspec.structs import fields as fields_of_struct

from core.aggregation.runs import Cut, Portion
from core.aggregation.spark_engine import SparkEngine
from core.model.events import Event, Position, Span
from core.model.rows import ReferenceKey, Row
from examples.home_security.aggregates.home_activity import HomeActivity
from tests.fakes.aggregation_engines import HOME_ACTIVITY
from tests.sql.statements import STATES, portion_of
from tests.sql.values import EPOCH, ROW_CLASSES, row_of

LISTS = (tuple, list, Sequence, Collection, Iterable)
SETS = (frozenset, set, AbstractSet)
OF_ALL = ("run_id",)  # a verb is about one run, which several of its arguments name


@cache
def hints_of(of: Any) -> Mapping[str, Any]:
    """Return the types of a function's arguments, or of a class's fields."""
    return get_type_hints(of)


class Distinct:
    """Makes values by their types. Chance, which a seed decides, leaves out what may be None, and takes a member of
    what is listed; what can differ from all before it does so."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._seed, self._members = seed, 0
        self._number = 1_000 * (seed + 1)

    def of(self, hint: Any, name: str = "") -> Any:
        """Return a value of a type; `name` is that of the field or argument."""
        plain = hint.__supertype__ if isinstance(hint, NewType) else hint
        if name == "job" and plain is str:
            return HOME_ACTIVITY  # the aggregate must be declared
        if plain is SparkEngine:
            return None  # SPARK_ENGINE is none
        if plain is Position:
            return self.of(Event)
        if name == "kind" and plain is str:
            return self._member(("batch", "retry", "replay"))  # of a ledger row
        if name in OF_ALL:
            return UUID(int=1) if plain is UUID else str(UUID(int=1))
        made = self._known(hint) if hint in (Cut, Portion, Span, ReferenceKey, Row) else self._scalar(plain, name)
        return self._made(plain, name) if made is None else made

    def arguments(self, hints: Mapping[str, Any]) -> dict[str, Any]:
        """Return values by the names of arguments or fields."""
        return {name: self.of(hint, name) for name, hint in hints.items()}

    def next(self) -> int:
        """Return a number that is higher than all before it."""
        self._number += 1
        return self._number

    def _known(self, hint: Any) -> Any:
        """Return a value whose parts must fit."""
        if hint is Portion:
            return portion_of(HOME_ACTIVITY, has_whole=self._chance.random() < 0.5)
        if hint is Span:
            return Span(*(self.of(each) for each in list(hints_of(Span).values())[:2]))
        if hint is ReferenceKey:
            return ReferenceKey(self._chance.choice(STATES), (f"text-{self.next()}",))
        return f'{{"1/{self.next()}": {self.next()}}}' if hint is Cut else row_of(self._chance.choice(ROW_CLASSES))

    def _scalar(self, hint: Any, name: str) -> Any:
        made: dict[Any, Any] = {
            int: self.next,
            str: lambda: f"{name or 'text'}-{self.next()}",
            float: lambda: self.next() + 0.5,
            bool: lambda: self._chance.random() < 0.5,
            bytes: lambda: f"bytes-{self.next()}".encode(),
            datetime: lambda: EPOCH + timedelta(seconds=self.next()),
            date: lambda: (EPOCH + timedelta(days=self.next())).date(),
            timedelta: lambda: timedelta(seconds=self.next()),
            UUID: lambda: UUID(int=self.next()),
            Any: self.next,
            object: self.next,
            type: lambda: HomeActivity if name == "level" else self._chance.choice(ROW_CLASSES),
        }
        return made[hint]() if hint in made else None

    def _made(self, hint: Any, name: str) -> Any:
        origin, within = get_origin(hint), get_args(hint)
        if origin is Literal:
            return self._member(within)
        if origin in (Union, types.UnionType):
            return self._either(within, name)
        if origin is type:
            return HomeActivity
        if origin is Callable:
            return lambda *_: self.of(within[-1], name)
        if origin in SETS:
            return frozenset(self.of(within[0], name) for _ in range(self._length()))
        if origin in LISTS:
            return self._listed(origin, within, name)
        if origin in (dict, Mapping):
            return self._mapped(*within)
        if is_dataclass(hint) and isinstance(hint, type):
            hints = hints_of(hint)
            return hint(**self.arguments({one.name: hints[one.name] for one in fields(hint) if one.init}))
        if isinstance(hint, type) and issubclass(hint, Struct):
            hints = hints_of(hint)
            return hint(**self.arguments({one.name: hints[one.name] for one in fields_of_struct(hint)}))
        raise NotImplementedError(f"{name}: {hint}")

    def _either(self, hints: tuple[Any, ...], name: str) -> Any:
        given = [hint for hint in hints if hint is not types.NoneType]
        is_missing = len(given) < len(hints) and self._chance.random() < 0.25
        return None if is_missing else self.of(given[0], name)

    def _listed(self, origin: Any, within: tuple[Any, ...], name: str) -> tuple[Any, ...]:
        if origin is not tuple or within[-1] is Ellipsis:
            return tuple(self.of(within[0], name) for _ in range(self._length()))
        return tuple(self.of(each, name) for each in within)

    def _mapped(self, key: Any, value: Any) -> Mapping[Any, Any]:
        if key is type:
            return {each: [(self.next(), self.next(), row_of(each))] for each in ROW_CLASSES}
        return {self.of(key): self.of(value) for _ in range(self._length())}

    def _member(self, members: tuple[Any, ...]) -> Any:
        """Return a member of a list; with the seeds, each comes in its turn."""
        self._members += 1
        return members[(self._seed + self._members) % len(members)]

    def _length(self) -> int:
        return self._chance.choice((1, 2))
