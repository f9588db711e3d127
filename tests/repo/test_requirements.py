"""Each package that a place imports is in the requirements that it is installed from, and each place names one Python.

A package that only comes along with a named one is not enough: its next version may no longer bring it. deptry maps a
folder to a file, and here places share folders: the worker and the command line are some modules of `core` each.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import files, packages_distributions
from typing import Any, NamedTuple

import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from pathspec import GitIgnoreSpec

from hubledger.cli.commands import ROOM_COMMANDS
from hubledger.cli.main import missing
from hubledger.cli.operate.commands import GROUPS, SINGLE
from infra.hooks.__main__ import SUPPORTED
from tests.checkout import files_of_checkout
from tests.offenders import holds_for
from tests.repo.product import ROOT

FILES = files_of_checkout()
PYTHON = frozenset(name for name in FILES if name.endswith(".py"))
OURS = {name.partition("/")[0].removesuffix(".py") for name in PYTHON}
ROOMS = ("/examples/*", "/apps/*")
OF_AGENTS = {"mcp": "requirements-mcp.txt brings it"}
ENGINES = {"notebookutils": "Synapse and Fabric bring it"}


class Place(NamedTuple):
    """The modules that match `entries`, and all that they import, installed from files of requirements.

    `elsewhere` says who brings the packages that these files need not name.
    """

    requirements: tuple[str, ...]
    entries: tuple[str, ...]
    elsewhere: Mapping[str, str] = {}


LOCAL, DEV, SPARK = "local/requirements.txt", "requirements-dev.txt", "jobs/requirements.txt"
PLACES = {
    "app": Place(
        ("requirements.txt",),
        ("/function_app.py", "/handlers/", "/hubledger/web.py", "/core/", *ROOMS, "!tests/"),
        {"opentelemetry-distro": "the host configures the SDK"},
    ),
    "worker": Place(
        ("requirements-worker.txt",),
        ("/core/worker/", *(f"{room}/{part}" for room in ROOMS for part in ("transform.py", "aggregates/"))),
    ),
    "command line": Place(
        ("requirements-cli.txt",),
        ("/hubledger/__main__.py", "/hubledger/cli/commands.py"),
        dict.fromkeys(("fastavro", "msgspec"), "the commands for rooms read files of events") | OF_AGENTS,
    ),
    "agents": Place(("requirements-mcp.txt",), ("/hubledger/cli/operate/agents.py",)),
    "commands for rooms": Place((LOCAL,), ("/hubledger/cli/",), OF_AGENTS),
    "local run": Place((LOCAL,), ("/local/",), {"hypothesis": "of the tests of rooms"}),
    "tests of rooms": Place((DEV,), ("/hubledger/testing.py", *(f"{room}/tests/" for room in ROOMS))),
    "jobs": Place((SPARK,), ("/jobs/",), ENGINES),
    "jobs on Spark 4.1": Place(("jobs/requirements-spark41.txt",), ("/jobs/",), ENGINES),
    "hooks": Place(
        ("infra/hooks/requirements.txt",), ("/infra/",), {"fastavro": "the samples of a room are no Avro container"}
    ),
    "tools": Place((), ("/tools/",)),
    "bench": Place((DEV, SPARK), ("/bench/",), ENGINES),
    "site": Place(("requirements-docs.txt",), ("/bin/",)),
}


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a module imports when it runs, also within a function and by `import_module`."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.If(test=ast.Name("TYPE_CHECKING"), orelse=other):
                node = ast.Module(other, [])
            case ast.Import():
                yield from (one.name for one in node.names)
            case ast.ImportFrom(module=str(module), level=0):
                yield from (f"{module}.{one.name}" for one in node.names)
            case ast.Call(func=ast.Name("import_module"), args=[ast.Constant(value=str(name))]):
                yield name
        yield from imported(node)


@cache
def imports_of(name: str) -> frozenset[str]:
    return frozenset(imported(ast.parse((ROOT / name).read_text(encoding="utf-8"))))


@cache
def reached(place: str) -> frozenset[str]:
    waiting, found = set(GitIgnoreSpec.from_lines(PLACES[place].entries).match_files(PYTHON)), set[str]()
    while waiting:
        name = waiting.pop()
        found.add(name)
        for parts in (one.split(".") for one in imports_of(name)):
            paths = ["/".join(parts[: count + 1]) for count in range(len(parts))]  # each package, and the module
            waiting |= (PYTHON & {file for path in paths for file in (f"{path}.py", f"{path}/__init__.py")}) - found
    return frozenset(found)


DISTRIBUTIONS = {name: set(found) for name, found in packages_distributions().items()}


@cache
def package_of(dotted: str) -> str:
    """Return the package that brings a module. One that is not installed here is called as its module."""
    parts = dotted.split(".")
    found = DISTRIBUTIONS.get(parts[0], set())
    if len(found) < 2:
        return canonicalize_name(next(iter(found), parts[0]))
    for count in range(len(parts), 0, -1):
        path = "/".join(parts[:count])
        for one in found:
            if {f"{path}.py", f"{path}/__init__.py"} & {file.as_posix() for file in files(one) or ()}:
                return canonicalize_name(one)
    return canonicalize_name("-".join(parts[:2]))


def packages_of(imports: frozenset[str]) -> set[str]:
    return {package_of(one) for one in imports if one.partition(".")[0] not in {*OURS, *sys.stdlib_module_names}}


def named(*requirements: str) -> set[str]:
    """Return the packages that files of requirements name, with those of the files that they include."""
    found = set[str]()
    lines = [(ROOT / one, line) for one in requirements for line in (ROOT / one).read_text("utf-8").splitlines()]
    for path, line in lines:
        text = line.partition("#")[0].strip()
        if text.startswith("-r "):
            found |= named(str((path.parent / text[3:]).resolve()))
        elif text:
            found.add(canonicalize_name(Requirement(text).name))
    return found


@holds_for(PLACES)
def test_each_package_that_a_place_imports_is_named_where_it_is_installed_from(place: str) -> None:
    of = PLACES[place]
    known = named(*of.requirements) | of.elsewhere.keys()
    lacking = {
        f"{package}: {name} imports it, and {' and '.join(of.requirements) or 'no file'} does not name it"
        for name in reached(place)
        for package in packages_of(imports_of(name)) - known
    }
    assert not lacking, "\n".join(sorted(lacking))


def test_every_module_that_is_shipped_belongs_to_a_place() -> None:
    shipped = {name for name in PYTHON if not name.startswith("tests/")}
    assert sorted(shipped - {name for place in PLACES for name in reached(place)}) == []


def test_a_command_without_its_packages_names_the_file_that_has_them() -> None:
    for command in (*SINGLE, *GROUPS, *ROOM_COMMANDS):
        place = "commands for rooms" if command in ROOM_COMMANDS else "command line"
        assert f"pip install -r {PLACES[place].requirements[0]}`" in missing("click", [command])


@holds_for(
    ["README.md", "CONTRIBUTING.md", *(name for name in FILES if re.fullmatch(r"(docs|local)/[\w-]+\.md", name))]
)
def test_a_package_of_an_example_is_in_the_app_or_named_on_its_page(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python.*?\n(.*?)^```", text, re.S | re.M)
    imports = "\n".join(line for block in blocks for line in re.findall(r"^(?:import|from) .+", block, re.M))
    used = packages_of(frozenset(imported(ast.parse(imports))))
    assert used <= named("requirements.txt") | {canonicalize_name(one) for one in re.findall(r"`([\w.-]+)==", text)}


ALLOWED = SpecifierSet(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["requires-python"])
PYTHONS = [f"3.{minor}" for minor in range(40) if f"3.{minor}" in ALLOWED]


def pins(file: str, python: str) -> list[Requirement]:
    """Return what pip would install from a file on a Python."""
    environment: dict[str, Any] = {**default_environment(), "python_version": python}
    lines = [line.partition("#")[0].strip() for line in (ROOT / file).read_text(encoding="utf-8").splitlines()]
    found = [Requirement(line) for line in lines if line and not line.startswith("-r ")]
    return [one for one in found if one.marker is None or one.marker.evaluate(environment)]


def test_each_place_that_names_pythons_names_those_of_pyproject() -> None:
    texts = {name: (ROOT / name).read_text("utf-8") for name in ("Makefile", "infra/main.bicep")}
    first, last = (tuple(map(int, python.split("."))) for python in (PYTHONS[0], PYTHONS[-1]))
    assert f"not {first} <= sys.version_info < ({last[0]}, {last[1] + 1})" in texts["Makefile"]
    assert [f"{major}.{minor}" for major, minor in SUPPORTED] == PYTHONS
    assert f"param pythonVersion {' | '.join(map(repr, PYTHONS))} = " in texts["infra/main.bicep"]
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == PYTHONS


DEPLOYED = {  # where one Python is chosen, and not a range
    "infra/main.bicep": r"^param pythonVersion .* = '([\d.]+)'$",
    "Dockerfile": r"^FROM python:(3\.\d+)\.",
    ".devcontainer/devcontainer.json": r'/python:(3\.\d+)-',
    **dict.fromkeys((name for name in FILES if name.startswith(".github/workflows/")), r'python-version: "([\d.]+)"'),
}  # fmt: skip


def test_the_deployed_python_is_one_for_app_image_machine_and_workflows() -> None:
    found = {name: re.findall(pattern, (ROOT / name).read_text("utf-8"), re.M) for name, pattern in DEPLOYED.items()}
    assert {name for name, pythons in found.items() if not pythons} == {".github/workflows/soak.yml"}  # two of them
    assert {python for pythons in found.values() for python in pythons} == {"3.13"}
    soak = yaml.safe_load((ROOT / ".github/workflows/soak.yml").read_text("utf-8"))["jobs"]["soak"]
    assert soak["strategy"]["matrix"]["python"] == ["3.11", "3.13"], "the first has Spark 3.5"


@holds_for([name for name in FILES if re.search(r"(^|/)requirements[\w-]*\.txt$", name)])
def test_a_python_gets_one_version_of_each_package(file: str) -> None:
    wants = {python: pins(file, python) for python in PYTHONS}
    assert [one for found in wants.values() for one in found if not re.fullmatch(r"==[\w.]+", str(one.specifier))] == []
    for found in wants.values():
        names = Counter(one.name for one in found)
        assert [name for name, times in names.items() if times > 1] == []
        assert names == Counter(one.name for one in wants[PYTHONS[0]])


def test_where_spark_3_5_does_not_run_the_pins_are_those_of_the_second_leg() -> None:
    first, second = SPARK, "jobs/requirements-spark41.txt"
    assert "pyspark==3.5.9" in {f"{one.name}{one.specifier}" for one in pins(first, "3.11")}
    for python in PYTHONS[1:]:
        own, other = ({f"{one.name}{one.specifier}" for one in pins(file, python)} for file in (first, second))
        assert own == other


def test_the_command_line_alone_needs_no_package_of_the_app() -> None:
    """It is installed by requirements-cli.txt where nothing else is."""
    program = "import runpy, sys; sys.modules['msgspec'] = None; sys.argv = ['hubledger', 'status']"
    words = [sys.executable, "-c", f"{program}; runpy.run_module('hubledger', run_name='__main__')"]
    done = subprocess.run(words, cwd=ROOT, env={"HOME": "/nowhere"}, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "which app?" in done.stderr, done.stderr
