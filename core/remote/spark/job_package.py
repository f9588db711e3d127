"""The package that a Spark engine runs: the modules of the jobs, and the JDBC address of the store.

The version is a hash of the content, and the package lies in a folder of that name: an app finds exactly the jobs of
its own sources, a running job keeps its files, and an engine that remembers installed versions installs a changed one.
"""

import ast
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_PART = re.compile(r"\s*([^=;]+?)\s*=\s*(\{(?:[^}]|\}\})*\}|[^;]*)\s*(?:;|$)")
_SERVER = re.compile(r"(?:tcp:)?([^,\\]+)(?:\\[^,]*)?(?:,(\d+))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class JdbcAddress:
    """The address of a database, without secrets, and the user who signs in, or None when a token is used instead."""

    url: str
    user: str | None
    password: str | None


def jdbc_address(connection_string: str) -> JdbcAddress:
    """Return the address in an ODBC string of SQL Server. Raises ValueError without a server or a database."""
    parts = {name.lower(): value.strip("{}").strip() for name, value in _PART.findall(connection_string)}
    server = _SERVER.fullmatch(parts.get("server", ""))
    if server is None or not parts.get("database"):
        raise ValueError("the connection string names no Server and Database, which Spark needs")
    options = {
        "databaseName": parts["database"],
        "encrypt": "false" if parts.get("encrypt", "yes").lower() in ("no", "false", "optional") else "true",
        "trustServerCertificate": str(parts.get("trustservercertificate", "no").lower() in ("yes", "true")).lower(),
    }
    url = f"jdbc:sqlserver://{server[1]}:{server[2] or 1433}"
    return JdbcAddress(
        ";".join([url, *(f"{name}={value}" for name, value in options.items())]), parts.get("uid"), parts.get("pwd")
    )


APP = Path(__file__).resolve().parents[3]
ARCHIVE, PACKAGES = "hubledger.zip", "packages.zip"
UNPACKED = "packages"  # the folder in which an engine unpacks PACKAGES
OURS, ROOMS = ("core", "jobs", "hubledger"), ("examples", "apps")
WITHOUT = (
    "core/store/", "core/worker/",  # the app's way to SQL, which no job uses
    "hubledger/cli/", "hubledger/__main__.py", "hubledger/testing.py",  # which are not deployed
)  # fmt: skip
TESTS = "tests"  # the folder of a room's tests
REQUIRED = ("msgspec", "fastavro")  # what the modules import and no engine has


@cache
def package_version(app: Path = APP) -> str:
    """Return the version: 0.1.NUMBER, of which the number is a hash of the modules and of the required packages."""
    content = hashlib.sha256(repr(sorted(requirements(app))).encode())
    for name, text in sorted(modules(app).items()):
        content.update(f"{name}\0{text}\0".encode())
    return f"0.1.{int(content.hexdigest()[:12], 16)}"


def modules(app: Path = APP) -> Mapping[str, str]:
    """Return the texts of our modules and of those of the rooms, by their paths in the archive.

    A module is left out if it imports a module of the app that is left out: it cannot run there.
    """
    found = {name: text for name, text in _texts(app, OURS) if not name.startswith(WITHOUT)}
    found |= {name: text for name, text in _texts(app, ROOMS) if TESTS not in name.split("/")}
    while unfit := [name for name in found if _misses(found[name], app, found)]:
        for name in unfit:
            del found[name]
    return found


def _texts(app: Path, folders: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for folder in folders:
        for path in sorted((app / folder).rglob("*.py")):
            yield path.relative_to(app).as_posix(), path.read_text(encoding="utf-8")


def _misses(text: str, app: Path, found: Mapping[str, str]) -> bool:
    """Return True if a module imports one of the app's modules that is not among those found."""
    places = (f"{name.replace('.', '/')}{end}" for name in _imported(text) for end in (".py", "/__init__.py"))
    return any(place not in found and (app / place).is_file() for place in places)


def _imported(text: str) -> Iterator[str]:
    """Yield the names of the modules that a text may import, or none for a text with a fault."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError:
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (node.module, *(f"{node.module}.{one.name}" for one in node.names))


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
