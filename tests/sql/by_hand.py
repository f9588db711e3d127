"""The T-SQL that tests write themselves: what the contract suite and the server suite send by hand."""

import ast
import importlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.fakes.rooms import all_migrations
from tests.sql.statements import without_comments

ROOT = Path(__file__).parents[2]
FILES = [*(ROOT / "tests" / "contract").rglob("test_*.py"), *(ROOT / "tests" / "sql").glob("test_on_server*.py")]
VERBS = re.compile(r"\s*(?:SET NOCOUNT ON;\s*)?(?:INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|SELECT|DECLARE) [^a-z]*\w")
INSERT = re.compile(r"INSERT INTO (?:hubledger\.)?(\w+)(?: *\n? *\(([^)]*)\))?")
CREATED = re.compile(r"CREATE TABLE hubledger\.(\w+) \((.*?)^\s*\)", re.S | re.M)
FILLED = re.compile(r"DEFAULT|IDENTITY|^\s+\w+ +AS ")  # a column that needs no value
SCHEMA = re.compile(r"\{p\}|\{\w*\}\.(?=\w|\{)")
PUT_IN = re.compile(r"\{[^{}]*\}")


@cache
def by_hand() -> Mapping[str, str]:
    """Return the texts by their files and lines."""
    found = {}
    for path in FILES:
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        for line, text in texts_of(path.read_text(encoding="utf-8"), vars(module)):
            found[f"{path.relative_to(ROOT)}:{line}"] = text
    return found


def texts_of(source: str, named: Mapping[str, object]) -> Iterator[tuple[int, str]]:
    """Give the line and the text of every statement in a module, except those that only SQLite gets.

    The schema is `hubledger`, and `x` stands for each value that is put in when the test runs.
    """
    tree = ast.parse(source)
    passed = {id(part) for node in ast.walk(tree) if is_for_sqlite(node, tree) for part in ast.walk(node)}
    for node in ast.walk(tree):  # the whole of a text comes before its parts
        text = None if id(node) in passed or isinstance(node, ast.Name) else text_of(node, named)
        if text is not None:
            passed |= {id(part) for part in ast.walk(node)}
            placed = PUT_IN.sub("x", SCHEMA.sub("hubledger.", text))
            if VERBS.match(placed):
                yield node.lineno, re.sub(r"(CREATE TABLE \S+ \()x,", r"\1x int,", placed)  # type: ignore[attr-defined]


def is_for_sqlite(node: ast.AST, tree: ast.AST) -> bool:
    """Return True for a test of the embedded engine alone, and for a text that its `sql` sends."""
    if isinstance(node, ast.Assign):
        sent = re.findall(r"\.sql\((\w+)", ast.unparse(tree))
        return any(isinstance(one, ast.Name) and one.id in sent for one in node.targets)
    return isinstance(node, ast.FunctionDef) and "sqlite" in [one.arg for one in node.args.args]


def text_of(node: ast.AST, named: Mapping[str, object]) -> str | None:
    """Return the text of an expression, with `{}` for each value that is not known before the test runs."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        found = named.get(node.id)
        return found if isinstance(found, str) else None
    if isinstance(node, ast.FormattedValue):
        return text_of(node.value, named) or "{}"
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(one, named) or "" for one in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = text_of(node.left, named), text_of(node.right, named)
        return None if left is None or right is None else left + right
    return None


@cache
def needed() -> Mapping[str, frozenset[str]]:
    """Return the columns of each table that need a value: they are NOT NULL and have no default."""
    tables: dict[str, frozenset[str]] = {}
    for migration in all_migrations("sqlserver"):
        for table, body in CREATED.findall(without_comments(migration.text)):
            lines = [line for line in body.splitlines() if " NOT NULL" in line and not FILLED.search(line)]
            tables[table] = frozenset(line.split()[0].strip("[]") for line in lines)
    return tables


def refused(text: str) -> list[str]:
    """Return why SQL Server refuses a text whose form is right."""
    found = ["a table is made of a query by SELECT ... INTO"] if re.search(r"CREATE TABLE \S+ AS\b", text) else []
    for table, columns in INSERT.findall(text):
        listed = {one.strip(" []\n") for one in columns.split(",")} if columns else set()
        lacking = sorted(needed().get(table, frozenset()) - listed)
        found += [f"the INSERT into {table} does not list {', '.join(lacking)}"] if lacking else []
    return found
