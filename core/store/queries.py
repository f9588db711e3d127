"""Named SQL: the statements of `sql/queries/`, read and made for an engine once, each with its parameters."""

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from core.store.dialects import server_text, sqlite_text

SQL = Path(__file__).resolve().parents[2] / "sql"
ROOMS = ("examples", "apps")
ROWS = "rows"  # the type of a parameter of many: a JSON array of arrays with the columns in brackets
_HEADER = re.compile(
    r"-- name: (?P<name>\w+)\n(?P<purpose>(?:-- (?!params:).*\n)+)"
    r"-- params:(?P<params>.*)\n(?:-- answers:(?P<answers>.*)\n)?(?:-- races: (?P<race>.*)\n)?"
)
_PART = re.compile(r"^-- part: (\w+)\n(?:--.*\n)+((?:.*\n)*?.*);\n", re.M)
_SECOND_BODY = "\n-- sqlserver:\n"
_IF_GIVEN = re.compile(r"[:@](?P<name>\w+)[^\n]*-- if given$", re.M)
_COMMA = re.compile(r",\s*(?![^()]*\))")
_PARAM = re.compile(r"(?P<name>\w+) (?P<type>\w+(?:\([^()]*\))?)(?: \((?P<columns>[^()]*)\))?")
_USED = {"sqlite": re.compile(r"(?<![:\w]):([a-z]\w*)"), "sqlserver": re.compile(r"(?<![@\w])@([a-z]\w*)")}
Engine = Literal["sqlite", "sqlserver"]


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter; it declares its type if the engine needs one. `columns` are the columns of a parameter of many."""

    name: str
    type: str = ""
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """One named statement. `answers` are the columns of its rows, if a rehearsal has to collect them; `optional` are
    the parameters whose lines end with `-- if given`."""

    name: str
    purpose: str
    declared: tuple[Param, ...]
    text: str
    answers: tuple[Param, ...] = ()
    optional: frozenset[str] = frozenset()

    @property
    def params(self) -> tuple[str, ...]:
        """The names of its parameters; a parameter of many counts as its columns."""
        return tuple(dict.fromkeys(name for one in self.declared for name in one.columns or (one.name,)))

    def text_without(self, missing: AbstractSet[str]) -> str:
        """Return the text without the lines `-- if given` of missing parameters."""
        return "\n".join([line for line in self.text.split("\n") if missing.isdisjoint(_IF_GIVEN.findall(line))])


@cache
def load_queries(engine: Engine) -> Mapping[str, Query]:
    """Return every named statement for an engine, also of the rooms; ValueError for a file of a different form."""
    return queries_of(
        {path.relative_to(SQL.parent).as_posix(): path.read_text(encoding="utf-8") for path in query_files()}, engine
    )


def query_files() -> list[Path]:
    """Return the files with named statements: those of the app, and `queries/*.sql` of each room."""
    rooms = [one for folder in ROOMS for one in sorted((SQL.parent / folder).glob("*/queries/*.sql"))]
    return [*sorted((SQL / "queries").glob("*.sql")), *rooms]


def queries_of(files: Mapping[str, str], engine: Engine) -> Mapping[str, Query]:
    """Return the statements of files by name; ValueError for a second one of a name."""
    queries: dict[str, Query] = {}
    for where, text in files.items():
        for line, query in parse_queries(text, where, engine):
            if query.name in queries:
                raise ValueError(f"{where}:{line}: a second statement named {query.name}")
            queries[query.name] = query
    return queries


def parse_queries(text: str, where: str, engine: Engine) -> Iterator[tuple[int, Query]]:
    """Return the statements of one file for an engine, in order, each with its line.

    A part of the file (`-- part: NAME`, a line of purpose, a text) stands where a statement has {NAME}.
    """
    parts = dict(_PART.findall(text))
    places = [found.start() for found in re.finditer("^-- name:", text, re.M)]
    for place, end in zip(places, [*places[1:], len(text)], strict=False):
        line = text.count("\n", 0, place) + 1
        try:
            yield line, _query(_filled(text[place:end], parts), engine)
        except ValueError as error:
            raise ValueError(f"{where}:{line}: {error}") from error


def _filled(statement: str, parts: Mapping[str, str]) -> str:
    def part(found: re.Match[str]) -> str:
        if found[1] not in parts:
            raise ValueError(f"the file has no part named {found[1]}")
        return parts[found[1]]

    return re.sub(r"\{(\w+)\}", part, statement)


def _query(statement: str, engine: Engine) -> Query:
    if not (header := _HEADER.match(statement)):
        raise ValueError("a query needs a name, a line of purpose and its params")
    declared = _params(header["params"])
    body, _, second = statement[header.end() :].strip().partition(_SECOND_BODY)
    if engine == "sqlite":
        text = sqlite_text(body)
    else:
        text = second or server_text(body, {param.name: param.type for param in declared}, header["race"] or "")
    purpose = " ".join(line.removeprefix("-- ") for line in header["purpose"].splitlines())
    optional = frozenset(_IF_GIVEN.findall(text))
    query = Query(header["name"], purpose, declared, text, _params(header["answers"] or ""), optional)
    names = set(query.params) if engine == "sqlite" else {param.name for param in declared}
    _check_params(text, names, engine)
    return query


def _check_params(text: str, declared: AbstractSet[str], engine: Engine) -> None:
    used = set(_USED[engine].findall(text))
    kept = set(re.findall(r"@(\w+) = ", text))  # numbers that the script keeps
    if unknown := used - declared - kept:
        raise ValueError(f"its header does not declare {', '.join(sorted(unknown))}")
    if unused := declared - used:
        raise ValueError(f"its text does not use {', '.join(sorted(unused))}")


def _params(text: str) -> tuple[Param, ...]:
    return tuple(_param(one) for one in _COMMA.split(text.strip()) if one)


def _param(text: str) -> Param:
    found = _PARAM.fullmatch(text)
    if found is None or (found["type"] == ROWS) != bool(found["columns"]):
        raise ValueError(f"{text} is not a parameter: a name, a type, and columns in brackets for {ROWS}")
    return Param(found["name"], found["type"], tuple(re.findall(r"\w+", found["columns"] or "")))
