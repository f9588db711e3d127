"""The product's files, for the tests of the house rules."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("core", "handlers", "examples", "local", "bench", "jobs", "infra", "tools", "hubledger")
MODULES = sorted([ROOT / "function_app.py", *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))])
SUFFIXES = {
    ".py", ".sql", ".md", ".json", ".toml", ".bicep", ".yaml", ".yml", ".html", ".css", ".js", ".kql", ".sh", ".ps1",
}  # fmt: skip
TEXTS = sorted(
    path
    for folder in (*FOLDERS, "sql", "docs", ".")
    for path in (ROOT / folder).glob("*" if folder == "." else "**/*")
    if path.suffix in SUFFIXES and path.is_file()
)


def name_of(path: Path) -> str:
    """Return a file's path from the root of the project."""
    return path.relative_to(ROOT).as_posix()


@cache
def text_of(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(text_of(path), path.as_posix())


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a module's syntax tree."""
    return tuple(ast.walk(tree_of(path)))


def imports_of(path: Path) -> set[str]:
    """Return the names of all modules that a module imports, anywhere in it."""
    found: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update({node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)})
    return found


@cache
def errors_of_the_product() -> dict[str, str]:
    """Return the base of each error below HubledgerError, by its name."""
    classes = [node for path in MODULES for node in nodes_of(path) if isinstance(node, ast.ClassDef)]
    bases = [(one.name, ast.unparse(base).rpartition(".")[2]) for one in classes for base in one.bases]
    found: dict[str, str] = {}
    while more := {name: base for name, base in bases if base in {"HubledgerError", *found} and name not in found}:
        found |= more
    return found
