"""Import the `function_app.py` of a folder and return the functions of its app object.

A process runs one app, as with the real worker: the module is always called `function_app`.
"""

import importlib
import sys
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from azure.functions import FunctionRegister

from local.functions_host.errors import IndexingFailed

MODULE = "function_app"

# azure-functions returns the functions of an app only once.
_known: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()


def load_functions(directory: Path) -> list[Any]:
    """Return the `azure.functions` Function objects of the app. Raise IndexingFailed when there is no such app."""
    path = directory / f"{MODULE}.py"
    if not path.is_file():
        raise IndexingFailed(f"{path} does not exist: a function app defines its functions there")
    app = _the_app(_imported(path), path)
    if app not in _known:
        try:
            _known[app] = app.get_functions()
        except ValueError as error:
            raise IndexingFailed(f"{path}: {error}") from error
    return _known[app]


def _imported(path: Path) -> Any:
    directory = str(path.parent)
    if directory not in sys.path:
        sys.path.insert(0, directory)
    module = importlib.import_module(MODULE)
    if Path(module.__file__ or "").resolve() != path.resolve():
        raise IndexingFailed(f"this process already runs the app of {module.__file__}: start another process")
    return module


def _the_app(module: Any, path: Path) -> Any:
    apps = {id(value): value for value in vars(module).values() if isinstance(value, FunctionRegister)}
    if len(apps) != 1:
        raise IndexingFailed(f"{path}: needs exactly one top-level function app object, has {len(apps)}")
    return next(iter(apps.values()))
