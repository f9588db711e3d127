"""A file of sample events, one JSON object a line, and the fields that its lines have."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec

from core.model.bodies import cut_times
from hubledger.cli.console import Refused
from hubledger.cli.formats.format import JSON, Format
from hubledger.cli.scaffold.fields import LONGEST_TEXT, Field, Kind, checked, new_field

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


def read_sample(path: Path, given: dict[str, Field], most: int, format_: Format = JSON) -> Sample:
    """Read a whole file; `given` fields keep their types. Lines that are no JSON object are left out.

    Raises Refused when no line is left, and for a value that no column can hold.
    """
    seen: dict[str, Seen] = {}
    first: list[tuple[bytes, bytes]] = []
    faults: list[str] = []
    count, kept = 0, 0
    for line, octets, body in format_.read(path):
        try:
            found = object_of(path, octets, line)
        except Refused as fault:
            faults.append(str(fault))
            continue
        count += 1
        for name, value in found.items():
            one = seen.setdefault(name, Seen(name, name in format_.exact))
            if value is not None and name not in given:
                one.add(value, line)
        kept += len(octets)
        if count == 1 or (count <= most and kept <= MOST_BYTES):
            first.append((octets, body))
    if not count:
        raise Refused(faults[0] if faults else f"{path} is empty: it needs one JSON object a line")
    fields = checked([*(given.get(name) or one.field(count) for name, one in seen.items()), *_others(given, seen)])
    ascii_ones = frozenset(name for name, one in seen.items() if set(one.kinds) == {"text"} and one.is_ascii)
    texts, bodies = (tuple(each[place] for each in first) for place in (0, 1))
    return Sample(fields, ascii_ones, texts, bodies, count, tuple(faults), tuple(_advice(fields, seen)))


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


def _others(given: dict[str, Field], seen: dict[str, Seen]) -> Iterator[Field]:
    return (one for name, one in given.items() if name not in seen)


def object_of(path: Path, octets: bytes, line: int) -> dict[str, Any]:
    """Return the object of a line. Raises Refused when it is anything else."""
    try:
        msgspec.json.decode(octets)  # it refuses what the app refuses: half of a surrogate pair, 1e400
        found = json.loads(octets.decode(), object_pairs_hook=_once, parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise Refused(f"{path}, line {line} is not UTF-8: {error.reason} at byte {error.start}") from error
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refused(f"{path}, line {line} is not JSON: {error}; write one JSON object a line") from error
    if not isinstance(found, dict):
        raise Refused(f"{path}, line {line} is no JSON object: write one event a line, such as " + '{"id": "A-1"}')
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {next(name for name in names if names.count(name) > 1)!r} is there twice")
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
