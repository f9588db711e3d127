"""A project of its own for the command line: a copy of `hubledger/` with an empty `apps/`, and links to the rest."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.patience import allowed

ROOT = Path(__file__).parents[3]
LINKED = ("core", "local", "sql", "examples", "jobs", "pyproject.toml")

ANY_BODY = "check_any_body(transform, transform.Body"
TRIED = """
import sys
from core.store.migrate import main as migrate
from hubledger.cli.main import main
for room in sys.argv[1:]:
    assert not migrate(["--check", "--transform", f"apps.{room}"]), room
    for command in (("migrate-diff", "--check"), ("try", "--json")):
        assert main([*command, "--transform", f"apps.{room}"]) == 0, (command, room)
"""

PARCELS = (
    '{"parcelId": "P-1", "grams": 1200, "depot": "Köln", "scannedAt": "2026-03-01T10:00:00Z", "class": "a"}',
    '{"parcelId": "P-2", "grams": 300, "depot": "Bonn", "scannedAt": "2026-03-01T12:10:00+02:00", "class": "b"}',
    '{"parcelId": "P-1", "grams": 1250, "depot": "Ulm", "scannedAt": "2026-03-01T11:30:00Z", "class": "a", "note": ""}',
)


class Project:
    """A folder in which commands run as a person runs them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in LINKED:
            (folder / name).symlink_to(ROOT / name)
        shutil.copytree(ROOT / "hubledger", folder / "hubledger", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "apps").mkdir()
        (folder / "apps" / "__init__.py").touch()

    def write(self, name: str, *lines: str) -> Path:
        path = self.folder / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    def python(self, *arguments: str, given: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        place = {name: value for name, value in os.environ.items() if name not in ("TRANSFORM", "STORE_CONNECTION")}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env={**place, "COLUMNS": "200", "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache"), **environment},
            input=given,
            capture_output=True,
            text=True,
            timeout=allowed(300),
            check=False,
        )

    def hubledger(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.python("-m", "hubledger", *arguments, **environment)

    def done(self, *arguments: str) -> str:
        """Run a module that must exit with 0, and return its output."""
        found = self.python("-m", *arguments)
        assert found.returncode == 0, found.stdout + found.stderr
        return found.stdout

    def tried(self, *arguments: str) -> Any:
        return json.loads(self.done("hubledger", "try", *arguments, "--json"))

    def parcels(self, *arguments: str) -> Path:
        self.write("samples.jsonl", *PARCELS)
        self.done("hubledger", "new", "parcels", "--from", "samples.jsonl", "--key", "parcelId", *arguments)
        return self.folder / "apps" / "parcels"

    def assert_sound(self, *rooms: str, trials_of_each: int = 6) -> None:
        for command in (("ruff", "format", "--check", "apps"), ("ruff", "check", "apps"), ("mypy", "apps")):
            self.done(*command)
        for room in rooms[1:]:  # the first one tries as many bodies as it is written to do
            trials = self.folder / "apps" / room / "tests" / f"test_{room}.py"
            written = trials.read_text(encoding="utf-8")
            trials.write_text(written.replace(ANY_BODY, f"{ANY_BODY}, examples=20"), encoding="utf-8")
        passed = f"{trials_of_each * len(rooms)} passed"
        assert passed in self.done("pytest", "-q", "-n", "0", "-o", "addopts=", "apps")
        found = self.python("-c", TRIED, *rooms)
        assert found.returncode == 0, found.stdout + found.stderr
        for said in ("nothing to do", '"dead_lettered": 0'):
            assert found.stdout.count(said) == len(rooms), found.stdout


def refusal(found: subprocess.CompletedProcess[str], code: int = 1) -> str:
    assert found.returncode == code, found.stdout + found.stderr
    lines: Sequence[str] = found.stderr.splitlines()
    assert len(lines) == 1, found.stderr
    return lines[0].removeprefix("hubledger: ")
