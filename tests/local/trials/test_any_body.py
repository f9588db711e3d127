from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, TypedDict
from uuid import UUID

import msgspec
import pytest
from hypothesis import Phase, find, given, settings
from msgspec import Meta, Struct

from examples.flight_info import transform as flight_info
from examples.home_security import transform as home_security
from examples.home_security.transform import Home
from hubledger.testing import bodies, check_any_body, messages
from tests.local.trials.conftest import Plant


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Inner(Struct, rename="camel"):
    inner_name: str
    inner_size: Annotated[float, Meta(gt=0, lt=1)] = 0.5


class Tree(Struct):
    name: Annotated[str, Meta(max_length=3)]
    children: Annotated[list["Tree"], Meta(max_length=2)] = []


class Dog(Struct, tag="dog", tag_field="kind", forbid_unknown_fields=True):
    name: str


class Cat(Struct, tag="cat", tag_field="kind", array_like=False):
    lives: Annotated[int, Meta(ge=1, le=9)]


class Words(TypedDict):
    first: str
    second: NotRequired[int]


@dataclass(frozen=True)
class Plain:
    number: Annotated[int, Meta(gt=10, lt=20, multiple_of=3)]
    word: Annotated[str, Meta(pattern="^[a-z]{2,4}\\Z", max_length=3)]
    inner: Inner | None = None
    words: list[str] = field(default_factory=list)


QUICKLY = settings(max_examples=5_000, phases=(Phase.generate,), database=None, derandomize=True)
TYPES = [
    Inner, Tree, Dog | Cat, Words, Plain, Colour, Literal["a", 5], int, float, bool, str, bytes, Decimal,
    UUID, date, datetime, time, timedelta, Annotated[datetime, Meta(tz=True)], Annotated[datetime, Meta(tz=False)],
    dict[str, int], dict[int, date], set[int], frozenset[str], tuple[int, str], tuple[int, ...], int | None, Any,
    Annotated[int, Meta(gt=5, lt=7)],
    Annotated[float, Meta(ge=0, le=1)], Annotated[float, Meta(multiple_of=0.5)], Annotated[bytes, Meta(max_length=3)],
    Annotated[str, Meta(min_length=2, max_length=4)], Annotated[list[int], Meta(min_length=2, max_length=3)],
]  # fmt: skip


@pytest.mark.parametrize("of", TYPES, ids=str)
def test_every_body_of_a_type_decodes_to_it(of: Any) -> None:
    decoder = msgspec.json.Decoder(of)

    @settings(max_examples=30)
    @given(bodies(of))
    def check(body: bytes) -> None:
        decoder.decode(body)

    check()


def test_the_ends_of_a_type_are_reached_a_default_is_missing_at_times_and_one_that_json_lacks_is_refused() -> None:
    reached: list[tuple[Any, Callable[[Any], bool]]] = [
        (Plain, lambda one: one.number == 12 and one.inner is not None and len(one.word) == 3),
        (Plain, lambda one: one.number == 18 and one.inner is None),
        (Dog | Cat, lambda one: isinstance(one, Cat) and one.lives == 9),
        (Tree, lambda one: bool(one.children and one.children[0].children)),
        (Annotated[datetime, Meta(tz=True)], lambda one: one.utcoffset() < timedelta(hours=-10)),
        (Annotated[str, Meta(pattern="^[a-z]+$")], lambda one: one.endswith("\n")),
        (datetime, lambda one: one.tzinfo is None),
        (str, lambda one: not one.isascii()),
    ]
    for of, wanted in reached:
        assert wanted(find(messages(of), wanted, settings=QUICKLY))
    find(bodies(Inner), lambda body: b"innerSize" in body, settings=QUICKLY)
    find(bodies(Inner), lambda body: b"innerSize" not in body, settings=QUICKLY)
    with pytest.raises(TypeError, match="has no strategy"):
        bodies(msgspec.msgpack.Ext)


@dataclass
class Message:
    name: str
    ppm: int
    note: str = ""


DECODE = """try: body = json.loads(event.body)
    except (ValueError, RecursionError) as error: raise PoisonEvent(str(error)) from error
    if not isinstance(body, dict) or set(body) - {'name', 'ppm', 'note'}: raise PoisonEvent('other fields')
    if not isinstance(body.get('name'), str) or type(body.get('ppm')) is not int: raise PoisonEvent('no name or number')
"""
ANY_FIELDS = """try: body = json.loads(event.body)
    except (ValueError, RecursionError) as error: raise PoisonEvent(str(error)) from error
    if not isinstance(body, dict) or not {'name', 'ppm'} <= set(body): raise PoisonEvent('no message')
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("return reading(event.body.decode())", "UnicodeDecodeError"),
        ("return reading(json.loads(event.body)['name'])", "JSONDecodeError"),
        ("if text[:1] == '\"': raise KeyError(text)\n    raise PoisonEvent(text)", "KeyError"),
        (f"{ANY_FIELDS}    return reading(body['name'].upper())", "AttributeError"),
        (f"{DECODE}    return reading(body['name'], 10 // body['ppm'])", "ZeroDivisionError"),
        (f"{DECODE}    return reading(body['name'], (body['note'], body['ppm'])[1])", "KeyError: 'note'"),
        (f"{DECODE}    return reading(body['name'], float('nan') if body['ppm'] > 10 else 1)", "cannot be stored"),
    ],
)
def test_a_body_that_raises_anything_but_poison_or_whose_rows_do_not_fit_is_found(
    plant: Plant, statement: str, fault: str
) -> None:
    with pytest.raises(AssertionError, match=fault):
        check_any_body(plant(statement), Message)


@pytest.mark.slow
def test_our_own_transforms_and_one_that_refuses_what_it_cannot_use_pass(plant: Plant) -> None:
    check_any_body(plant(f"{DECODE}    return reading(body['name'], body['ppm'] % 7)"), Message)
    check_any_body(plant("raise PoisonEvent(text)"))
    check_any_body(home_security, home_security._Body, references=[Home("home-1", "UTC", True)], examples=50)
    check_any_body(flight_info, flight_info._Change, examples=50)
