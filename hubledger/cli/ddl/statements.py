"""T-SQL scripts cut into statements: where a statement ends without a semicolon, the next one shows it by its words."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_DEFINES = ("CREATE", "ALTER", "DROP")
_DEFINED = (
    "TABLE", "INDEX", "UNIQUE", "CLUSTERED", "NONCLUSTERED", "VIEW", "PROCEDURE", "PROC", "FUNCTION", "TRIGGER",
    "SCHEMA", "ROLE", "USER", "SEQUENCE", "SYNONYM", "STATISTICS", "TYPE", "PARTITION", "OR",
)  # fmt: skip
GRANTS = ("GRANT", "DENY", "REVOKE")
_FIRST_IN_LINE = (
    "INSERT", "UPDATE", "DELETE", "SELECT", "DECLARE", "IF", "ELSE", "BEGIN", "END", "GO", "EXEC", "EXECUTE", "WHILE",
    "PRINT", "MERGE", *GRANTS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a script, the line on which it begins, and its words in capital letters."""

    text: str
    line: int
    words: tuple[str, ...]


def statements_of(text: str) -> Iterator[Statement]:
    """Yield the statements of a script in order. Conditions, BEGIN and END are statements of their own."""
    from sqlglot.dialects.tsql import TSQL  # a tool of development, which no deployment has

    class EngineWords(TSQL.Tokenizer):
        COMMANDS = set()  # noqa: RUF012 - the base takes all that follows PRINT and END for a text, up to a semicolon

    started, depth = list[Any](), 0
    for before, token, after in _with_neighbours(EngineWords(dialect="tsql").tokenize(text)):
        ends = token.text == ";" and depth == 0
        if started and (ends or (depth == 0 and _begins(before, token, after, started[0]))):
            yield _statement(text, started)
            started = []
        depth += {"(": 1, ")": -1}.get(token.text, 0) if token.end == token.start else 0
        if not ends:
            started.append(token)
    if started:
        yield _statement(text, started)


def _with_neighbours(tokens: list[Any]) -> Iterator[tuple[Any, Any, Any]]:
    return zip([None, *tokens], tokens, [*tokens[1:], None], strict=False)


def _begins(before: Any, token: Any, after: Any, first: Any) -> bool:
    """Return True for a token that begins a statement, though no semicolon is before it."""
    word, following = token.text.upper(), after.text.upper() if after else ""
    if word in _DEFINES and following.partition(" ")[0] in _DEFINED:
        return first.text.upper() not in GRANTS and before.text.upper() != "OR"
    if word in ("EXEC", "EXECUTE"):
        return first.text.upper() not in (*GRANTS, "INSERT")
    return word in _FIRST_IN_LINE and (word in ("BEGIN", "END") or before.line < token.line)


def _statement(text: str, tokens: list[Any]) -> Statement:
    words = " ".join(token.text.upper() for token in tokens[:6]).split()  # the tokenizer takes some pairs as one
    return Statement(text[tokens[0].start : tokens[-1].end + 1], tokens[0].line, tuple(words))
