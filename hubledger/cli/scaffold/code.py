"""Pieces of Python source, laid out as `ruff format` lays them out."""

import json
from collections.abc import Sequence

WIDTH, PIECE = 120, 70  # characters


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
    each = "".join(f"{inner}{part},\n" for part in parts)
    return f"{space}{head}(\n{each}{space}){tail}"


def pieces(text: str, indent: int) -> str:
    """Return a text in quotes; a long one in pieces, each in a line of its own."""
    whole = literal(text)
    if len(whole) <= PIECE:
        return whole
    space = " " * (indent + 4)
    lines = "".join(f"{space}{literal(text[at : at + PIECE // 2])}\n" for at in range(0, len(text), PIECE // 2))
    return f"(\n{lines}{' ' * indent})"
