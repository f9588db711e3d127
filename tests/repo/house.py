"""`python -m tests.repo.house`: measure the shape of the house, one column for each `--root`.

Modules are those of `core/` and `handlers/`, with `function_app.py`. A module imports every module that it names in an
import statement anywhere in it: at its top, under `TYPE_CHECKING` or inside a function. A call such as
`import_module(f"PACKAGE.{name}")` counts as the import of every member of the package. The import of a package counts
as the import of its `__init__`, and a package's own `__init__` is not counted as imported by its members.
"""

import argparse
import ast
import itertools
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from tests.repo.product import nodes_of

HERE = Path(__file__).parents[2]
ENGINES = re.compile(r"sqlite|server|odbc|mssql|postgres")
ENGINE_ROOMS = ("core/store/sqlite/", "core/store/sqlserver/")
WALKS = ("event", "letter", "replay", "aggregation", "gap", "status")
PORT_VERBS = ("ask", "run", "close")  # of the port `Database`: a wrapper of these adds patience or memory
Graph = Mapping[str, Set[str]]
Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
WEIGHED = ("core", "handlers", "sql", "hubledger", "jobs")  # the folders of the features
SPOKEN = ("core", "handlers", "hubledger", "jobs", "local", "bench")  # the folders whose docstrings are read
KINDS = {".py", ".js", ".css", ".html", ".sql"}  # of files that are weighed
SHARED_FIELDS = 6  # of two classes that are one shape

# The figures that the house must keep, by the names of their rows.
LIMITS = {
    "rooms in core/": 21,
    "floors of core/, by room": 9,
    "store modules named by engine": 0,
    "pass-through methods": 0,
    "docstrings that say See X": 0,
    "docstrings with a semicolon": 0,
    "import cycles": 0,
    "lines of the longest function": 60,
    "lines of the longest module": 600,
    "lines: core and handlers": 29_920,
    "lines: sql": 3_690,
    "lines: hubledger": 6_120,
    "lines: jobs": 3_400,
    "files of core/": 140,
    "core: helpers with one caller, a 1,000 lines": 8,
    "handlers: helpers with one caller, a 1,000 lines": 8,
    "hubledger: helpers with one caller, a 1,000 lines": 8,
    "names in two modules": 14,
    "pairs of classes with six fields in common": 6,
    "walk: event": 8,
    "walk: letter": 8,
    "walk: replay": 9,
    "walk: status": 6,
}


@dataclass(frozen=True)
class House:
    """One checkout of the product, read from its syntax trees."""

    root: Path

    @cached_property
    def paths(self) -> dict[str, Path]:
        """The file of each module, by the module's dotted name."""
        files = [
            self.root / "function_app.py",
            self.root / "hubledger" / "__init__.py",
            *(path for folder in ("core", "handlers", "examples", "jobs") for path in self._under(folder)),
        ]
        return {self._name(path): path for path in files if path.exists()}

    @cached_property
    def nodes(self) -> dict[str, tuple[ast.AST, ...]]:
        """All nodes of the syntax tree of each module."""
        return {name: nodes_of(path) for name, path in self.paths.items()}

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """The modules that each module imports."""
        modules = self.nodes.items()
        return {name: {*self._imported(nodes), *self._computed(name, nodes)} - {name} for name, nodes in modules}

    @cached_property
    def named(self) -> dict[str, set[str]]:
        """The modules that each module names in a string constant, as the default of `TRANSFORM` names a room."""
        named = {name: {*_strings(nodes)} for name, nodes in self.nodes.items()}
        return {name: {*found, *(f"{one}.transform" for one in found)} & {*self.paths} for name, found in named.items()}

    @cached_property
    def rooms(self) -> list[str]:
        """The files and folders directly in `core/`."""
        children = (self.root / "core").iterdir()
        return sorted(child.name for child in children if not child.name.startswith("__"))

    @cached_property
    def room_imports(self) -> dict[str, set[str]]:
        """The rooms of `core/` that each room imports."""
        graph: dict[str, set[str]] = {Path(room).stem: set() for room in self.rooms}
        for name, targets in self.imports.items():
            if name.startswith("core."):
                graph[_room(name)] |= {_room(one) for one in targets if one.startswith("core.")} - {_room(name)}
        return graph

    @cached_property
    def core_imports(self) -> dict[str, set[str]]:
        """The imports within `core/`, module by module."""
        core = {name for name in self.imports if name.startswith("core.")}
        return {name: self.imports[name] & core for name in core}

    @cached_property
    def walks(self) -> dict[str, list[str]]:
        """The files of each walk of `docs/architecture.md`, in their order."""
        page = self.root / "docs" / "architecture.md"
        return read_walks(page.read_text(encoding="utf-8")) if page.exists() else {}

    def module_of(self, file: str) -> str:
        """Return the dotted name of a file that a walk names."""
        return self._name(self.root / file)

    def engine_modules(self) -> list[str]:
        """Return the modules of the store that are named by an engine, outside the engines' rooms."""
        files = [path.relative_to(self.root).as_posix() for path in self._under("core/store")]
        return [file for file in files if ENGINES.search(Path(file).stem) and not file.startswith(ENGINE_ROOMS)]

    def pass_throughs(self) -> list[str]:
        """Return the methods that only forward their arguments, directly or in a call such as a retry."""
        return [
            f"{name}.{owner.name}.{method.name}"
            for name, nodes in self.nodes.items()
            for owner in nodes
            if isinstance(owner, ast.ClassDef)
            for method in owner.body
            if isinstance(method, Function) and method.name not in PORT_VERBS and _forwards(method)
        ]

    def pointing_docstrings(self) -> list[str]:
        """Return the modules with a docstring that only points elsewhere ("See Store."), once for each of them."""
        return [name for name, nodes in self.nodes.items() for node in nodes if _points_elsewhere(node)]

    def semicolons(self) -> list[str]:
        """Return the files with a docstring that has a semicolon, once for each of them."""
        files = [path for folder in SPOKEN for path in self._under(folder)]
        return [path.as_posix() for path in files for node in nodes_of(path) if ";" in _docstring_of(node)]

    def longest_function(self) -> int:
        """Return the lines of the longest function."""
        found = [node for nodes in self.nodes.values() for node in nodes if isinstance(node, Function)]
        return max((node.end_lineno or 0) - node.lineno + 1 for node in found)

    def longest_module(self) -> int:
        """Return the lines of the longest module."""
        return max(_lines(path) for path in self.paths.values())

    @cached_property
    def features(self) -> list["Feature"]:
        """The features that tests/repo/features.toml names, each with its lines."""
        page = self.root / "tests" / "repo" / "features.toml"
        named = tomllib.loads(page.read_text(encoding="utf-8")) if page.exists() else {}
        weights = {path.relative_to(self.root).as_posix(): _lines(path) for path in self._weighed(*WEIGHED)}
        patterns = [(pattern, name) for name, one in named.items() for pattern in one["files"]]
        owners = {file: _owner(file, patterns) for file, lines in weights.items() if lines}
        lost = sorted(file for file, (name, _) in owners.items() if name is None)
        unused = sorted({pattern for pattern, _ in patterns} - {pattern for _, pattern in owners.values()})
        weighed: Counter[str | None] = Counter()
        for file, (name, _) in owners.items():
            weighed[name] += weights[file]
        found = [Feature(name, weighed[name], one["lines"]) for name, one in named.items()]
        return [*found, *(Feature(f"no feature, or no file: {one}", 1, 0) for one in [*lost, *unused] if named)]

    def weight(self, *folders: str) -> int:
        """Return the lines of folders, with JavaScript, CSS, HTML and SQL."""
        return sum(_lines(path) for path in self._weighed(*folders))

    def lone_helpers(self, folder: str) -> int:
        """Return how many private functions with one caller there are in a folder, for each 1,000 lines."""
        nodes = [nodes_of(path) for path in self._under(folder)]
        return round(1000 * sum(map(_lone_helpers, nodes)) / max(self.lines(folder), 1))

    def functions(self, folder: str) -> int:
        """Return how many functions there are in a folder, for each 1,000 lines."""
        found = sum(isinstance(node, Function) for path in self._under(folder) for node in nodes_of(path))
        return round(1000 * found / max(self.lines(folder), 1))

    def lines_a_file(self, folder: str) -> int:
        """Return the mean lines of the Python files of a folder that are not empty."""
        return self.lines(folder) // max(len([path for path in self._under(folder) if _lines(path)]), 1)

    def names_in_two_modules(self) -> list[str]:
        """Return the functions and classes of one name that stand at the top of several modules."""
        modules = [nodes_of(path)[0] for folder in ("core", "handlers") for path in self._under(folder)]
        tops = [{one.name for one in module.body if isinstance(one, Definition)} for module in modules]  # type: ignore[attr-defined]
        return sorted(name for name, times in Counter(itertools.chain(*tops)).items() if times > 1)

    def twin_classes(self) -> list[tuple[str, str]]:
        """Return the pairs of classes in core and handlers that share six fields or more."""
        nodes = [node for folder in ("core", "handlers") for path in self._under(folder) for node in nodes_of(path)]
        fields = {node.name: _fields(node) for node in nodes if isinstance(node, ast.ClassDef)}
        pairs = itertools.combinations(sorted(fields), 2)
        return [(one, two) for one, two in pairs if len(fields[one] & fields[two]) >= SHARED_FIELDS]

    def lines(self, *folders: str) -> int:
        """Return the lines of the Python files of folders."""
        return sum(_lines(path) for folder in folders for path in self._under(folder))

    def _under(self, folder: str) -> list[Path]:
        return sorted(path for path in (self.root / folder).rglob("*.py") if "__pycache__" not in path.parts)

    def _weighed(self, *folders: str) -> list[Path]:
        files = (path for folder in folders for path in (self.root / folder).rglob("*") if path.suffix in KINDS)
        return sorted(path for path in files if "__pycache__" not in path.parts)

    def _name(self, path: Path) -> str:
        parts = path.relative_to(self.root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def _imported(self, nodes: tuple[ast.AST, ...]) -> Iterator[str]:
        for node in nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in self.paths)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    member, module = f"{node.module}.{alias.name}", node.module or ""
                    yield from [one for one in (member, module) if one in self.paths][:1]

    def _computed(self, name: str, nodes: tuple[ast.AST, ...]) -> Iterator[str]:
        calls = [ast.unparse(node) for node in nodes if isinstance(node, ast.Call) and _names_import(node.func)]
        texts = [text for text in calls if re.match(r"(?:importlib\.)?import_module\(", text)]
        packages = [found[1] for text in texts if (found := re.search(r"\(f['\"]([\w.]+|{__name__})\.{", text))]
        for package in packages:
            parent = name if package == "{__name__}" else package
            yield from (one for one in self.paths if one.rpartition(".")[0] == parent)


@dataclass(frozen=True)
class Feature:
    """One feature: its lines in core, handlers, sql, hubledger and jobs, and its budget."""

    name: str
    lines: int
    budget: int


def read_walks(page: str) -> dict[str, list[str]]:
    """Return the files of each fenced block that begins with "```walk NAME", in their order."""
    blocks = re.findall(r"^```walk (\w+)\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    return {
        name: [line.partition(" #")[0].strip() for line in body.splitlines() if line.strip()] for name, body in blocks
    }


def cycles(graph: Graph) -> list[list[str]]:
    """Return the strongly connected components of more than one module."""
    return sorted(sorted(one) for one in _components(graph) if len(one) > 1)


def floors(graph: Graph) -> int:
    """Return the length of the longest chain of imports; the modules of one cycle stand on one floor."""
    component = {name: index for index, names in enumerate(_components(graph)) for name in names}
    height: dict[int, int] = {}
    for index, names in enumerate(_components(graph)):  # what a component imports comes before it
        below = {component[target] for name in names for target in graph[name]} - {index}
        height[index] = 1 + max((height[one] for one in below), default=0)
    return max(height.values(), default=0)


def reachable(graph: Graph, sources: Set[str], steps: int) -> set[str]:
    """Return the modules that a chain of at most so many imports reaches from one of the sources."""
    found = set(sources)
    for _ in range(steps):
        found |= {target for name in found for target in graph.get(name, ())}
    return found


def _components(graph: Graph) -> list[list[str]]:
    """Return the strongly connected components by Tarjan's algorithm, imported ones first."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for target in sorted(graph[name]):
            if target not in order:
                visit(target)
            if target in stack:
                low[name] = min(low[name], low[target])
        if low[name] == order[name]:
            found.append(stack[stack.index(name) :])
            del stack[stack.index(name) :]

    for name in sorted(graph):
        if name not in order:
            visit(name)
    return found


def _owner(file: str, patterns: Iterable[tuple[str, str]]) -> tuple[str | None, str | None]:
    """Return the feature with the longest pattern that names a file, and the pattern."""
    found = [(len(pattern), name, pattern) for pattern, name in patterns if fnmatchcase(file, pattern)]
    return max(found)[1:] if found else (None, None)


def _lone_helpers(nodes: Sequence[ast.AST]) -> int:
    used = Counter(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in nodes
        if isinstance(node, ast.Name | ast.Attribute)
    )
    private = [node.name for node in nodes if isinstance(node, Function) and re.match("_[^_]", node.name)]
    return sum(used[name] == 1 for name in private)


def _fields(node: ast.ClassDef) -> set[str]:
    fields = (one.target for one in node.body if isinstance(one, ast.AnnAssign))
    return {target.id for target in fields if isinstance(target, ast.Name)}


def _room(name: str) -> str:
    return name.split(".")[1]


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _names_import(called: ast.expr) -> bool:
    return "import_module" in (getattr(called, "id", ""), getattr(called, "attr", ""))


def _strings(nodes: tuple[ast.AST, ...]) -> Iterator[str]:
    return (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


def _docstring_of(node: ast.AST) -> str:
    return (ast.get_docstring(node) if isinstance(node, Definition | ast.Module) else None) or ""


def _points_elsewhere(node: ast.AST) -> bool:
    return bool(re.match(r"See [\w. `]+\.?$", _docstring_of(node)))


def _forwards(method: Function) -> bool:
    """Return True if a method only calls the same name on a different object, with the same arguments."""
    body = method.body[1:] if ast.get_docstring(method) else method.body
    parameters = (*method.args.args, *method.args.kwonlyargs, method.args.vararg, method.args.kwarg)
    taken = {one.arg for one in parameters if one is not None} - {"self", "cls"}
    calls = [node for node in ast.walk(body[0]) if isinstance(node, ast.Call)] if len(body) == 1 else []
    return any(_is_of_another(call.func, method.name) and _passed(call) == taken for call in calls)


def _is_of_another(called: ast.expr, name: str) -> bool:
    if not isinstance(called, ast.Attribute) or called.attr != name:
        return False
    is_super = isinstance(called.value, ast.Call)
    return not is_super and not (isinstance(called.value, ast.Name) and called.value.id == "self")


def _passed(call: ast.Call) -> set[str] | None:
    """The names that a call passes on; None when it passes anything else."""
    values = [*call.args, *(one.value for one in call.keywords)]
    values = [one.value if isinstance(one, ast.Starred) else one for one in values]
    names = {one.id for one in values if isinstance(one, ast.Name)}
    return names if all(isinstance(one, ast.Name) for one in values) else None


FIGURES: dict[str, Callable[[House], int | None]] = {
    "rooms in core/": lambda house: len(house.rooms),
    "floors of core/, by room": lambda house: floors(house.room_imports),
    "floors of core/, by module": lambda house: floors(house.core_imports),
    "store modules named by engine": lambda house: len(house.engine_modules()),
    "pass-through methods": lambda house: len(house.pass_throughs()),
    "docstrings that say See X": lambda house: len(house.pointing_docstrings()),
    "docstrings with a semicolon": lambda house: len(house.semicolons()),
    "import cycles": lambda house: len(cycles(house.imports)),
    "lines of the longest function": House.longest_function,
    "lines of the longest module": House.longest_module,
    "lines: core and handlers": lambda house: house.weight("core", "handlers"),
    "lines: sql": lambda house: house.weight("sql"),
    "lines: hubledger": lambda house: house.weight("hubledger"),
    "lines: jobs": lambda house: house.weight("jobs"),
    "lines: local": lambda house: house.lines("local"),
    "files of core/": lambda house: len(house._under("core")),
    "lines of a file of core/": lambda house: house.lines_a_file("core"),
    "core: functions, a 1,000 lines": lambda house: house.functions("core"),
    "core: helpers with one caller, a 1,000 lines": lambda house: house.lone_helpers("core"),
    "handlers: helpers with one caller, a 1,000 lines": lambda house: house.lone_helpers("handlers"),
    "hubledger: helpers with one caller, a 1,000 lines": lambda house: house.lone_helpers("hubledger"),
    "names in two modules": lambda house: len(house.names_in_two_modules()),
    "pairs of classes with six fields in common": lambda house: len(house.twin_classes()),
    "lines of tests": lambda house: house.lines("tests"),
}


def figures_of(house: House) -> dict[str, int | None]:
    """Return every figure of a house by its name; None for a walk that it does not describe."""
    figures = {name: measure(house) for name, measure in FIGURES.items()}
    return figures | {f"walk: {name}": len(house.walks[name]) if name in house.walks else None for name in WALKS}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.repo.house", description="Measure the shape of the house.")
    parser.add_argument("--root", action="append", type=Path, help="a checkout to measure; may be given several times")
    roots = parser.parse_args().root or [HERE]
    houses = [House(root.resolve()) for root in roots]
    columns = [figures_of(house) for house in houses]
    print(f"{'':52}{'limit':>9}" + "".join(f"{house.root.name:>14}" for house in houses))
    for name in columns[0]:
        _print_row(name, LIMITS.get(name), [column[name] for column in columns])
    print("\nlines of a feature: core, handlers, sql, hubledger, jobs")
    weights = [{one.name: one.lines for one in house.features} for house in houses]
    budgets = {one.name: one.budget for house in houses for one in house.features}
    for name, budget in budgets.items():
        _print_row(name, budget, [column.get(name) for column in weights])


def _print_row(name: str, limit: int | None, values: Sequence[int | None]) -> None:
    cells = "".join(f"{'-' if value is None else format(value, ','):>14}" for value in values)
    print(f"{name:52}{'' if limit is None else format(limit, ','):>9}{cells}")


if __name__ == "__main__":
    main()
