"""`python -m tests.repo.house`: measure the shape of the house, one column for each `--root`.

Modules are those of `core/` and `handlers/`, with `function_app.py`. A module imports every module that it names in an
import statement anywhere in it: at its top, under `TYPE_CHECKING` or inside a function. A call such as
`import_module(f"PACKAGE.{name}")` counts as the import of every member of the package. The import of a package counts
as the import of its `__init__`, and a package's own `__init__` is not counted as imported by its members.
"""

import argparse
import ast
import re
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
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

# The figures that the house must keep, by the names of their rows.
LIMITS = {
    "rooms in core/": 15,
    "floors of core/, by room": 9,
    "store modules named by engine": 0,
    "pass-through methods": 0,
    "docstrings that say See X": 0,
    "import cycles": 0,
    "lines of the longest function": 60,
    "lines of the longest module": 600,
    "walk: event": 10,
    "walk: letter": 10,
    "walk: replay": 11,
    "walk: status": 7,
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

    def longest_function(self) -> int:
        """Return the lines of the longest function."""
        found = [node for nodes in self.nodes.values() for node in nodes if isinstance(node, Function)]
        return max((node.end_lineno or 0) - node.lineno + 1 for node in found)

    def longest_module(self) -> int:
        """Return the lines of the longest module."""
        return max(_lines(path) for path in self.paths.values())

    def lines(self, *folders: str) -> int:
        """Return the lines of the Python files of folders."""
        return sum(_lines(path) for folder in folders for path in self._under(folder))

    def _under(self, folder: str) -> list[Path]:
        return sorted(path for path in (self.root / folder).rglob("*.py") if "__pycache__" not in path.parts)

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


def _room(name: str) -> str:
    return name.split(".")[1]


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _names_import(called: ast.expr) -> bool:
    return "import_module" in (getattr(called, "id", ""), getattr(called, "attr", ""))


def _strings(nodes: tuple[ast.AST, ...]) -> Iterator[str]:
    return (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


def _points_elsewhere(node: ast.AST) -> bool:
    docstring = ast.get_docstring(node) if isinstance(node, Function | ast.ClassDef) else None
    return bool(re.match(r"See [\w. `]+\.?$", docstring or ""))


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
    "import cycles": lambda house: len(cycles(house.imports)),
    "lines of core and handlers": lambda house: house.lines("core", "handlers"),
    "lines of the longest function": House.longest_function,
    "lines of the longest module": House.longest_module,
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
    columns = [figures_of(House(root.resolve())) for root in roots]
    print(f"{'':32}{'limit':>9}" + "".join(f"{root.resolve().name:>14}" for root in roots))
    for name in columns[0]:
        shown = [*(column[name] for column in columns)]
        limit = LIMITS.get(name)
        cells = "".join(f"{'-' if value is None else format(value, ','):>14}" for value in shown)
        print(f"{name:32}{'' if limit is None else limit:>9}{cells}")


if __name__ == "__main__":
    main()
