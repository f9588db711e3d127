"""A file of sample events, one JSON object a line, and the fields that its lines have."""

import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec

from core.model.transforms import cut_times, fault_of_body
from hubledger.cli.formats.format import JSON, Format
from hubledger.cli.output import Refused, counted
from hubledger.cli.scaffold.design import EPOCHS, LONGEST_TEXT, Each, Field, Kind, checked, column_of, new_field
from local.feed.event_file import FileEvent, events_in

MOST_SAMPLES, MOST_BYTES = 100, 1024 * 1024  # lines that become the samples of the room, and their bytes
MADE, NINE = 5, 1_767_258_000  # events for fields without a file; seconds until 2026-01-01T09:00:00Z
_INTEGERS, _DIGITS = range(-(2**63), 2**63), 28  # beyond an integer; digits before the point of a decimal
_EXACT_AS_FLOAT = 2**53
Instant = Annotated[datetime, msgspec.Meta(tz=True)]
_TIME = re.compile(r"(?:^|_)(?:ts|time|timestamp|datetime|date|at|epoch|created|updated|modified)(?:_|$)")
_SINCE_1970 = (946_684_800, 4_102_444_800)  # the seconds of the years 2000 to 2100, in which a number looks like a time
_NO_INSTANT = {  # why a text is none
    "without a zone": re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?$"),
    "with an hour 24 or a second 60": re.compile(r"\d{4}-\d\d-\d\d[Tt ](?:24:\d\d:\d\d|\d\d:\d\d:60)"),
    "in a different form": re.compile(""),
}
_MONEY = re.compile(r"(?:^|_)(?:price|amount|total|cost|fee|sum|balance|paid|tax|discount)(?:_|$)")
_KIND = re.compile(r"(?:^|_)(?:type|kind|event|action)$")
MOST_KINDS, SHORT = 12, 40  # values of a field that may name the kinds of event, and their characters
MOST_NAMED = 3  # lines and fields that a sentence names


@dataclass(slots=True)
class Seen:
    """The values of a field in all lines: its kinds, each with the first line, and the facts that decide its type."""

    name: str
    is_exact: bool = False  # its numbers are decimals
    kinds: dict[Kind, int] = field(default_factory=dict)
    longest: int = 0  # UTF-16 units, as SQL Server counts
    can_name: bool = True  # no text ends with a blank, so it can be in a key
    most: float = 0  # the greatest number, without its sign
    most_whole: int = 0
    units: frozenset[Kind] = frozenset(EPOCHS)  # in which all numbers are instants of this century
    present: int = 0  # lines in which it has a value
    values: set[str] = field(default_factory=set)  # the first texts
    no_instants: Counter[str] = field(default_factory=Counter)  # the texts that are none, by the reason
    examples: dict[str, list[tuple[int, str]]] = field(default_factory=dict)  # the first of them: line and text
    fault: str = ""  # of a number that no column holds

    @property
    def is_time(self) -> bool:
        """Return True when the name says that the values are times."""
        return bool(_TIME.search(column_of(self.name)))

    def add(self, value: Any, line: int) -> None:
        """Count a value that is not null."""
        self.present += 1
        kind: Kind = "decimal" if self.is_exact else _kind_of(value)
        self.kinds.setdefault(kind, line)
        if isinstance(value, str):
            if len(self.values) <= MOST_KINDS and len(value) <= SHORT:
                self.values.add(value)
            self.longest = max(self.longest, len(value.encode("utf-16-le", "surrogatepass")) // 2)
            self.can_name = self.can_name and not value.endswith(" ")
            if kind == "text":
                why = next(reason for reason, form in _NO_INSTANT.items() if form.match(value))
                self.no_instants[why] += 1
                if self.no_instants[why] <= MOST_NAMED:
                    self.examples.setdefault(why, []).append((line, value[:SHORT]))
        elif isinstance(value, int | float):
            if isinstance(value, float) and not math.isfinite(value):
                self.fault = self.fault or f"line {line}: the number of {self.name} is too large for any column"
            elif not isinstance(value, float) and Decimal(value).adjusted() >= _DIGITS:
                digits = f"has more than {_DIGITS} digits, which no column holds"
                self.fault = self.fault or f"line {line}: the number of {self.name} {digits}"
            self.most = max(self.most, abs(value))
            self.most_whole = max(self.most_whole, abs(value) if isinstance(value, int) else 0)
            seconds = {one: value * float(EPOCHS["epoch_s"]) / float(EPOCHS[one]) for one in self.units}
            self.units = frozenset(one for one in seconds if _SINCE_1970[0] <= seconds[one] < _SINCE_1970[1])

    def field(self, lines: int, *, is_loose: bool = False) -> Field:
        """Return the field. Raises Refused when no column holds its values.

        `is_loose`: it takes numbers with a fraction, and events without it.
        """
        if self.fault:
            raise Refused(self.fault)
        kind = self._kind(is_loose=is_loose)
        length = LONGEST_TEXT if kind == "text" and 2 * self.longest <= LONGEST_TEXT else None
        return new_field(self.name, kind, length, is_optional=is_loose or self.present < lines)

    def _kind(self, *, is_loose: bool) -> Kind:
        kinds = set(self.kinds)
        if kinds and kinds <= {"integer", "float"} and self.is_time and self.units:
            return next(iter(self.units))
        is_rounded = self.most_whole > _EXACT_AS_FLOAT and self.most < 10**_DIGITS
        if is_loose and kinds <= {"integer", "float", "decimal"} and kinds:
            return "decimal" if "decimal" in kinds or is_rounded else "float"
        if len(kinds) <= 1:
            return next(iter(kinds), "text")
        if kinds <= {"text", "instant", "date"}:
            return "text"
        if kinds in ({"integer", "float"}, {"integer", "decimal"}):
            return "float" if "float" in kinds and not is_rounded else "decimal"
        if is_loose:
            return "json"
        (one, first), (other, second) = list(self.kinds.items())[:2]
        raise Refused(
            f"the field {self.name} is {one} in line {first} and {other} in line {second}: correct the lines, or keep"
            f' it as JSON text with --field "{self.name}:json"'
        )


@dataclass(frozen=True, slots=True)
class Sample:
    """The fields of a file, the greatest length of each text that can be in a key, and the first lines. `faults` are
    those of the lines that were left out, `notes` say how fields are read, and `advice` is what a person may want to
    choose differently."""

    fields: tuple[Field, ...]
    lengths: Mapping[str, int]
    first: tuple[bytes, ...]
    events: tuple[FileEvent, ...]  # of the first lines
    lines: int
    instead: Mapping[str, str] = field(default_factory=dict)  # the types that the lines show of given fields
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


def read_sample(
    path: Path,
    given: dict[str, Field],
    format_: Format = JSON,
    loose_but: frozenset[str] | None = None,
    each: Each | None = None,
) -> Sample:
    """Read a whole file. `given` fields keep their types. Lines that are no JSON object are left out.

    `loose_but` makes all fields loose but those that it names. Raises Refused when no line is left, for a value that no
    column can hold, and for a given field that some line lacks.
    """
    seen: dict[str, Seen] = {}
    first: list[tuple[bytes, FileEvent]] = []
    faults: list[str] = []
    doubled: dict[str, int] = {}
    events, count, kept = 0, 0, 0
    for event, octets in format_.read(path):
        line = event.line
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
                if value is not None:
                    one.add(value, line)
        kept += len(octets)
        if events == 1 or (events <= MOST_SAMPLES and kept <= MOST_BYTES):
            first.append((octets, event))
    if not count:
        raise Refused(_csv(path) or faults[0] if faults else f"{path} is empty: it needs one JSON object a line")
    fields, instead = _fields(path, given, seen, count, loose_but)
    lengths = {
        one.name: seen[one.name].longest
        for one in fields
        if one.kind == "text" and one.name not in given and seen[one.name].can_name
    }
    texts, sent = tuple(octets for octets, _ in first), tuple(event for _, event in first)
    notes, advice = tuple(_notes(fields, seen, given, count)), list(_advice(fields, seen))
    for name, line in doubled.items():
        advice.append(f"line {line} has the name {name} twice: the last value counts, in the app too")
    only: dict[str, Any] = {} if each else json.loads(texts[0])
    for name, value in only.items() if len(only) == 1 else ():
        if value and isinstance(value, list) and all(isinstance(one, dict) for one in value):
            advice.append(f"the only field, {name}, is a list of objects: --each {name} makes rows of each of them")
    return Sample(fields, lengths, texts, sent, events, instead, tuple(faults), notes, tuple(advice))


def _fields(
    path: Path, given: Mapping[str, Field], seen: Mapping[str, Seen], lines: int, loose_but: frozenset[str] | None
) -> tuple[tuple[Field, ...], dict[str, str]]:
    """Return the fields, and the types that the lines show of those that were given.

    Raises Refused for the first given field that some line lacks, and that is not optional.
    """
    instead = {}
    for name, one in given.items():
        present = seen[name].present if name in seen else 0
        if present < lines and not one.is_optional:
            raise Refused(
                f"--field {name}:{one.written}: {lines - present} of {lines} lines of {path} have no value of {name}:"
                f' write --field "{name}:{one.written}?"'
            )
        with suppress(Refused):
            if name in seen:
                instead[name] = seen[name].field(lines).written
    found = [
        given.get(name) or each.field(lines, is_loose=loose_but is not None and not {name, column_of(name)} & loose_but)
        for name, each in seen.items()
    ]
    return checked([*found, *(one for name, one in given.items() if name not in seen)]), instead


def _notes(fields: Sequence[Field], seen: Mapping[str, Seen], given: Mapping[str, Field], lines: int) -> Iterator[str]:
    """Say which texts are no instants and why, which numbers are instants, and what becomes of objects and lists."""
    own = [one for one in fields if one.name in seen and one.name not in given]
    for one in own:
        found = seen[one.name]
        if one.kind in EPOCHS:
            number = f"{one.name}:{'float' if 'float' in found.kinds else 'integer'}{'?' if one.is_optional else ''}"
            yield f'{one.name} is a time, as a number since 1970 ({one.kind}): --field "{number}" keeps the number'
        if one.kind == "text" and found.no_instants and (found.is_time or "instant" in found.kinds):
            why = "; ".join(
                f"{counted(found.no_instants[reason], 'line')} {reason}, such as line"
                f" {', '.join(str(line) for line, _ in first)} ({first[0][1]})"
                for reason, first in found.examples.items()
            )
            count = f"{found.no_instants.total()} of {counted(lines, 'line')}"
            yield f"{one.name} is text, because {count} are no instant as 2026-03-01T10:00:00Z: {why}"
    for name, one in given.items():
        units = seen[name].units if name in seen and set(seen[name].kinds) <= {"integer", "float"} else frozenset()
        if one.kind in EPOCHS and units and one.kind not in units:
            yield f"the numbers of {name} are times of this century as {next(iter(units))}, and {one.kind} was given"
    if nested := [one.name for one in own if one.kind == "json"]:
        yield f"{named(nested)}: kept whole as JSON text, so no field inside becomes a column"


def named(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    more = f" and {len(names) - 2 * MOST_NAMED:,} more" if len(names) > 2 * MOST_NAMED else ""
    return f"{', '.join(names[: 2 * MOST_NAMED])}{more}"


def _advice(fields: Sequence[Field], seen: Mapping[str, Seen]) -> Iterator[str]:
    """Say which fields may be money that a float rounds, and which may tell kinds of event apart."""
    for one in fields:
        values = seen[one.name].values if one.name in seen else set()
        if one.kind == "float" and _MONEY.search(one.column):
            exact = f"{one.name}:decimal{'?' if one.is_optional else ''}"
            yield f'{one.name} looks like money, and a float rounds it: --field "{exact}" keeps it exactly'
        if one.kind in ("text", "ascii") and _KIND.search(one.column) and 1 < len(values) <= MOST_KINDS:
            yield (
                f"the field {one.name} has {len(values)} values ({', '.join(sorted(values))}): if they are different"
                " kinds of event, give each a row class of its own, as in examples/home_security/transform.py"
            )


def _csv(path: Path) -> str | None:
    """Return the refusal of a file of CSV. None for any other."""
    first = next(events_in(path))
    line = "" if first.is_sent else first.body.decode(errors="replace").strip()
    mark = next((each for each in "\t;," if each in line and line[0] not in "{["), None)
    if mark is None or path.suffix == ".gz":
        return None
    opened = f'open({json.dumps(str(path), ensure_ascii=False)}, newline="", encoding="utf-8-sig")'
    reader = f"csv.DictReader({opened}, delimiter={json.dumps(mark)})"
    code = f"import csv, json; [print(json.dumps(row)) for row in {reader}]"
    return f"{path} is no JSON, and may be CSV: python3 -c {shlex.quote(code)} > events.jsonl writes its lines as JSON"


class Doubled(dict[str, Any]):
    """An object with a name that is there twice: its last value counts, as in the app."""

    doubled: tuple[str, ...] = ()


def objects_of(path: Path, octets: bytes, line: int, each: Each | None) -> list[dict[str, Any]]:
    """Return the object of an event, or those of its elements. Raises Refused when one is anything else."""
    place = f"{path}, line {line}"
    if each is None:
        return [_object_of(octets, place)]
    try:
        elements = each.elements_of(octets)
    except (ValueError, RecursionError) as error:
        fault = fault_of_body(octets, error)
        raise Refused(f"{place} is no event that --each {each.name} parts: {fault}") from error
    return [_object_of(one, f"{place}, element {number}") for number, one in enumerate(elements, 1)]


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


def _kind_of(value: Any) -> Kind:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer" if value in _INTEGERS else "decimal"
    if isinstance(value, float):
        return "float"
    if not isinstance(value, str):
        return "json"
    text, types = cut_times(value.encode()), {"instant": Instant, "date": date}
    for kind in ("instant", "date"):
        with suppress(msgspec.ValidationError):
            msgspec.convert(text.decode(), types[kind])
            return kind
    return "text"


def sample_lines(fields: Sequence[Field]) -> tuple[bytes, ...]:
    """Return events with fields that a person named. The last event is without its optional fields."""
    lines = []
    for number in range(1, MADE + 1):
        made: dict[Kind, Any] = {
            "integer": number, "float": number + 0.5, "decimal": f"{number}.50", "boolean": number % 2 == 0,
            "instant": f"2026-01-01T{9 + number:02}:00:00Z", "date": f"2026-01-0{number}", "json": {"number": number},
            "epoch_s": NINE + number, "epoch_ms": NINE * 10**3 + number, "epoch_us": NINE * 10**6 + number,
            "epoch_ns": NINE * 10**9 + 1000 * number,
        }  # fmt: skip
        body = {
            one.name: made[one.kind] if one.kind in made else f"{one.column}-{number}"[-(one.length or LONGEST_TEXT) :]
            for one in fields
            if number < MADE or not one.is_optional
        }
        lines.append(json.dumps(body, ensure_ascii=False).encode())
    return tuple(lines)
