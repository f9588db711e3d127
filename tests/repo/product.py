"""The product's files, for the tests of the house rules."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("core", "handlers", "examples", "local", "bench", "jobs", "infra", "tools", "hubledger")
MODULES = sorted([ROOT / "function_app.py", *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))])
SUFFIX = re.compile(r"\.(py|sql|md|json|toml|bicep|ya?ml|html|css|js|kql|sh|ps1)")
TEXTS = sorted(
    path
    for folder in (*FOLDERS, "sql", "docs", ".")
    for path in (ROOT / folder).glob("*" if folder == "." else "**/*")
    if SUFFIX.fullmatch(path.suffix) and path.is_file()
)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(text_of(path), path.as_posix())))
