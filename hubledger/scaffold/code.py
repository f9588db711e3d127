"""Pieces of Python source, laid out as `ruff format` lays them out."""

import json
from collections.abc import Sequence

WIDTH = 120


def literal(text: str) -> str:
    """Return a text in quotes, as ruff quotes it: in double quotes unless that needs more escapes."""
    quoted = json.dumps(text, ensure_ascii=False)
    if any(not letter.isprintable() for letter in text):
        return ascii_literal(text)
    single = "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return single if text.count('"') > text.count("'") else quoted


def ascii_literal(text: str) -> str:
    """Return a text in double quotes with escapes for all that cannot be printed."""
    inner = "".join('\\"' if letter == '"' else ascii(letter)[1:-1] if letter != "'" else letter for letter in text)
    return f'"{inner}"'


def bracketed(head: str, parts: Sequence[str], *, indent: int = 0, tail: str = "") -> str:
    """Return `head(parts)tail` in one line, or with its parts in a line of their own, or with each in one."""
    space, inner = " " * indent, " " * (indent + 4)
    comma = "," if not head and len(parts) == 1 else ""
    line = f"{space}{head}({', '.join(parts)}{comma}){tail}"
    if len(line) <= WIDTH and "\n" not in line:
        return line
    together = f"{inner}{', '.join(parts)}"
    if len(together) <= WIDTH and "\n" not in together and not comma:
        return f"{space}{head}(\n{together}\n{space}){tail}"
    each = "".join(f"{inner}{part},{_unsplit(inner + part)}\n" for part in parts)
    return f"{space}{head}(\n{each}{space}){tail}"


def _unsplit(line: str) -> str:
    """Return the comment for a line that cannot be split."""
    return "  # noqa: E501" if len(line) >= WIDTH and "\n" not in line else ""
