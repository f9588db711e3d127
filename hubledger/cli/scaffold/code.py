"""Pieces of Python source, laid out as `ruff format` lays them out, and modules that are made from templates."""

import ast
import json
import re
from collections.abc import Sequence
from pathlib import Path
from string import Template

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


def rendered(name: str, /, **values: str) -> str:
    """Return a template of the folder `templates` with its values."""
    text = (Path(__file__).with_name("templates") / f"{name}.txt").read_text(encoding="utf-8")
    return Template(text).substitute(values)


def module(name: str, /, **values: str) -> str:
    """Return a module from a template, without the imports, constants and private functions that it does not use."""
    text = rendered(name, **values)
    body, used, before = ast.parse(text).body, {"VERSION"}, set[str]()
    while used != before:
        before, kept = used, [node for node in body if not _is_unused(node, used)]
        used = used.union(*map(_loaded, kept))
    lines: list[str | None] = [*text.split("\n")]
    for node in body:
        first, last = node.lineno - 1, node.end_lineno or 0
        if isinstance(node, ast.ImportFrom):
            names = [one.name for one in node.names if one.name in used]
            lines[first] = f"from {node.module} import {', '.join(names)}" if names else None
        elif node not in kept:
            lines[first:last] = [None] * (last - first)
    left = "\n".join(line for line in lines if line is not None)
    return re.sub(r"\n{4,}", "\n\n\n", left).rstrip() + "\n"


def _loaded(node: ast.stmt) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}


def _is_unused(node: ast.stmt, used: set[str]) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name.startswith("_") and node.name not in used
    return (
        isinstance(node, ast.Assign)
        and not {one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)} & used
    )
