"""The package of the jobs: the modules in it, its version, and the names of its files.

The version is a hash of the content, and the package lies in a folder of that name: an app finds exactly the jobs of
its own sources, a running job keeps its files, and an engine that remembers installed versions installs a changed one.
"""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

APP = Path(__file__).resolve().parents[3]
ARCHIVE, PACKAGES = "hubledger.zip", "packages.zip"
UNPACKED = "packages"  # the folder in which an engine unpacks PACKAGES
WITHOUT = ("core/store/", "core/worker/")  # the app's way to SQL, which no job uses
REQUIRED = ("msgspec", "fastavro")  # what the modules import and no engine has


@cache
def package_version(app: Path = APP) -> str:
    """Return the version: 0.1.NUMBER, of which the number is a hash of the modules and of the required packages."""
    content = hashlib.sha256(repr(sorted(requirements(app))).encode())
    for name, text in sorted(modules(app).items()):
        content.update(f"{name}\0{text}\0".encode())
    return f"0.1.{int(content.hexdigest()[:12], 16)}"


def modules(app: Path = APP) -> Mapping[str, str]:
    """Return the texts of our modules, by their paths in the archive."""
    found = {}
    for package in ("core", "examples", "jobs"):
        for path in sorted((app / package).rglob("*.py")):
            name = path.relative_to(app).as_posix()
            if not name.startswith(WITHOUT):
                found[name] = path.read_text(encoding="utf-8")
    return found


def requirements(app: Path = APP) -> list[str]:
    """Return the required packages with their versions, as the app and its tests pin them."""
    lines = [
        line.strip()
        for file in (app / "requirements.txt", app / "jobs" / "requirements.txt")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    return [line for line in lines if line.partition("==")[0] in REQUIRED]


def wheel(version: str) -> str:
    """Return the name of the wheel with our modules."""
    return f"hubledger-{version}-py3-none-any.whl"


def packages_wheel(version: str) -> str:
    """Return the name of the wheel with the required packages."""
    return f"hubledger_packages-{version}-py3-none-any.whl"
