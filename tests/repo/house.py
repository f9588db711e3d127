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
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.repo.product import ROOT, nodes_of

ENGINES = re.compile(r"sqlite|server|odbc|mssql|postgres")
ENGINE_ROOMS = ("core/store/sqlite/", "core/store/sqlserver/")
WALKS = ("event", "letter", "replay", "aggregation", "gap", "status")
PORT_VERBS = ("ask", "run", "close")  # of the port `Database`: a wrapper of these adds patience or memory
Graph = Mapping[str, Set[str]]
Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
WEIGHED = ("core", "handlers", "sql", "hubledger", "jobs")  # the folders of the features
MEASURED = ("core", "handlers", "examples", "jobs", "local", "bench", "infra", "tools", "hubledger")
KINDS = {".py", ".js", ".css", ".html", ".sql"}  # of files that are weighed
SHARED_FIELDS = 6  # of two classes that are one shape

# The figures that the house must keep, by the names of their rows.
LIMITS = {
    "rooms in core/": 21,
    "floors of core/, by room": 9,
    "store modules named by engine": 0,
    "pass-through methods": 0,
    "import cycles": 0,
    "lines of the longest function": 60,
    "lines of the longest module": 600,
    "lines: core and handlers": 31_800,
    "lines: sql": 3_960,
    "lines: hubledger": 6_837,
    "lines: jobs": 3_610,
    "files of core/": 142,
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
class Feature:
    name: str
    lines: int
    budget: int


@dataclass(frozen=True)
class House:
    """One checkout of the product, read from its syntax trees."""

    root: Path

    @cached_property
    def nodes(self) -> dict[str, tuple[ast.AST, ...]]:
        """All nodes of the syntax tree of each module, by the module's dotted name."""
        files = [
            self.root / "function_app.py",
            self.root / "hubledger" / "__init__.py",
            *self._under("core", "handlers", "examples", "jobs"),
        ]
        return {self.module_of(path): nodes_of(path) for path in files if path.exists()}

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        modules = self.nodes.items()
        return {name: {*self._imported(nodes), *self._computed(name, nodes)} - {name} for name, nodes in modules}

    @cached_property
    def named(self) -> dict[str, set[str]]:
        """The modules that each module names in a string constant, as the default of `TRANSFORM` names a room."""
        named = {
            name: {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
            for name, nodes in self.nodes.items()
        }
        return {name: {*found, *(f"{one}.transform" for one in found)} & {*self.nodes} for name, found in named.items()}

    @cached_property
    def rooms(self) -> list[str]:
        children = (self.root / "core").iterdir()
        return sorted(child.name for child in children if not child.name.startswith("__"))

    @cached_property
    def walks(self) -> dict[str, list[str]]:
        page = self.root / "docs" / "architecture.md"
        text = page.read_text(encoding="utf-8") if page.exists() else ""
        blocks = re.findall(r"^```walk (\w+)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
        return {
            name: [line.partition(" #")[0].strip() for line in body.splitlines() if line.strip()]
            for name, body in blocks
        }

    @cached_property
    def features(self) -> list[Feature]:
        page = self.root / "tests" / "repo" / "features.toml"
        named = tomllib.loads(page.read_text(encoding="utf-8")) if page.exists() else {}
        weights = {path.relative_to(self.root).as_posix(): _lines(path) for path in self._weighed(*WEIGHED)}
        patterns = [(pattern, name) for name, one in named.items() for pattern in one[1:]]
        weighed: Counter[str] = Counter()
        lost, unused = list[str](), {pattern for pattern, _ in patterns}
        for file, lines in weights.items():
            found = [(len(pattern), name, pattern) for pattern, name in patterns if fnmatchcase(file, pattern)]
            if lines and found:
                _, name, pattern = max(found)  # the longest pattern
                weighed[name] += lines
                unused.discard(pattern)
            elif lines:
                lost.append(file)
        features = [Feature(name, weighed[name], one[0]) for name, one in named.items()]
        return [*features, *(Feature(f"no feature, or no file: {one}", 1, 0) for one in [*lost, *unused] if named)]

    def module_of(self, file: str | Path) -> str:
        parts = (self.root / file).relative_to(self.root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def room_imports(self) -> Graph:
        graph: dict[str, set[str]] = {Path(room).stem: set() for room in self.rooms}
        for name, targets in self.imports.items():
            if name.startswith("core."):
                own = name.split(".")[1]
                graph[own] |= {one.split(".")[1] for one in targets if one.startswith("core.")} - {own}
        return graph

    def engine_modules(self) -> list[str]:
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

    def longest_function(self) -> int:
        found = [node for path in self._under(*MEASURED) for node in nodes_of(path) if isinstance(node, Function)]
        return max((node.end_lineno or 0) - node.lineno + 1 for node in found)

    def weight(self, *folders: str) -> int:
        return sum(_lines(path) for path in self._weighed(*folders))

    def lone_helpers(self, folder: str) -> int:
        lone = 0
        for nodes in map(nodes_of, self._under(folder)):
            used = Counter(getattr(one, "id", getattr(one, "attr", "")) for one in nodes)
            private = [one.name for one in nodes if isinstance(one, Function) and re.match("_[^_]", one.name)]
            lone += sum(used[name] == 1 for name in private)
        return round(1000 * lone / max(self.lines(folder), 1))

    def names_in_two_modules(self) -> list[str]:
        modules = [nodes_of(path)[0] for path in self._under("core", "handlers")]
        tops = [{one.name for one in module.body if isinstance(one, Definition)} for module in modules]  # type: ignore[attr-defined]
        return sorted(name for name, times in Counter(itertools.chain(*tops)).items() if times > 1)

    def twin_classes(self) -> list[tuple[str, str]]:
        def fields_of(node: ast.ClassDef) -> set[str]:
            fields = (one.target for one in node.body if isinstance(one, ast.AnnAssign))
            return {target.id for target in fields if isinstance(target, ast.Name)}

        nodes = [node for path in self._under("core", "handlers") for node in nodes_of(path)]
        fields = {node.name: fields_of(node) for node in nodes if isinstance(node, ast.ClassDef)}
        pairs = itertools.combinations(sorted(fields), 2)
        return [(one, two) for one, two in pairs if len(fields[one] & fields[two]) >= SHARED_FIELDS]

    def lines(self, *folders: str) -> int:
        return sum(map(_lines, self._under(*folders)))

    def _under(self, *folders: str) -> list[Path]:
        return [path for path in self._weighed(*folders) if path.suffix == ".py"]

    def _weighed(self, *folders: str) -> list[Path]:
        files = (path for folder in folders for path in (self.root / folder).rglob("*") if path.suffix in KINDS)
        return sorted(path for path in files if "__pycache__" not in path.parts)

    def _imported(self, nodes: tuple[ast.AST, ...]) -> Iterator[str]:
        for node in nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in self.nodes)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    member, module = f"{node.module}.{alias.name}", node.module or ""
                    yield from [one for one in (member, module) if one in self.nodes][:1]

    def _computed(self, name: str, nodes: tuple[ast.AST, ...]) -> Iterator[str]:
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        called = [one for one in calls if "import_module" in (getattr(one.func, a, "") for a in ("id", "attr"))]
        for text in map(ast.unparse, called):
            if found := re.match(r"(?:importlib\.)?import_module\(f['\"]([\w.]+|{__name__})\.{", text):
                parent = name if found[1] == "{__name__}" else found[1]
                yield from (one for one in self.nodes if one.rpartition(".")[0] == parent)


def cycles(graph: Graph) -> int:
    """Return 1 when the modules of a graph import each other in a circle, else 0."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as found:
        print("import cycle:", " -> ".join(found.args[1]))
        return 1
    return 0


def floors(graph: Graph) -> int:
    """Return the length of the longest chain of imports in a graph without a cycle."""
    height: dict[str, int] = {}
    for name in TopologicalSorter(graph).static_order():
        height[name] = 1 + max((height[one] for one in graph.get(name, ())), default=0)
    return max(height.values(), default=0)


def reachable(graph: Graph, sources: Set[str], steps: int) -> set[str]:
    """Return the modules that a chain of at most so many imports reaches from one of the sources."""
    found = set(sources)
    for _ in range(steps):
        found |= {target for name in found for target in graph.get(name, ())}
    return found


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


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
    values = [*call.args, *(one.value for one in call.keywords)]
    values = [one.value if isinstance(one, ast.Starred) else one for one in values]
    names = {one.id for one in values if isinstance(one, ast.Name)}
    return names if all(isinstance(one, ast.Name) for one in values) else None


FIGURES: dict[str, Callable[[House], int]] = {
    "rooms in core/": lambda house: len(house.rooms),
    "floors of core/, by room": lambda house: floors(house.room_imports()),
    "store modules named by engine": lambda house: len(house.engine_modules()),
    "pass-through methods": lambda house: len(house.pass_throughs()),
    "import cycles": lambda house: cycles(house.imports),
    "lines of the longest function": House.longest_function,
    "lines of the longest module": lambda house: max(map(_lines, house._under(*MEASURED))),
    "lines: core and handlers": lambda house: house.weight("core", "handlers"),
    "lines: sql": lambda house: house.weight("sql"),
    "lines: hubledger": lambda house: house.weight("hubledger"),
    "lines: jobs": lambda house: house.weight("jobs"),
    "files of core/": lambda house: len(house._under("core")),
    "core: helpers with one caller, a 1,000 lines": lambda house: house.lone_helpers("core"),
    "handlers: helpers with one caller, a 1,000 lines": lambda house: house.lone_helpers("handlers"),
    "hubledger: helpers with one caller, a 1,000 lines": lambda house: house.lone_helpers("hubledger"),
    "names in two modules": lambda house: len(house.names_in_two_modules()),
    "pairs of classes with six fields in common": lambda house: len(house.twin_classes()),
    "lines of tests": lambda house: house.lines("tests"),
}


def figures_of(house: House) -> dict[str, int | None]:
    """Return every figure of a house by its name. None for a walk that it does not describe."""
    figures = {name: measure(house) for name, measure in FIGURES.items()}
    return figures | {f"walk: {name}": len(house.walks[name]) if name in house.walks else None for name in WALKS}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.repo.house", description="Measure the shape of the house.")
    parser.add_argument("--root", action="append", type=Path, help="a checkout to measure; may be given several times")
    houses = [House(root.resolve()) for root in parser.parse_args().root or [ROOT]]
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
