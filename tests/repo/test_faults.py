"""docs/faults.md: every fault has its row, and the test that each row names exists; core/errors.py draws the tree."""

import ast
import re

from core import errors
from tests.repo.product import ROOT, errors_of_the_product, nodes_of

PAGE = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
HEADING = "| fault | what happens | what the operator sees | what to do | shown by |"
# Groups of errors: their members have the rows.
GROUPS = {"HubledgerError", "InfrastructureFault", "StoreFault", "PartitionStopped"}


def rows() -> list[list[str]]:
    """Return the cells of every row, without headings."""
    lines = [line for line in PAGE.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line != HEADING]
    return [row for row in cells if not row[0].startswith("---")]


def is_there(test: str) -> bool:
    """Return True when a test `path::name` exists; the name may stand in a class."""
    path, _, name = test.partition("::")
    file = ROOT / path
    if not file.is_file():
        return False
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return any(isinstance(node, functions) and node.name == name for node in nodes_of(file))


def test_every_row_is_whole() -> None:
    assert [row for row in rows() if len(row) != 5 or not all(row)] == []
    assert len(rows()) >= 40


def test_every_row_names_a_test_that_exists() -> None:
    named = [re.findall(r"`(tests/[^`]+)`", row[-1]) for row in rows()]
    assert [row[0] for row, tests in zip(rows(), named, strict=True) if not tests] == []
    assert [test for tests in named for test in tests if not is_there(test)] == []


def test_every_error_has_a_row() -> None:
    faults = {word for row in rows() for word in re.findall(r"`(\w+)`", row[0] + row[1])}
    assert errors_of_the_product().keys() - GROUPS - faults == set()


def test_the_docstring_draws_every_error_under_its_parent() -> None:
    drawn: dict[str, str | None] = {}
    above: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^([ │├└─]+)([A-Z]\w+)(\s{2,}|$)", line)
        if found is None:
            continue
        depth = len(found[1])
        above = [one for one in above if one[0] < depth]
        drawn[found[2]] = above[-1][1] if above else None
        above.append((depth, found[2]))
    assert drawn == {**errors_of_the_product(), "HubledgerError": None}
