"""Named statements: read `sql/queries`, and compile each for one of the two engines, as each migration of ours.

A body is T-SQL with `:name`, `||`, LIMIT, RETURNING and `UPDATE t AS x`, and its tables have no schema. Each engine
gets it without the hints of the other. SQLite's are `INDEXED BY` and `+` before a column. SQL Server's are `COLLATE`,
`CONVERT`, `WITH (UPDLOCK)`, `N''`, and `@kept =` for a number that the script keeps. A line may end with
`-- sqlite only` or `-- sqlserver only`. Two marks read JSON: `rows(:p) AS n (a int, b int)` reads an array of arrays,
`list(:p) AS n (a int)` an array of values. A third, `exact(x = :p)`, compares two texts with their blanks. A DELETE or
an UPDATE of at most so many rows ends with `LIMIT :most BY` and the key of its table.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

BY_CODE_POINT = "COLLATE Latin1_General_100_BIN2"  # of ids; a text from JSON or from a query has the database's
KEY_TEXT, ASCII_TEXT = "nvarchar(4000)", "varchar(8000)"  # of a text in a key: an index can seek it; none is longer
DUPLICATE = (2601, 2627)  # SQL Server's errors for a key that exists
_NESTED = r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))"  # a character, or brackets with brackets in them
_JSON = rf"\b(?P<mark>rows|list)\(:(?P<param>\w+)\) AS (?P<alias>\w+) \((?P<columns>{_NESTED}+)\)"
_WRONG = r"\b(?:rows|list|exact)\(.*|-- \w+ only$|^-- \w+:.*|LIMIT \S+ BY.*"
_FIRST = (
    r"\A(?P<verb>DELETE FROM|UPDATE) (?P<table>\w+)(?P<changes>\n(?s:.*?)|)\n WHERE (?P<condition>(?s:.*?))"
    r"\s+(?P<limit>(?:ORDER BY [\w, ]+ )?LIMIT (?P<most>:\w+)) BY (?P<key>[\w, \[\]]+);$"
)
_ALIASED = r"^UPDATE (\S+) AS (\w+)\n((?s:.*?))(?=^ WHERE )"

Rules = tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...]


def _unconverted(value: str, alias: str | None) -> str:
    """Return a value as it is: SQLite stores times, days and ids as the texts that are read."""
    return value if alias in (None, value.partition(".")[2]) else f"{value} AS {alias}"


_SQLITE: Rules = (
    (r"^.*-- sqlserver only(?:\n|$)", ""),
    (r"  -- sqlite only$", ""),
    (r" WITH \([A-Z, ]+\)", ""),
    (f" {BY_CODE_POINT}", ""),
    (" N'", " '"),
    (r"@\w+ = ", ""),
    (
        rf"CONVERT\(\w+(?:\(\w+\))?, ({_NESTED}+?)(?:, \d+)?\)(?: AS (\w+))?",
        lambda found: _unconverted(*found.groups()),
    ),
    (r"exact\((\S+ = \S+)\)", r"\1"),
    (r"DATALENGTH\(", "LENGTH("),
    (r"LEN\(", "LENGTH("),
    (r"SUBSTRING\(", "SUBSTR("),
    (r"SYSUTCDATETIME\(", "store_time("),
    (r"CHARINDEX\((.*?), (:\w+)\)", r"INSTR(\2, \1)"),
    (r"JSON_VALUE\((\S+), '\$\.(\w+)'\)", r"\1 ->> '\2'"),
)
_SQLSERVER: Rules = (
    (r"^.*-- sqlite only(?:\n|$)", ""),
    (r"  -- sqlserver only$", ""),
    (r" INDEXED BY \w+", ""),
    (r"\s*-- \+:.*", ""),  # the reason of a `+`
    (r"^DELETE FROM (\w+) AS (\w+)$", r"DELETE \2 FROM \1 AS \2"),
    (r"(?<=[\s(])\+(?=\w)", ""),
    (r"exact\((\S+) = (\S+)\)", rf"\1 + N'.' = \2 + N'.' {BY_CODE_POINT}"),
    (r" \|\| ", " + "),
)

_ENDS = r"(?=,| NOT NULL|;)"  # of the type of a column
_SCHEMA: Mapping[str, Rules] = {
    "sqlserver": ((r"^.*-- sqlite only\n", ""), (r"  -- sqlserver only$", "")),
    "sqlite": (
        (r"^.*-- sqlserver only\n", ""),
        (r"  -- sqlite only$", ""),
        (r"\bhubledger\.", ""),
        (f" {BY_CODE_POINT}| IDENTITY\\(1, 1\\)| WITH \\([A-Z_]+ = \\w+\\)", ""),
        (" N'", " '"),
        (r"\)\n +INCLUDE \(", ", "),
        (rf"\b(?:n?varchar\(\w+\)|datetime2\(6\)|date|uniqueidentifier){_ENDS}", "TEXT"),
        (rf"\b(?:bigint|int|bit){_ENDS}", "INTEGER"),
        (rf"\bvarbinary\(max\){_ENDS}", "BLOB"),
        (r"^\);$", ") STRICT, WITHOUT ROWID;"),
    ),
}


def schema_text(text: str, engine: str) -> str:
    """Return a migration of ours, which is written in T-SQL, for an engine."""
    for pattern, replacement in _SCHEMA[engine]:
        text = re.sub(pattern, replacement, text, flags=re.M)
    return text


def sqlite_text(body: str) -> str:
    """Return the text for SQLite. Raises ValueError for a mark that is wrong."""
    return _refuse_marks(_json_each(re.sub(_FIRST, _first_by_key, _ruled(body, _SQLITE))))


def server_text(body: str, types: Mapping[str, str], race: str = "") -> str:
    """Return the text for SQL Server with parameters of these types. Raises ValueError for a mark that is wrong.

    With `race`, a duplicate is no fault, for that reason.
    """
    text = re.sub(_FIRST, _first_by_top, _ruled(body, _SQLSERVER))
    text = _top(_refuse_marks(re.sub(_JSON, _openjson, text)))
    text = _output(re.sub(_ALIASED, r"UPDATE \2\n\3  FROM \1 AS \2\n", _in_schema(text), flags=re.M))
    text = re.sub(r"NULLIF\(:(\w+), ''\)", lambda found: _unless_empty(found, types), text)
    text = re.sub(r"(?<!\w):(?=[a-z])", "@", text)
    if not race:
        return text
    inner, numbers = text.replace("\n", "\n    "), ", ".join(map(str, DUPLICATE))
    caught = f"IF ERROR_NUMBER() NOT IN ({numbers}) THROW;  -- {race}"
    return f"BEGIN TRY\n    {inner}\nEND TRY\nBEGIN CATCH\n    {caught}\nEND CATCH;"


def among_subjects(column: str, kind: str) -> str:
    """Return the condition that a column is one of some subjects: a JSON array of [subject as a text, as a number or
    null]. The column is a KEY_TEXT, an ASCII_TEXT or a bigint."""
    is_text = kind != "bigint"
    place, collated = (0, f" {BY_CODE_POINT}") if is_text else (1, "")
    typed, whole = f"subject {kind} '$[{place}]'", ""
    if is_text:  # T-SQL ignores blanks at the end of a text
        whole = f" WHERE DATALENGTH(s.subject) = DATALENGTH({column})"
    if kind == ASCII_TEXT:
        typed, whole = f"{typed}, sent {KEY_TEXT} '$[{place}]'", f"{whole} AND s.sent = s.subject{collated}"
    return (
        f"{column} IN (\n"
        f"       SELECT s.subject{collated} FROM OPENJSON(:subjects) WITH ({typed}) AS s{whole})  -- sqlserver only\n"
        f"       SELECT s.value ->> {place} FROM json_each(:subjects) AS s)  -- sqlite only"
    )


def server_part(text: str) -> str:
    """Return a part of a statement, such as a condition, for a text of SQL Server's own."""
    return re.sub(r"(?<!\w):(?=[a-z])", "@", _in_schema(text))


def _ruled(body: str, rules: Rules) -> str:
    for pattern, replacement in rules:
        body = re.sub(pattern, replacement, body, flags=re.M)
    text, last = body.rstrip(), body.rstrip().rpartition("\n")[2]
    if last.partition("--")[0].rstrip().endswith(";"):
        return text
    return f"{text}\n;" if "--" in last else f"{text};"  # the line that ends it is of the other engine


def _refuse_marks(text: str) -> str:
    if wrong := re.search(_WRONG, text, re.M):
        raise ValueError(f"{wrong[0]} is not a mark")
    return text


def _first_by_key(found: re.Match[str]) -> str:
    """Let SQLite find the rows in a query of their keys, because it has no limit there."""
    key, inner = found["key"], found["condition"].replace("\n", "\n       ")
    first = f"SELECT {key} FROM {found['table']}\n        WHERE {inner}\n        {found['limit']}"
    return f"{found['verb']} {found['table']}{found['changes']}\n WHERE ({key}) IN (\n       {first});"


def _first_by_top(found: re.Match[str]) -> str:
    verb = found["verb"].replace(" FROM", "")
    of = f"FROM {found['table']}" if found["verb"] != verb else f"hubledger.{found['table']}"
    return f"{verb} TOP ({found['most']}) {of}{found['changes']}\n WHERE {found['condition']};"


def _json_each(text: str) -> str:
    """Read each column of a mark by its place in the JSON."""
    places = {
        f"{found['alias']}.{name}": f"{found['alias']}.value" + ("" if place is None else f" ->> {place}")
        for found in re.finditer(_JSON, text)
        for name, _, place in _json_columns(found)
    }
    text = re.sub(_JSON, r"json_each(:\g<param>) AS \g<alias>", text)
    return re.sub(r"\b\w+\.\w+\b", lambda column: places.get(column[0], column[0]), text) if places else text


def _openjson(found: re.Match[str]) -> str:
    columns = (f"{name} {of} '${'' if place is None else f'[{place}]'}'" for name, of, place in _json_columns(found))
    return f"OPENJSON(:{found['param']}) WITH ({', '.join(columns)}) AS {found['alias']}"


def _json_columns(found: re.Match[str]) -> Iterator[tuple[str, str, int | None]]:
    """Return name, type and place of the columns of a mark. A list has one column, without a place."""
    is_list = found["mark"] == "list"
    for place, column in enumerate(found["columns"].split(",")):
        parts = re.fullmatch(r"(\w+) (\w+(?:\(\w+\))?)", column.strip())
        if parts is None or (is_list and place):
            raise ValueError(f"{found[0]} is not a mark")
        yield parts[1], parts[2], None if is_list else place


def _top(text: str) -> str:
    """Move each limit to its SELECT: the last one before it, apart from those in brackets that are closed."""
    while limit := re.search(r"\s+LIMIT (:\w+|\d+)", text):
        at, closed = limit.start(), 0
        while closed or not text.startswith("SELECT ", at):
            at -= 1
            closed += (text[at] == ")") - (text[at] == "(")
            if at < 0 or closed < 0:
                raise ValueError(f"{limit[0].strip()} has no SELECT")
        text = f"{text[:at]}SELECT TOP ({limit[1]}) {text[at + 7 : limit.start()]}{text[limit.end() :]}"
    return text


def _output(text: str) -> str:
    """Move RETURNING to the place before the condition."""
    if not (returning := re.search(r"\s+RETURNING ([\w, ]+);$", text)):
        return text
    table = "deleted" if text.startswith("DELETE") else "inserted"
    columns = ", ".join(f"{table}.{column}" for column in returning[1].split(", "))
    return re.sub(
        "^ {1,2}(?:FROM|WHERE) ", rf"OUTPUT {columns}\n\g<0>", f"{text[: returning.start()]};", count=1, flags=re.M
    )


def _in_schema(text: str) -> str:
    """Give every table its schema. A name that WITH makes has none."""
    made = "|".join([*re.findall(r"(\w+) AS \(", text), "TOP"])
    return re.sub(rf"\b(FROM|JOIN|INTO|UPDATE) (?!(?:{made})\b)(?=\w+\b(?!\())", r"\1 hubledger.", text)


def _unless_empty(found: re.Match[str], types: Mapping[str, str]) -> str:
    """Return NULL for an empty text. SQL Server takes blanks for empty, and the texts of people may be blank."""
    may_be_blank = types.get(found[1], "").startswith("nvarchar")
    return f"CASE WHEN DATALENGTH(:{found[1]}) > 0 THEN :{found[1]} END" if may_be_blank else found[0]


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
    """A parameter. It declares its type if the engine needs one. `columns` are the columns of a parameter of many."""

    name: str
    type: str = ""
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """One named statement. `answers` are the columns of its rows, if a rehearsal has to collect them. `optional` are
    the parameters whose lines end with `-- if given`."""

    name: str
    purpose: str
    declared: tuple[Param, ...]
    text: str
    answers: tuple[Param, ...] = ()
    optional: frozenset[str] = frozenset()

    @property
    def params(self) -> tuple[str, ...]:
        """The names of its parameters. A parameter of many counts as its columns."""
        return tuple(dict.fromkeys(name for one in self.declared for name in one.columns or (one.name,)))

    def text_without(self, missing: AbstractSet[str]) -> str:
        """Return the text without the lines `-- if given` of missing parameters."""
        return "\n".join([line for line in self.text.split("\n") if missing.isdisjoint(_IF_GIVEN.findall(line))])


@cache
def load_queries(engine: Engine) -> Mapping[str, Query]:
    """Return the named statements for an engine, also the rooms'. Raises ValueError for a file of a different form."""
    return queries_of(
        {path.relative_to(SQL.parent).as_posix(): path.read_text(encoding="utf-8") for path in query_files()}, engine
    )


def query_files() -> list[Path]:
    """Return the files with named statements: those of the app, and `queries/*.sql` of each room."""
    rooms = [one for folder in ROOMS for one in sorted((SQL.parent / folder).glob("*/queries/*.sql"))]
    return [*sorted((SQL / "queries").glob("*.sql")), *rooms]


def queries_of(files: Mapping[str, str], engine: Engine) -> Mapping[str, Query]:
    """Return the statements of files by name. Raises ValueError for a second one of a name."""
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
            yield line, _parsed(_filled(text[place:end], parts), engine)
        except ValueError as error:
            raise ValueError(f"{where}:{line}: {error}") from error


def _filled(statement: str, parts: Mapping[str, str]) -> str:
    def part(found: re.Match[str]) -> str:
        if found[1] not in parts:
            raise ValueError(f"the file has no part named {found[1]}")
        return parts[found[1]]

    return re.sub(r"\{(\w+)\}", part, statement)


def _parsed(statement: str, engine: Engine) -> Query:
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
    used, kept = set(_USED[engine].findall(text)), set(re.findall(r"@(\w+) = ", text))  # the script keeps numbers
    if unknown := used - names - kept:
        raise ValueError(f"its header does not declare {', '.join(sorted(unknown))}")
    if unused := names - used:
        raise ValueError(f"its text does not use {', '.join(sorted(unused))}")
    return query


def _params(text: str) -> tuple[Param, ...]:
    params = []
    for one in filter(None, _COMMA.split(text.strip())):
        found = _PARAM.fullmatch(one)
        if found is None or (found["type"] == ROWS) != bool(found["columns"]):
            raise ValueError(f"{one} is not a parameter: a name, a type, and columns in brackets for {ROWS}")
        params.append(Param(found["name"], found["type"], tuple(re.findall(r"\w+", found["columns"] or ""))))
    return tuple(params)
