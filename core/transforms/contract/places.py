"""The places of faults: the file of a module as a person knows it, and the lines of its parts."""

import ast
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from traceback import walk_tb
from types import ModuleType, TracebackType
from typing import Any

from core.errors import InvalidTransform

Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class ModulePart:
    """A part of a module: the path of a name, such as ("OrderLine", "shop_id"); empty for the module itself."""

    module: ModuleType
    path: tuple[str, ...] = ()


Fault = tuple[ModulePart, str]


class Lines:
    """The lines of one module, read from its source when they are first needed."""

    def __init__(self, module: ModuleType) -> None:
        self.file = file_of(module.__name__, getattr(module, "__file__", None))
        self._module = module

    @cached_property
    def text(self) -> str:
        """The source of the module; empty when its loader has none."""
        spec = self._module.__spec__
        read: Callable[[str], str | None] | None = getattr(spec and spec.loader, "get_source", None)
        return (read(self._module.__name__) if read else None) or ""

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree of the module."""
        return ast.parse(self.text)

    def line_of(self, path: Iterable[str]) -> int:
        """Return the line of the innermost part of a path that the source has; 1 for the module itself."""
        line, bodies = 1, self.tree.body
        for name in path:
            found = next((node for node in reversed(bodies) if name in _names_of(node)), None)
            if found is None:
                break
            line, bodies = found.lineno, getattr(found, "body", [])
        return line


def file_of(module_name: str, path: str | None) -> str:
    """Return the file of a module from the folder of its outermost package: `app/sensors.py`."""
    parts = PurePath(path).parts if path else ()
    depth = module_name.count(".") + (2 if parts[-1:] == ("__init__.py",) else 1)
    return "/".join(parts[-depth:]) or f"{module_name.replace('.', '/')}.py"


@contextmanager
def importing(module_name: str, transform: str | None = None) -> Iterator[None]:
    """Raise InvalidTransform with the faults of a module that cannot be imported, and the transform that needs it."""
    try:
        yield
    except (Exception, SystemExit) as error:
        raise InvalidTransform(*_faults_of_import(error, module_name), module=transform) from error


def _faults_of_import(error: BaseException, module_name: str) -> tuple[str, ...]:
    """Return the faults of a module that cannot be imported, with the line of its own package at which it fails."""
    if isinstance(error, SyntaxError):
        return (f"{error.filename}:{error.lineno}: {error.msg}",)
    faults = error.faults if isinstance(error, InvalidTransform) else (str(error),)
    if not isinstance(error, ImportError | InvalidTransform):
        faults = (f"{type(error).__name__}: {error}",)
    place = _place_of(error.__traceback__, module_name.partition(".")[0])
    return tuple(f"{place}: {fault}" for fault in faults) if place else faults


def _place_of(traceback: TracebackType | None, package: str) -> str | None:
    """Return `file:line` of the innermost statement of a package's modules."""
    found = None
    for frame, line in walk_tb(traceback):
        name = str(frame.f_globals.get("__name__"))
        if frame.f_code.co_name == "<module>" and name.partition(".")[0] == package:
            found = f"{file_of(name, frame.f_code.co_filename)}:{line}"
    return found


def placed(faults: Iterable[Fault]) -> list[str]:
    """Return faults as `file:line: fault`, each once, in the order of their lines."""
    lines: dict[str, Lines] = {}
    found: list[tuple[str, int, str]] = []
    for part, text in faults:
        own = lines.setdefault(part.module.__name__, Lines(part.module))
        found.append((own.file, own.line_of(part.path), text))
    return [f"{file}:{line}: {text}" for file, line, text in sorted(dict.fromkeys(found))]


def _names_of(node: Any) -> tuple[str, ...]:
    if isinstance(node, Named):
        return (node.name,)
    if isinstance(node, ast.ImportFrom | ast.Import):
        return tuple(alias.asname or alias.name for alias in node.names)
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return tuple(target.id for target in targets if isinstance(target, ast.Name))
