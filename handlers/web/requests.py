"""Read a request into the shapes of its operation: completely, or as a problem that names the field."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from itertools import chain
from typing import Any, TypeVar

import azure.functions as func
import msgspec

from core.api.operation import Operation
from core.api.problems import NOT_JSON, TOO_LARGE, FieldFault, Problem, invalid
from core.api.route import REVEALING, Level
from core.model.shapes import MEANT, Nothing, Shape, converted, reader_of
from core.model.transforms import cut_times, cutting_times

LARGEST_BODY = 256 * 1024  # octets
LARGEST_QUERY = 8_000  # characters of all parameters together
OF_THE_HOST = {"code", "clientid"}  # the host's own parameters: they carry a key
DATED = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]")
Read = TypeVar("Read", bound=Shape)

_PLACED = re.compile(r"(?P<what>.*?)(?: - at `(?P<at>.*)`)?", re.DOTALL)
_FORM = re.compile(r"Expected `str` matching regex '(?P<pattern>.*)'", re.DOTALL)
_FIELD = re.compile(r"Object (?:contains unknown|missing required) field `(?P<name>.*)`", re.DOTALL)


def read_path(req: func.HttpRequest, operation: Operation) -> Shape:
    """Read the values in the path."""
    return _typed(dict(req.route_params), operation.path)


def read_query(req: func.HttpRequest, operation: Operation, level: Level) -> Shape:
    """Read the parameters after the question mark."""
    given = {name: value for name, value in req.params.items() if name.lower() not in OF_THE_HOST}
    if sum(len(name) + len(value) for name, value in given.items()) > LARGEST_QUERY:
        raise invalid("query", f"all parameters together may have {LARGEST_QUERY} characters")
    read = _typed(given, operation.query)
    for name in read.revealing() if level is not REVEALING else ():
        raise invalid(name, "only a revealing address takes this")
    # msgspec reads null, whole numbers as 1e2 and 1.0, and instants as seconds since 1970 too.
    for name, text in given.items():
        value = getattr(read, name)
        if value is None:
            raise invalid(name, "a parameter cannot be null: leave it out")
        if type(value) is int and text != str(value):
            raise invalid(name, "must be a whole number, in digits")
        if isinstance(value, datetime) and not DATED.match(text):
            raise invalid(name, "must be an instant in the form of RFC 3339")
    return read


def read_body(req: func.HttpRequest, operation: Operation) -> Shape:
    """Read the JSON body, if the operation takes one."""
    if operation.body is Nothing:
        return Nothing()
    octets = req.get_body()
    if len(octets) > LARGEST_BODY:
        raise Problem(TOO_LARGE, f"the body has {len(octets)} octets; the limit is {LARGEST_BODY}")
    kind = req.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(NOT_JSON, "Content-Type must be application/json", (FieldFault("Content-Type", "not JSON"),))
    try:
        read: Shape = cutting_times(reader_of(operation.body).decode)(octets)
        # Read twice: msgspec takes the last of two values of one name, and json alone would take NaN and UTF-16 too.
        json.loads(octets, object_pairs_hook=_refuse_duplicates)
    except msgspec.ValidationError as error:
        raise _refused(str(error), "body") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid("body", f"not JSON: {error}") from None
    named = [name for name in read.ONE_OF if getattr(read, name) is not None]
    if read.ONE_OF and len(named) != 1:
        raise invalid(named[-1] if named else read.ONE_OF[0], f"set exactly one of {', '.join(read.ONE_OF)}")
    return read


def revealing_fields(given: Shape, where: str = "") -> list[str]:
    """Return the places of the given fields that only a caller who may reveal gives, also within its shapes."""
    values = {name: value for name in given.__struct_fields__ if (value := getattr(given, name)) is not None}
    within = [revealing_fields(one, f"{where}{name}.") for name, one in values.items() if isinstance(one, Shape)]
    return [f"{where}{name}" for name in given.revealing()] + list(chain(*within))


def _refuse_duplicates(pairs: list[tuple[str, object]]) -> None:
    """Refuse an object with two values of one name: readers differ in which value they take."""
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise invalid(name, "this name occurs twice in one object")


def _typed(given: Mapping[str, Any], shape: type[Read]) -> Read:
    try:
        octets = {name: cut_times(text.encode("utf-8", "surrogatepass")) for name, text in given.items()}
        cut = {name: text.decode("utf-8", "surrogatepass") for name, text in octets.items()}
        read: Read = converted(cut, shape, strict=False)
    except msgspec.ValidationError as error:
        raise _refused(str(error), "") from None
    for name, text in given.items():
        if isinstance(getattr(read, name), str):
            setattr(read, name, text)
    return read


def _refused(text: str, whole: str) -> Problem:
    """Take the field from the text of msgspec, which reports the first fault."""
    placed = _PLACED.fullmatch(text)
    what, at = (placed["what"], placed["at"] or "") if placed else (text, "")
    named = _FIELD.fullmatch(what)
    path = [part for part in (at.removeprefix("$").removeprefix("."), named["name"] if named else "") if part]
    if named is not None:
        what = "unknown field" if "unknown" in what.partition("`")[0] else "is required"
    elif (form := _FORM.fullmatch(what)) is not None:  # never say a regular expression
        words = (words for pattern, words in MEANT.items() if repr(pattern)[1:-1] == form["pattern"])
        what = next(words, "this text does not have the form that /api/openapi.json describes")
    return invalid(".".join(path) or whole, what)
