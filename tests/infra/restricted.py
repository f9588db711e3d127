"""Run a module with some installed packages only: `restricted.py PACKAGE,PACKAGE MODULE ARGUMENT ...`.

A package that is not named cannot be imported, as if it were not installed.
"""

import re
import runpy
import sys
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any


class Restricted:
    """Finds modules as Python does, but none of packages that are not named."""

    def __init__(self, named: set[str]) -> None:
        owners: dict[str, set[str]] = {}
        for package in metadata.distributions():
            name = re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower()
            for file in package.files or ():
                owners.setdefault(_module(file.parts), set()).add(name)
        self._refused = {module for module, names in owners.items() if module and not names & named}

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if ".".join(fullname.split(".")[:2]) in self._refused or fullname.split(".")[0] in self._refused:
            return None
        return PathFinder.find_spec(fullname, path, target)


def _module(parts: tuple[str, ...]) -> str:
    """Return the name of the module of a file: with two parts in the namespace that packages share."""
    if parts[0].endswith((".dist-info", ".data")) or parts[0] in ("..", "__pycache__"):
        return ""
    first, *rest = (part.partition(".")[0] for part in parts)
    return f"{first}.{rest[0]}" if first == "azure" and len(rest) > 1 else "" if first == "azure" else first


if __name__ == "__main__":
    sys.meta_path[sys.meta_path.index(PathFinder)] = Restricted(set(sys.argv[1].split(",")))
    sys.path[0] = ""  # as `python -m` has it: the folder that it runs in
    sys.argv = sys.argv[2:]
    if sys.argv[0] == "core.worker":  # its sign-in in Azure needs a package that its sign-in here does not
        from azure.identity.aio import DefaultAzureCredential

        DefaultAzureCredential()
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
