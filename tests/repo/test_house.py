"""The limits of the house hold in every module of the product."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repo.product import MODULES, ROOT, TEXTS, imports_of, name_of, tree_of

MODULE_LINES, FUNCTION_LINES = 300, 40
each_module = pytest.mark.parametrize("path", MODULES, ids=name_of)
each_text = pytest.mark.parametrize("path", TEXTS, ids=name_of)


def test_the_product_is_found() -> None:
    names = {name_of(path) for path in [*MODULES, *TEXTS]}
    assert {"function_app.py", "core/ingest.py", "handlers/ingest.py", "docs/one-event.md", "host.json"} <= names
    assert not any("__pycache__" in name or name.startswith((".venv", "tests")) for name in names)


@each_module
def test_a_module_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MODULE_LINES


@each_module
def test_a_module_begins_by_saying_its_idea(path: Path) -> None:
    if path.name == "__init__.py" and not path.read_text(encoding="utf-8").strip():
        return  # only makes its folder a package
    assert ast.get_docstring(tree_of(path))


@each_module
def test_a_function_is_short(path: Path) -> None:
    functions = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    long = {
        one.name: length for one in functions if (length := (one.end_lineno or 0) - one.lineno + 1) > FUNCTION_LINES
    }
    assert long == {}


@each_module
def test_a_module_imports_no_tests_and_no_measurements(path: Path) -> None:
    own = name_of(path).split("/")[0]
    assert not {name for name in imports_of(path) if name.split(".")[0] in {"tests", "bench"} - {own}}


@each_module
def test_core_knows_no_functions_host(path: Path) -> None:
    if name_of(path).startswith("core/"):
        assert not {
            name for name in imports_of(path) if name.startswith(("azure.functions", "azure.durable_functions"))
        }


@each_module
def test_nothing_is_left_to_be_implemented(path: Path) -> None:
    raised = {ast.unparse(node.exc) for node in ast.walk(tree_of(path)) if isinstance(node, ast.Raise) and node.exc}
    assert not {each for each in raised if each.startswith("NotImplementedError")}


@each_text
def test_a_file_names_no_place_of_one_machine_and_leaves_nothing_to_do(path: Path) -> None:
    words = re.compile(r"\b(TODO|FIXME|XXX)\b|(?<![\w.}])/(work|root|tmp|home/\w+|Users)/")
    assert [found[0] for found in words.finditer(path.read_text(encoding="utf-8"))] == []


def test_indexing_the_app_loads_no_driver_and_no_client() -> None:
    heavy = "sqlite3 pyodbc azure.eventhub azure.identity azure.core msgspec asyncio.windows_events pyspark"
    script = f"import sys, function_app; print(*(name for name in {heavy.split()!r} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env={}, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == []
