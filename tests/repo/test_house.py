"""The limits of the house hold in every module of the product."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.patience import allowed
from tests.repo.product import MODULES, ROOT, TEXTS, imports_of, name_of, nodes_of, text_of

MODULE_LINES, FUNCTION_LINES = 600, 60
SUFFIXES = {".py", ".js", ".html", ".css", ".sql"}
WORD = re.compile(r"(?<!examples\.)home", re.IGNORECASE)
OF_THE_APP = [
    *(path for folder in ("core", "handlers", "sql") for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES),
    ROOT / "infra" / "settings.json",
]
PLACES = re.compile(r"\b(TODO|FIXME|XXX)\b|(?<![\w.}])/(work|root|tmp|home/\w+|Users)/")


def offenders(paths: list[Path], faults_of: Callable[[Path], object]) -> dict[str, object]:
    """Return the files that have faults, each with its own."""
    return {name_of(path): faults for path in paths if (faults := faults_of(path))}


def test_a_module_is_short() -> None:
    def lines(path: Path) -> int:
        return len(text_of(path).splitlines())

    assert offenders(MODULES, lambda path: lines(path) > MODULE_LINES and lines(path)) == {}


def test_a_function_is_short() -> None:
    def long(path: Path) -> dict[str, int]:
        kinds = ast.FunctionDef | ast.AsyncFunctionDef
        lengths = {one.name: (one.end_lineno or 0) - one.lineno + 1 for one in nodes_of(path) if isinstance(one, kinds)}
        return {name: length for name, length in lengths.items() if length > FUNCTION_LINES}

    assert offenders(MODULES, long) == {}


def test_a_module_imports_no_tests_and_no_measurements() -> None:
    def foreign(path: Path) -> set[str]:
        own = name_of(path).split("/")[0]
        return {name for name in imports_of(path) if name.split(".")[0] in {"tests", "bench"} - {own}}

    assert offenders(MODULES, foreign) == {}


def test_core_knows_no_functions_host() -> None:
    core = [path for path in MODULES if name_of(path).startswith("core/")]
    hosts = ("azure.functions", "azure.durable_functions")
    assert offenders(core, lambda path: {name for name in imports_of(path) if name.startswith(hosts)}) == {}


def test_a_file_names_no_place_of_one_machine_and_leaves_nothing_to_do() -> None:
    assert offenders(TEXTS, lambda path: [found[0] for found in PLACES.finditer(text_of(path))]) == {}


def test_indexing_the_app_loads_no_driver_and_no_client() -> None:
    heavy = "sqlite3 pyodbc azure.eventhub azure.identity azure.core msgspec asyncio.windows_events pyspark"
    script = f"import sys, function_app; print(*(name for name in {heavy.split()!r} if name in sys.modules))"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, env={}, capture_output=True, text=True, check=True, timeout=allowed(60))
    assert done.stdout.split() == []


def test_the_app_does_not_know_the_business_of_its_example() -> None:
    """Only the default of TRANSFORM names the room."""
    found = [name_of(path) for path in OF_THE_APP if WORD.search(path.read_text(encoding="utf-8"))]
    assert (found, len(OF_THE_APP) > 200) == ([], True)
