"""Named SQL: the statements of `sql/<engine>/`, read once, each with the parameters that it declares."""

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SQL = Path(__file__).resolve().parents[2] / "sql"
ROWS = "rows"  # the type of a parameter of many: a JSON array of arrays with the columns in brackets
_HEADER = re.compile(
    r"-- name: (?P<name>\w+)\n(?P<purpose>(?:-- (?!params:).*\n)+)"
    r"-- params:(?P<params>.*)\n(?:-- answers:(?P<answers>.*)\n)?"
)
_IF_GIVEN = re.compile(r"[:@](?P<name>\w+)[^\n]*-- if given$", re.M)
_COMMA = re.compile(r",\s*(?![^()]*\))")
_PARAM = re.compile(r"(?P<name>\w+)(?: (?P<type>\w+(?:\([^()]*\))?))?(?: \((?P<columns>[^()]*)\))?")


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
def load_queries(engine: str) -> Mapping[str, Query]:
    """Return every named statement of an engine ("sqlite"); ValueError for a file of a different form."""
    queries: dict[str, Query] = {}
    for path in sorted((SQL / engine / "queries").glob("*.sql")):
        for query in parse_queries(path.read_text(encoding="utf-8"), path.name):
            if query.name in queries:
                raise ValueError(f"{path.name}: a second query named {query.name}")
            queries[query.name] = query
    return queries


def parse_queries(text: str, where: str) -> Iterator[Query]:
    """Return the statements of one file, in order."""
    headers = list(_HEADER.finditer(text))
    if len(headers) != text.count("-- name:"):
        raise ValueError(f"{where}: a query needs a name, a line of purpose and its params")
    for header, following in zip(headers, [*headers[1:], None], strict=True):
        body = text[header.end() : following.start() if following else len(text)].strip()
        purpose = " ".join(line.removeprefix("-- ") for line in header["purpose"].splitlines())
        params, answers = _params(header["params"], where), _params(header["answers"] or "", where)
        yield Query(header["name"], purpose, params, body, answers, frozenset(_IF_GIVEN.findall(body)))


def _params(text: str, where: str) -> tuple[Param, ...]:
    return tuple(_param(one, where) for one in _COMMA.split(text.strip()) if one)


def _param(text: str, where: str) -> Param:
    found = _PARAM.fullmatch(text)
    if found is None:
        raise ValueError(f"{where}: {text} is not a parameter: a name, a type, and columns in brackets for {ROWS}")
    return Param(found["name"], found["type"] or "", tuple(re.findall(r"\w+", found["columns"] or "")))
