import ast
import re

from core import errors
from tests.repo.product import MODULES, ROOT, nodes_of

PAGE = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
HEADING = "| fault | what happens | what the operator sees | what to do | shown by |"
# Groups of errors: their members have the rows.
GROUPS = {"HubledgerError", "InfrastructureFault", "StoreFault", "PartitionStopped"}
LINES = [line for line in PAGE.splitlines() if line.startswith("|") and line != HEADING]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in LINES if not line.startswith("|---")]


def errors_of_the_product() -> dict[str, str]:
    classes = [node for path in MODULES for node in nodes_of(path) if isinstance(node, ast.ClassDef)]
    bases = [(one.name, ast.unparse(base).rpartition(".")[2]) for one in classes for base in one.bases]
    found: dict[str, str] = {}
    while more := {name: base for name, base in bases if base in {"HubledgerError", *found} and name not in found}:
        found |= more
    return found


def is_there(test: str) -> bool:
    path, _, name = test.partition("::")
    functions, file = (ast.FunctionDef, ast.AsyncFunctionDef), ROOT / path
    return file.is_file() and any(isinstance(node, functions) and node.name == name for node in nodes_of(file))


def test_every_row_is_whole_and_names_tests_that_exist() -> None:
    assert [row for row in ROWS if len(row) != 5 or not all(row)] == []
    assert len(ROWS) >= 40
    named = [re.findall(r"`(tests/[^`]+)`", row[-1]) for row in ROWS]
    assert [row[0] for row, tests in zip(ROWS, named, strict=True) if not tests] == []
    assert [test for tests in named for test in tests if not is_there(test)] == []


def test_every_error_has_a_row_and_the_docstring_draws_it_under_its_parent() -> None:
    product = errors_of_the_product()
    faults = {word for row in ROWS for word in re.findall(r"`(\w+)`", row[0] + row[1])}
    assert product.keys() - GROUPS - faults == set()
    drawn: dict[str, str | None] = {}
    above: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"^([ │├└─]+)([A-Z]\w+)(\s{2,}|$)", line):
            depth = len(found[1])
            above = [one for one in above if one[0] < depth]
            drawn[found[2]] = above[-1][1] if above else None
            above.append((depth, found[2]))
    assert drawn == {**product, "HubledgerError": None}
