import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.patience import allowed
from tests.repo.house import LIMITS, WALKS, House, figures_of, reachable
from tests.repo.product import MODULES, ROOT, TEXTS, name_of, nodes_of, text_of

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
HOUSE = House(ROOT)
STEPS = 4  # imports from one module of a walk to a later one: the settings lead to the default of TRANSFORM
HOME = re.compile(r"(?<!examples\.)home", re.IGNORECASE)
OF_THE_APP = [
    *(path for path in TEXTS if name_of(path).startswith(("core/", "handlers/", "sql/")) and path.suffix != ".md"),
    ROOT / "infra" / "settings.json",
]
PLACES = re.compile(r"\b(TODO|FIXME|XXX)\b|(?<![\w.}])/(work|root|tmp|home/\w+|Users)/")


def test_the_house_keeps_its_limits() -> None:
    figures = figures_of(HOUSE)
    assert {name: figures[name] for name, limit in LIMITS.items() if (figures[name] or 0) > limit} == {}


def test_each_file_belongs_to_a_feature_and_each_feature_keeps_its_budget() -> None:
    assert len(HOUSE.features) > 40
    assert [one for one in HOUSE.features if one.lines > one.budget] == []


def test_the_picture_and_the_table_of_the_page_have_the_rooms_and_layers_of_the_import_contract() -> None:
    picture = re.search(r"^```layers\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert picture is not None
    lines = [line.strip() for line in picture[1].partition("═ core ═")[2].splitlines()]
    drawn = [frozenset(cell.split()[0] for cell in line.strip("│").split("│")) for line in lines if line[:1] == "│"]
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (contract,) = (one for one in linter["contracts"] if one.get("containers") == ["core"])
    assert drawn == [frozenset(re.findall(r"\w+", layer)) for layer in contract["layers"]]
    assert sorted(room for layer in drawn for room in layer) == sorted(Path(room).stem for room in HOUSE.rooms)
    described = re.findall(r"^\| `([\w./]+)` \|", PAGE, flags=re.MULTILINE)
    rooms = {f"core/{room}" + ("" if room.endswith(".py") else "/") for room in HOUSE.rooms}
    assert {name for name in described if name.startswith("core/")} == rooms
    assert [name for name in described if not (ROOT / name).exists()] == []


def test_an_earlier_module_of_a_walk_imports_its_way_to_each_next_one() -> None:
    graph = {name: HOUSE.imports[name] | HOUSE.named[name] for name in HOUSE.imports}
    unreached = {
        name: [
            file
            for place, file in enumerate(walk[1:], start=1)
            if HOUSE.module_of(file) not in reachable(graph, set(map(HOUSE.module_of, walk[:place])), STEPS)
        ]
        for name, walk in HOUSE.walks.items()
    }
    assert unreached == {name: [] for name in WALKS}


def test_no_module_imports_tests_or_measurements_and_core_knows_no_functions_host() -> None:
    found = set()
    for path in MODULES:
        name, nodes = name_of(path), nodes_of(path)
        modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        modules |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        foreign = {"tests", "bench"} - {name.split("/")[0]}
        found |= {(name, one) for one in modules if one.split(".")[0] in foreign}
        hosts = ("azure.functions", "azure.durable_functions")
        found |= {(name, one) for one in modules if name.startswith("core/") and one.startswith(hosts)}
    assert found == set()


def test_a_file_names_no_place_of_one_machine_and_leaves_nothing_to_do() -> None:
    assert {name_of(path): one[0] for path in TEXTS if (one := PLACES.search(text_of(path)))} == {}


def test_no_docstring_has_a_semicolon_or_opens_with_a_question_word() -> None:
    """An opening such as "What a command printed" hides the noun. Semicolons between backticks do not count."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    texts = [
        (name_of(path), re.sub("`[^`]*`", "", ast.get_docstring(node) or ""))
        for path in (*MODULES, *(ROOT / "tests").rglob("*.py"))
        for node in nodes_of(path)
        if isinstance(node, documented)
    ]
    assert [(name, text) for name, text in texts if ";" in text or re.match(r"(What|How|Whether|Who) ", text)] == []
    assert len(texts) > 10_000


def test_indexing_the_app_loads_no_driver_and_no_client() -> None:
    heavy = "sqlite3 pyodbc azure.eventhub azure.identity azure.core msgspec asyncio.windows_events pyspark"
    script = f"import sys, function_app; print(*(name for name in {heavy.split()!r} if name in sys.modules))"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, env={}, capture_output=True, text=True, check=True, timeout=allowed(60))
    assert done.stdout.split() == []


def test_the_app_does_not_know_the_business_of_its_example() -> None:
    """Only the default of TRANSFORM names the room."""
    found = [name_of(path) for path in OF_THE_APP if HOME.search(text_of(path))]
    assert (found, len(OF_THE_APP) > 200) == ([], True)
