"""The comparisons of texts that SQL Server refuses with error 468: two collations, and neither is asked for.

A text from OPENJSON, and one that a query derives, has the database's collation. A column has the one it was made with.
This reads the form in which our statements are written, and no other T-SQL. The rules are those of Microsoft's page
"Collation Precedence (Transact-SQL)": COLLATE decides. A text in quotes, a variable, or a number as a text gives way.

With the types of columns in place of their collations, `conversions` finds a varchar column that is compared with an
nvarchar. SQL Server then converts the column of each row ("Data type precedence (Transact-SQL)"), which a seek by the
column may not survive.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Union

from tests.sql.statements import without_comments

DATABASE = "of the database"
TOKEN = re.compile(r"N?'(?:[^']|'')*'|@@?\w+|\[?\w+\]?(?:\.\[?\w+\]?)*|<>|<=|>=|[-+*/%=<>(),;]")
STATEMENT = re.compile(r"(?:'(?:[^']|'')*'|[^';])+")
COMPARED = ("=", "<>", "<", ">", "<=", ">=")
ENDS = {
    "AND", "OR", "ON", "WHERE", "WHEN", "THEN", "ELSE", "END", "HAVING", "SELECT", "FROM", "INNER", "LEFT", "CROSS",
    "JOIN", "GROUP", "ORDER", "UNION", "SET", "NOT", "IN", "BETWEEN", "LIKE", "CASE", "EXISTS", "IF", "OUTPUT", "AS",
    "BY", "OPTION", "APPLY", "OUTER", "INSERT", ",", ";", *COMPARED,
}  # fmt: skip
NO_TEXT = {
    "COUNT", "COUNT_BIG", "SUM", "LEN", "DATALENGTH", "CHARINDEX", "DATEADD", "DATEDIFF", "DATEDIFF_BIG", "ABS",
    "ROW_NUMBER", "ROWCOUNT", "ISJSON", "CHECKSUM", "HASHBYTES", "ERROR_NUMBER", "DATEPART", "AVG",
}  # fmt: skip
NARROW, WIDE, LISTED = "varchar", "nvarchar", "a varchar of no table"
PARAM = re.compile(r"@(\w+) (n?varchar)\(")
Tokens = list[Union[str, "Tokens"]]
Columns = Mapping[str, frozenset[str]]  # the collations of each text; a column that is no text has none


@dataclass(frozen=True)
class Text:
    """The collations of an expression. `asked` when a COLLATE decides."""

    collations: frozenset[str] = frozenset()
    asked: bool = False


@dataclass
class Scope:
    """The tables that a query names, by alias, within those of the queries around it."""

    tables: Mapping[str, Columns]
    around: "Scope | None" = None
    named: dict[str, Columns] = field(default_factory=dict)  # WITH x AS (...)
    sources: dict[str, dict[str, frozenset[str]]] = field(default_factory=dict)
    params: Mapping[str, str] | None = None  # the types of the variables, where columns have types

    def inner(self) -> "Scope":
        return Scope(self.tables, self, params=self.params)

    def label(self, kind: str) -> frozenset[str]:
        if kind not in (NARROW, WIDE):
            return frozenset()
        return frozenset([DATABASE if self.params is None else WIDE if kind == WIDE else LISTED])

    def word(self, token: str) -> frozenset[str]:
        """Return the labels of a word: of a literal or a variable, where columns have types, or of a column."""
        if self.params is not None:
            kind = {"N'": WIDE, "'": LISTED}.get(token[: 1 + (token[:1] == "N")]) or self.params.get(token)
            if kind:
                return frozenset([WIDE if kind == WIDE else LISTED])
        return self.column(token)

    def column(self, name: str) -> frozenset[str]:
        """Return the collations of a column, with or without its alias."""
        alias, _, column = name.rpartition(".")
        for source, columns in self.sources.items():
            if column in columns and alias in ("", source):
                return columns[column]
        return self.around.column(name) if self.around else frozenset()

    def source(self, name: str) -> Columns | None:
        if name.startswith("hubledger."):
            return self.tables.get(name.partition(".")[2], {})
        found = self.named.get(name)
        return self.around.source(name) if found is None and self.around else found


def conflicts(text: str, tables: Mapping[str, Columns]) -> list[str]:
    """Return the comparisons of a batch in which two collations meet."""
    found = []
    for statement in statements_of(text):
        found += _of_query(nested(statement), Scope(tables))[1]
        for batch in re.findall(r"\bEXEC\(N'((?:[^']|'')*)'\)", statement):
            found += conflicts(batch.replace("''", "'"), tables)
    return found


def conversions(text: str, tables: Mapping[str, Columns]) -> list[str]:
    """Return the comparisons of a batch that convert a column. The tables have the types of their texts."""
    params = {f"@{name}": kind for name, kind in PARAM.findall(without_comments(text))}
    return [found for one in statements_of(text) for found in _of_query(nested(one), Scope(tables, params=params))[1]]


def statements_of(text: str) -> list[str]:
    """Return the statements of a batch. A semicolon in quotes ends none."""
    return STATEMENT.findall(without_comments(text))


def nested(text: str) -> Tokens:
    """Return the words of a text. What is in parentheses is a list."""
    stack: list[Tokens] = [[]]
    for word in TOKEN.findall(text):
        if word == "(":
            stack.append([])
        elif word == ")":
            within = stack.pop()
            stack[-1].append(within)
        else:
            stack[-1].append(word if word[0] in "N'" and "'" in word else word.replace("[", "").replace("]", ""))
    return stack[0]


def columns_of(migrations: Iterator[str], *, types: bool = False) -> dict[str, dict[str, frozenset[str]]]:
    tables: dict[str, dict[str, frozenset[str]]] = {}
    for text in map(without_comments, migrations):
        for table, columns in re.findall(r"CREATE TABLE hubledger\.(\w+) \((.*?)^ *\)", text, re.M | re.S):
            tables[table] = dict(
                _column(one, types) for one in re.findall(r"^ +((?!CONSTRAINT)\[?\w+\]? +[a-z].*)", columns, re.M)
            )
        for table, column in re.findall(r"ALTER TABLE hubledger\.(\w+) ADD ([a-z_]+ .*?);", text, re.S):
            tables[table] |= [_column(column, types)]
    return tables


def _column(line: str, types: bool) -> tuple[str, frozenset[str]]:
    found = re.match(r"\[?(\w+)\]? +(n?varchar)?(?:\(\w+\))?(?: COLLATE (\w+))?", line)
    assert found
    return found[1], frozenset([found[2] if types else found[3] or DATABASE]) if found[2] else frozenset()


def _of_query(tokens: Tokens, scope: Scope) -> tuple[dict[str, Text], list[str]]:
    """Return the columns that a query gives, and its conflicts with those of the queries within it."""
    found = _sources(tokens, scope)
    for place, token in enumerate(tokens):
        if isinstance(token, list) and not _is_source(tokens, place):  # those were read with the sources
            inner = scope.inner() if token[:1] in (["SELECT"], ["WITH"]) else scope
            found += _of_query(token, inner)[1]
        elif token in COMPARED and not _is_set(tokens, place):
            found += _compared(_before(tokens, place), str(token), _after(tokens, place), scope)
        elif token == "IN" and isinstance(group := tokens[place + 1], list):
            left = _before(tokens, place - 1 if tokens[place - 1] == "NOT" else place)
            found += _compared(left, "IN", [group], scope)
        elif token == "BETWEEN":
            low = _after(tokens, place)
            high = _after(tokens, place + 1 + len(low))
            found += _compared(_before(tokens, place), "BETWEEN", [*low, "+", *high], scope)
    return _selected(tokens, scope), found


def _is_source(tokens: Tokens, place: int) -> bool:
    group, before = tokens[place], tokens[place - 1] if place else ""
    return group[:1] == ["SELECT"] and before in ("FROM", "JOIN", "APPLY", "AS")


def _sources(tokens: Tokens, scope: Scope) -> list[str]:
    """Add the sources of a query to its scope. Return the conflicts in those that are queries."""
    found: list[str] = []
    for place, token in enumerate(tokens):
        following, before = tokens[place + 1 : place + 3], tokens[place - 1] if place else ""
        alias = following[1] if following[:1] == ["AS"] and isinstance(following[-1], str) else None
        if isinstance(token, list) and _is_source(tokens, place):
            selected, within = _of_query(token, scope.inner())
            found += within
            given = {column: one.collations for column, one in selected.items()}
            if before == "AS":
                scope.named[str(tokens[place - 2])] = given
            else:
                scope.sources[str(alias)] = given
        elif isinstance(token, list) and before == "WITH" and "OPENJSON" in tokens[max(0, place - 3) : place]:
            scope.sources[str(alias)] = {str(one[0]): scope.label(str(one[1])) for one in _split(token, ",")}
        elif isinstance(token, list) and token[:1] == ["VALUES"]:
            pairs = zip(_split(list(tokens[place + 3]), ","), _split(list(token[1]), ","), strict=True)
            scope.sources[str(alias)] = {str(name[0]): _listed(value, scope) for name, value in pairs}
        elif token == "OPENJSON" and following[1:] != ["WITH"]:
            key = frozenset(["Latin1_General_BIN2"]) if scope.params is None else scope.label(WIDE)
            scope.sources[str(tokens[place + 3])] = {"value": scope.label(WIDE), "key": key}
        elif isinstance(token, str) and (columns := scope.source(token)) is not None:
            standing = scope.sources.setdefault(str(alias or token.rpartition(".")[2]), {})
            for name, collations in columns.items():
                standing[name] = standing.get(name, frozenset()) | collations
    return found


def _listed(value: Tokens, scope: Scope) -> frozenset[str]:
    texts = [one for one in value if isinstance(one, str) and "'" in one]
    return scope.label("" if not texts else WIDE if texts[0][0] == "N" else NARROW)


def _selected(tokens: Tokens, scope: Scope) -> dict[str, Text]:
    """Return the columns of the first SELECT of a query."""
    if "SELECT" not in tokens:
        return {}
    begin = tokens.index("SELECT") + 1
    end = tokens.index("FROM", begin) if "FROM" in tokens[begin:] else len(tokens)
    begin += 2 * (tokens[begin : begin + 1] == ["TOP"]) + (tokens[begin : begin + 1] == ["DISTINCT"])
    selected = {}
    for place, expression in enumerate(_split(tokens[begin:end], ",")):
        named = "AS" in expression
        value = expression[: expression.index("AS")] if named else expression
        name = str(expression[-1]).rpartition(".")[2] if expression else str(place)
        selected[name] = _derived(value, scope)
    return selected


def _derived(value: Tokens, scope: Scope) -> Text:
    """Return the collation of a selected expression: one that gives way where it stands has the database's outside."""
    text = _text(value, scope)
    if scope.params is not None or text.collations:
        return text
    is_text = any(isinstance(one, str) and "'" in one for one in value) or value[:1] in (["CONCAT"], ["STRING_AGG"])
    is_text = is_text or (value[:1] == ["CONVERT"] and str(value[1][0]) in (NARROW, WIDE))
    return Text(frozenset([DATABASE])) if is_text else text


def _text(value: Tokens, scope: Scope) -> Text:
    """Return the collations that meet in an expression, or the types of its texts."""
    parts: list[Text] = []
    for place, token in enumerate(value):
        before = str(value[place - 1]) if place else ""
        if isinstance(token, list):
            parts += [] if before in NO_TEXT else [_grouped(token, before, scope)]
        elif token == "COLLATE" and scope.params is None:
            parts.append(Text(frozenset([str(value[place + 1])]), asked=True))
        elif before != "COLLATE" and token != "COLLATE":
            parts.append(Text(scope.word(token)))
    asked = [one for one in parts if one.asked]
    return asked[0] if asked else Text(frozenset().union(*(one.collations for one in parts)))


def _grouped(group: Tokens, function: str, scope: Scope) -> Text:
    if group[:1] == ["SELECT"]:
        inner = scope.inner()
        _sources(group, inner)
        return next(iter(_selected(group, inner).values()), Text())
    if function in ("CONVERT", "CAST"):
        kinds = [one for one in group if one in (NARROW, WIDE)]
        if scope.params is not None:  # the type of a conversion, and not of what it converts
            return Text(scope.label(str(kinds[0])) if kinds else frozenset())
        return _text(group, scope) if kinds else Text()
    return _text([one for one in group if one != ","], scope)


def _compared(left: Tokens, how: str, right: Tokens, scope: Scope) -> list[str]:
    one, other = _text(left, scope), _text(right, scope)
    if scope.params is not None:
        return [
            f"{_shown(column)} {how} {_shown(value)}"
            for column, value, given in ((left, right, other), (right, left, one))
            if (len(column) == 1 or column[1:2] == ["COLLATE"]) and isinstance(column[0], str)
            if _text(column[:1], scope).collations == {NARROW} and WIDE in given.collations
        ]
    meeting = one.collations | other.collations
    if one.asked or other.asked or len(meeting) < 2:
        return []
    return [f"{_shown(left)} {how} {_shown(right)}: {', '.join(sorted(meeting))}"]


def _shown(tokens: Tokens) -> str:
    return " ".join(f"({_shown(one)})" if isinstance(one, list) else one for one in tokens)


def _before(tokens: Tokens, place: int) -> Tokens:
    begin = place
    while begin and not (isinstance(tokens[begin - 1], str) and tokens[begin - 1] in ENDS):
        begin -= 1
    return tokens[begin:place]


def _after(tokens: Tokens, place: int) -> Tokens:
    end = place + 1
    while end < len(tokens) and not (isinstance(tokens[end], str) and tokens[end] in ENDS):
        end += 1
    return tokens[place + 1 : end]


def _is_set(tokens: Tokens, place: int) -> bool:
    clauses = [one for one in tokens[:place] if one in ("SET", "FROM", "WHERE", "OUTPUT", "ON")]
    return clauses[-1:] == ["SET"]


def _split(tokens: Tokens, at: str) -> Iterator[Tokens]:
    part: Tokens = []
    for token in tokens:
        if token == at:
            yield part
            part = []
        else:
            part.append(token)
    if part:
        yield part
