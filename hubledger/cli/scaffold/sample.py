"""A file of sample events, one JSON object a line, and the fields that its lines have."""

import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec

from core.model.bodies import cut_times, fault_of_body
from hubledger.cli.console import Refused
from hubledger.cli.formats.format import JSON, Format
from hubledger.cli.scaffold.each import Each
from hubledger.cli.scaffold.fields import LONGEST_TEXT, Field, Kind, checked, new_field
from local.lines import events_in, has_bodies

MOST_BYTES = 1024 * 1024  # of the lines that are kept
LIMITS = (40, 100, 200, 400, 1000, 2000, LONGEST_TEXT)  # of texts: the first that is twice as long as any text
_INTEGERS, _DIGITS = range(-(2**63), 2**63), 28  # beyond an integer; digits before the point of a decimal
Instant = Annotated[datetime, msgspec.Meta(tz=True)]
_ASCII = re.compile(r"[!-~]+")
_MONEY = re.compile(r"(?:^|_)(?:price|amount|total|cost|fee|sum|balance|paid|tax|discount)(?:_|$)")
_KIND = re.compile(r"(?:^|_)(?:type|kind|event|action)$")
MOST_KINDS = 12  # values of a field that may name the kinds of event


@dataclass(slots=True)
class Seen:
    """The values of a field in all lines: its kinds, each with the first line, and the facts that decide its type."""

    name: str
    is_exact: bool = False  # its numbers are decimals
    kinds: dict[Kind, int] = field(default_factory=dict)
    longest: int = 0  # UTF-16 units, as SQL Server counts
    is_ascii: bool = True
    present: int = 0  # lines in which it has a value
    values: set[str] = field(default_factory=set)  # the first texts

    def add(self, value: Any, line: int) -> None:
        """Count a value that is not null."""
        self.present += 1
        kind: Kind = "decimal" if self.is_exact else _kind_of(self.name, value, line)
        self.kinds.setdefault(kind, line)
        if isinstance(value, str):
            if len(self.values) <= MOST_KINDS and len(value) <= LIMITS[0]:
                self.values.add(value)
            self.longest = max(self.longest, len(value.encode("utf-16-le", "surrogatepass")) // 2)
            self.is_ascii = self.is_ascii and bool(_ASCII.fullmatch(value))

    def field(self, lines: int) -> Field:
        """Return the field. Raises Refused when its values have types that no column holds together."""
        kind = self._kind()
        length = None if kind != "text" else next((each for each in LIMITS if each >= 2 * self.longest), None)
        return new_field(self.name, kind, length, is_optional=self.present < lines)

    def _kind(self) -> Kind:
        kinds = set(self.kinds)
        if len(kinds) <= 1:
            return next(iter(kinds), "text")
        if kinds <= {"text", "instant", "date"}:
            return "text"
        if kinds in ({"integer", "float"}, {"integer", "decimal"}):
            return "float" if "float" in kinds else "decimal"
        (one, first), (other, second) = list(self.kinds.items())[:2]
        raise Refused(
            f"the field {self.name} is {one} in line {first} and {other} in line {second}: correct the lines, or keep"
            f' it as JSON text with --field "{self.name}:json"'
        )


@dataclass(frozen=True, slots=True)
class Sample:
    """The fields of a file, those whose texts are all printable ASCII without spaces, and its first lines. `faults` are
    those of the lines that were left out, and `advice` is what a person may want to choose differently."""

    fields: tuple[Field, ...]
    is_ascii: frozenset[str]
    first: tuple[bytes, ...]
    bodies: tuple[bytes, ...]  # of the first lines
    lines: int
    faults: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


def read_sample(
    path: Path, given: dict[str, Field], most: int = 100, format_: Format = JSON, each: Each | None = None
) -> Sample:
    """Read a whole file; `given` fields keep their types. Lines that are no JSON object are left out.

    Raises Refused when no line is left, and for a value that no column can hold.
    """
    seen: dict[str, Seen] = {}
    first: list[tuple[bytes, bytes]] = []
    faults: list[str] = []
    doubled: dict[str, int] = {}
    events, count, kept = 0, 0, 0
    for line, octets, body in format_.read(path):
        try:
            objects = objects_of(path, octets, line, each)
        except Refused as fault:
            faults.append(str(fault))
            continue
        events += 1
        count += len(objects)
        for found in objects:
            doubled.update(dict.fromkeys(getattr(found, "doubled", ()), line))
            for name, value in found.items():
                one = seen.setdefault(name, Seen(name, name in format_.exact))
                if value is not None and name not in given:
                    one.add(value, line)
        kept += len(octets)
        if events == 1 or (events <= most and kept <= MOST_BYTES):
            first.append((octets, body))
    if not count:
        raise Refused(_csv(path) or faults[0] if faults else f"{path} is empty: it needs one JSON object a line")
    fields = checked([*(given.get(name) or one.field(count) for name, one in seen.items()), *_others(given, seen)])
    ascii_ones = frozenset(name for name, one in seen.items() if set(one.kinds) == {"text"} and one.is_ascii)
    texts, bodies = (tuple(each[place] for each in first) for place in (0, 1))
    advice = (*_advice(fields, seen), *_advice_of_shape(doubled, texts[0], each))
    return Sample(fields, ascii_ones, texts, bodies, events, tuple(faults), advice)


def _advice(fields: Sequence[Field], seen: Mapping[str, Seen]) -> Iterator[str]:
    """Say which fields may be money that a float rounds, and which may tell kinds of event apart."""
    for one in fields:
        values = seen[one.name].values if one.name in seen else set()
        if one.kind == "float" and _MONEY.search(one.column):
            exact = f"{one.name}:decimal{'?' if one.is_optional else ''}"
            yield f'{one.name} looks like money, and a float rounds it: --field "{exact}" keeps it exactly'
        if one.kind in ("text", "ascii") and _KIND.search(one.column) and 1 < len(values) <= MOST_KINDS:
            named = ", ".join(sorted(values))
            yield (
                f"the field {one.name} has {len(values)} values ({named}): if they are different kinds of event,"
                " give each a row class of its own, as in examples/home_security/transform.py"
            )


def _advice_of_shape(doubled: Mapping[str, int], first: bytes, each: Each | None) -> Iterator[str]:
    """Say which names are there twice in an object, and whether an event may hold several."""
    for name, line in doubled.items():
        yield f"line {line} has the name {name} twice: the last value counts, in the app too"
    fields: dict[str, Any] = {} if each else json.loads(first)
    for name, value in fields.items() if len(fields) == 1 else ():
        if value and isinstance(value, list) and all(isinstance(one, dict) for one in value):
            yield f"the only field, {name}, is a list of objects: --each {name} makes rows of each of them"


def _csv(path: Path) -> str | None:
    """Return the refusal of a file of CSV; None for any other."""
    line = "" if has_bodies(path) else next(events_in(path)).body.decode(errors="replace").strip()
    mark = next((each for each in "\t;," if each in line and line[0] not in "{["), None)
    if mark is None or path.suffix == ".gz":
        return None
    opened = f'open({json.dumps(str(path), ensure_ascii=False)}, newline="", encoding="utf-8-sig")'
    reader = f"csv.DictReader({opened}, delimiter={json.dumps(mark)})"
    code = f"import csv, json; [print(json.dumps(row)) for row in {reader}]"
    return f"{path} is no JSON, and may be CSV: python3 -c {shlex.quote(code)} > events.jsonl writes its lines as JSON"


def _others(given: dict[str, Field], seen: dict[str, Seen]) -> Iterator[Field]:
    return (one for name, one in given.items() if name not in seen)


class Doubled(dict[str, Any]):
    """An object with a name that is there twice: its last value counts, as in the app."""

    doubled: tuple[str, ...] = ()


def objects_of(path: Path, octets: bytes, line: int, each: Each | None) -> list[dict[str, Any]]:
    """Return the object of an event, or those of its elements. Raises Refused when one is anything else."""
    if each is None:
        return [_object_of(octets, f"{path}, line {line}")]
    try:
        elements = each.elements_of(octets)
    except (ValueError, RecursionError) as error:
        fault = fault_of_body(octets, error)
        raise Refused(f"{path}, line {line} is no event that --each {each.name} parts: {fault}") from error
    return [_object_of(one, f"{path}, line {line}, element {number}") for number, one in enumerate(elements, 1)]


def _object_of(octets: bytes, place: str) -> dict[str, Any]:
    try:
        msgspec.json.decode(octets)  # it refuses what the app refuses: half of a surrogate pair, 1e400
        found = json.loads(octets.decode(), object_pairs_hook=_object, parse_constant=_no_number)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        if (fault := fault_of_body(octets, error)) != str(error):
            raise Refused(f"{place} is not JSON: {fault}") from error
        if isinstance(error, UnicodeDecodeError):
            raise Refused(f"{place} is not UTF-8: {error.reason} at byte {error.start}") from error
        raise Refused(f"{place} is not JSON: {error}; write one JSON object a line, as `jq -c .` does") from error
    if isinstance(found, list):
        raise Refused(
            f"{place} is no JSON object, but a list: --each array makes rows of each element, and only a file named"
            " *.json may be one list of events"
        )
    if not isinstance(found, dict):
        raise Refused(f"{place} is no JSON object: write one event a line, such as " + '{"id": "A-1"}')
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        found = Doubled(found)
        names = [name for name, _ in pairs]
        found.doubled = tuple(name for name in found if names.count(name) > 1)
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _kind_of(name: str, value: Any, line: int) -> Kind:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return _kind_of_whole(name, value, line)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Refused(f"line {line}: the number of {name} is too large for any column")
        return "float"
    if not isinstance(value, str):
        return "json"
    return "instant" if _is(value, Instant) else "date" if _is(value, date) else "text"


def _kind_of_whole(name: str, value: int, line: int) -> Kind:
    if value in _INTEGERS:
        return "integer"
    if Decimal(value).adjusted() >= _DIGITS:
        raise Refused(f"line {line}: the number of {name} has more than {_DIGITS} digits, which no column holds")
    return "decimal"


def _is(value: str, kind: Any) -> bool:
    """Return True when the body of an event may hold a text as this type."""
    try:
        msgspec.convert(cut_times(value.encode()).decode(), kind)
    except msgspec.ValidationError:
        return False
    return True
