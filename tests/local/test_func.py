import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.patience import ended, until
from tests.repo.product import ROOT

DEADLINE = 30.0
STAND_IN = f"""#!{sys.executable} -IS
import json, os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
store = os.environ.get("STORE_CONNECTION", "")
migrated = os.path.exists(store.removeprefix("sqlite:")) if store else False
with open(os.environ["CALLS"], "a") as calls:
    found = dict(path=os.environ["PATH"], venv=os.environ.get("VIRTUAL_ENV"))
    print(json.dumps(dict(words=[name, *words], store=store, migrated=migrated, **found)), file=calls)
if os.environ.get("FAILS") in words:
    print("layer 1 of 2\\nno space is left; the password is " + open(".env").read().split("=")[-1] * (name == "docker"))
    sys.exit(3)
if os.environ.get("HANGS") in words:
    signal.pause()
if words == ["--version"]:
    print(os.environ.get("FUNC_VERSION", "4.0.7030"))
"""
GREETING = [["docker", "compose", "version"], ["func", "--version"]]
UP = ["docker", "compose", "up", "--detach", "--wait", "--quiet-pull"]


class Place:
    """A folder of the app with stand-ins for docker and func, and the calls that they noted."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin, self._calls = folder / "app", folder / "bin", folder / "calls"
        self.folder.mkdir(parents=True)
        self.bin.mkdir()
        shutil.copy(ROOT / "local.settings.example.json", self.folder)
        for name in ("docker", "func"):
            (self.bin / name).write_text(STAND_IN)
            (self.bin / name).chmod(0o755)
        (folder / "odbcinst.ini").write_text("[ODBC Driver 18 for SQL Server]\nDriver=/nowhere/libmsodbcsql.so\n")
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in ("MSSQL_SA_PASSWORD", "STORE")},
            "PATH": str(self.bin),
            "CALLS": str(self._calls),
            "ODBCSYSINI": str(folder),
            "HANGS": "start",
        }

    @property
    def store(self) -> str:
        return f"sqlite:{self.folder}/store.db"

    @property
    def password(self) -> str:
        return (self.folder / ".env").read_text().split("=")[-1].strip()

    def run(self, **environment: str) -> tuple[int, str, str]:
        """Run to the end, with Ctrl-C as soon as a stand-in waits. Return the code, the output and the errors."""
        before, waiting = len(self.calls()), {**self.environment, **environment}["HANGS"]
        command = [sys.executable, "-m", "local.func", "--folder", str(self.folder)]
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, cwd=ROOT, env={**self.environment, **environment}, **pipes) as process:
            until(lambda: process.poll() is not None or any(waiting in one for one in self.words()[before:]), DEADLINE)
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            output, errors = ended(process, DEADLINE)
        for secret in (self.password,) if (self.folder / ".env").exists() else ():
            assert secret not in output + errors
            assert all(secret not in word for words in self.words() for word in words)
        return process.returncode, output, errors

    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._calls.read_text().splitlines()] if self._calls.exists() else []

    def words(self) -> list[list[str]]:
        return [call["words"] for call in self.calls()]

    def files(self) -> dict[str, int]:
        """Return the files of the folder, without the store, and when they were written."""
        return {path.name: path.stat().st_mtime_ns for path in self.folder.iterdir() if "store" not in path.name}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.slow
def test_every_step_is_taken_in_its_order_and_a_second_run_changes_nothing(place: Place) -> None:
    code, output, errors = place.run(STORE=place.store)
    assert (code, errors) == (0, "")
    assert place.words() == [*GREETING, [*UP, "azurite", "event-hubs"], ["func", "start"]]
    started = place.calls()[-1]
    assert (started["store"], started["migrated"]) == (place.store, True)
    assert started["venv"] == sys.prefix
    assert started["path"].split(os.pathsep)[0] == str(Path(sys.executable).parent)
    assert output.index("docker compose stop") < output.index("docker compose down -v") < output.index("SIGINT")
    assert "accepts Microsoft's licences" in output
    settings = json.loads((place.folder / "local.settings.json").read_text())
    assert settings == json.loads((ROOT / "local.settings.example.json").read_text())
    assert stat.S_IMODE((place.folder / ".env").stat().st_mode) == 0o600
    before = place.files()
    assert place.run(STORE=place.store)[0] == 0
    assert place.files() == before
    assert place.words()[4:] == place.words()[:4]


@pytest.mark.slow
def test_a_failed_or_interrupted_step_is_one_line_with_its_last_words(odbc_manager: None, tmp_path: Path) -> None:
    for fails, step in (("up", "starting the services"), ("exec", "making the database")):
        place = Place(tmp_path / fails)
        code, _, errors = place.run(FAILS=fails)
        assert (code, errors.count("\n")) == (1, 1)
        assert errors.startswith(f"func: {step}")
        assert errors.endswith(" failed: no space is left; the password is ***\n")
        assert fails in place.words()[-1], "no step follows"
    place = Place(tmp_path / "start")
    code, output, errors = place.run(STORE=place.store, FAILS="start", HANGS="never")
    assert (code, errors) == (1, "func: func ended with code 3\n")
    assert "docker compose down -v" in output, "the way to stop the services"
    place = Place(tmp_path / "interrupted")
    code, output, errors = place.run(HANGS="up")
    assert (code, errors) == (0, "")
    assert output.endswith("func: stopped by SIGINT\n")
    assert place.words() == [*GREETING, UP]


@pytest.mark.slow
def test_what_is_missing_is_said_in_one_line_and_nothing_is_made(place: Place) -> None:
    def without(*names: str, **environment: str) -> str:
        for name in names:
            (place.bin / name).rename(place.bin / f"no-{name}")
        code, output, errors = place.run(**environment)
        for name in names:
            (place.bin / f"no-{name}").rename(place.bin / name)
        assert (code, output, errors.count("\n")) == (1, "", 1)
        assert list(place.files()) == ["local.settings.example.json"]
        return errors

    assert "docker is missing: install" in without("docker")
    assert "docker is missing: install" in without("docker", "func")
    assert "func is missing: install Azure Functions Core Tools 4" in without("func")
    assert "docker has no compose: install" in without(FAILS="version")
    assert "func is version 3.0.1: install" in without(FUNC_VERSION="3.0.1")
