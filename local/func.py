"""`make func`: run the app on Microsoft's host, with Microsoft's storage, hub and SQL Server in Docker, until Ctrl-C.

docs/run-with-func.md is its page. A step that is already done changes nothing, so the program can run again.
"""

import argparse
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from local.programs import APP, Interrupted, Interruption
from local.stack.processes import GRACE, Pause
from local.stack.sql_server import MISSING, microsoft_driver

_NAME = "MSSQL_SA_PASSWORD"
_SUFFIX = "-Aa1"  # SQL Server wants letters of both kinds and a digit or a sign


class EnvironmentRefused(Exception):
    """The file cannot be used. The message says what to do."""


def sa_password(file: Path) -> str:
    """Return the administrator's password of SQL Server. Make the file with a random one when there is none.

    As in docker compose, a password in the environment comes before the one of the file. A file that others may read
    is closed to them. Raises EnvironmentRefused for a file without a password, OSError for one that cannot be used.
    """
    if not file.exists():
        text = f"ACCEPT_EULA=Y\n{_NAME}={secrets.token_urlsafe(24)}{_SUFFIX}\n"
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as made:
            made.write(text)
        licences = "accepts Microsoft's licences of SQL Server and of the Event Hubs emulator"
        print(f"func: made {file.name} with a random password; its line ACCEPT_EULA=Y {licences}", flush=True)
    elif file.stat().st_mode & 0o077:
        file.chmod(0o600)
    password = os.environ.get(_NAME) or _value(file.read_text(encoding="utf-8", errors="replace"))
    if not password:
        raise EnvironmentRefused(f"{file.name} has no {_NAME}: add the line {_NAME}=... with a password of your own")
    return password


def _value(text: str) -> str:
    """Return the password in the text of the file, without quotes around it."""
    for line in text.splitlines():
        name, _, value = line.strip().removeprefix("export ").partition("=")
        if name.strip() == _NAME:
            value = value.strip()
            return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value
    return ""


_LOOK = 0.05  # seconds
_MISSING = {
    "docker": "docker is missing: install Docker Engine or Docker Desktop (docs.docker.com/get-docker)",
    "func": "func is missing: install Azure Functions Core Tools 4 (npm install -g azure-functions-core-tools@4)",
}
_UP = ("docker", "compose", "up", "--detach", "--wait", "--quiet-pull")
_BESIDE_A_STORE = ("azurite", "event-hubs")  # the services of a run with a different store
_MAKE_DATABASE = (
    "IF DB_ID(N'hubledger') IS NULL CREATE DATABASE hubledger; "
    "IF EXISTS (SELECT * FROM sys.databases WHERE name = N'hubledger' AND is_read_committed_snapshot_on = 0) "
    "ALTER DATABASE hubledger SET READ_COMMITTED_SNAPSHOT ON WITH ROLLBACK IMMEDIATE;"
)
_SQLCMD = 'SQLCMDPASSWORD="$MSSQL_SA_PASSWORD" exec /opt/mssql-tools18/bin/sqlcmd -C -b -S localhost -U sa -Q "$0"'
_IN_SQL = ("docker", "compose", "exec", "-T", "sql", "sh", "-c", _SQLCMD, _MAKE_DATABASE)
_STOP = (
    "func has ended; the services still run. `docker compose stop` keeps their data, and `docker compose down -v` "
    "deletes it: the database, host checkpoints and Durable's state"
)


class FuncFailed(Exception):
    """A step failed, or a program that it needs is missing. The message is one line."""


@dataclass(frozen=True, slots=True)
class Step:
    """A program to run to its end: the words that announce it, its arguments, its folder, and further settings."""

    title: str
    command: Sequence[str]
    folder: Path
    settings: Mapping[str, str]


def main(arguments: list[str] | None = None) -> int:
    """Return 0 after Ctrl-C. Return 1, with one line on stderr, when a step failed or func ended by itself."""
    parser = argparse.ArgumentParser(
        prog="python -m local.func",
        description=__doc__,
        epilog="The environment variable STORE, sqlite:PATH or an ODBC string, replaces the services' SQL Server.",
    )
    parser.add_argument(
        "--folder", type=Path, default=APP, metavar="DIR", help="of docker-compose.yml; default: the app"
    )
    options = parser.parse_args(arguments)
    interruption = Interruption()
    try:
        _refuse_missing()
        interruption.listen()
        settings = _prepare(options.folder, interruption.pause)
        _serve(options.folder, settings, interruption.pause)
    except Interrupted as stopped:
        print(f"func: {stopped}", flush=True)
        return 0
    except (FuncFailed, EnvironmentRefused, OSError) as error:
        print(f"func: {error}", file=sys.stderr)
        return 1
    return 0


def _refuse_missing() -> None:
    """Raise FuncFailed for the first program that is missing or too old."""
    for program, complaint in _MISSING.items():
        if shutil.which(program) is None:
            raise FuncFailed(complaint)
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode:
        raise FuncFailed("docker has no compose: install the Compose plugin (docs.docker.com/compose/install)")
    version = subprocess.run(["func", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    if not version.startswith("4."):
        raise FuncFailed(f"func is version {version or 'unknown'}: install Azure Functions Core Tools 4")


def _prepare(folder: Path, pause: Pause) -> Mapping[str, str]:
    """Take every step before the start of func, and return the settings for it."""
    store = os.environ.get("STORE", "")
    if not store and microsoft_driver() is None:
        raise FuncFailed(MISSING)
    password = sa_password(folder / ".env")
    if (folder / "local.settings.json").exists():
        print("func: using the local.settings.json that exists, and its hub", flush=True)
    else:
        shutil.copyfile(folder / "local.settings.example.json", folder / "local.settings.json")
        print("func: made local.settings.json from the example", flush=True)
    steps = _steps(folder, store, password)
    for step in steps:
        print(f"func: {step.title}", flush=True)
        _run(step, password, pause)
    return steps[-1].settings


def _steps(folder: Path, store: str, password: str) -> list[Step]:
    """Return the steps in their order. The last one migrates the store."""
    settings = {"STORE_CONNECTION": store or connection_as_sa(password), **_transform(folder)}
    services = Step("starting the services; the first time this downloads them", [*_UP], folder, {})
    migrate = Step("migrating the store", [sys.executable, "-m", "core.store.migrate"], APP, settings)
    if store:
        return [Step(services.title, [*_UP, *_BESIDE_A_STORE], folder, {}), migrate]
    return [services, Step("making the database hubledger, where it is missing", _IN_SQL, folder, {}), migrate]


def connection_as_sa(password: str) -> str:
    quoted = password.replace("}", "}}")
    words = f"Server=localhost,1433;Database=hubledger;UID=sa;PWD={{{quoted}}};TrustServerCertificate=yes"
    return f"Driver={{{microsoft_driver()}}};{words}"


def _transform(folder: Path) -> dict[str, str]:
    """Return the TRANSFORM of local.settings.json, whose rooms the store needs. `func` prefers the environment's."""
    try:
        chosen = json.loads((folder / "local.settings.json").read_text(encoding="utf-8-sig"))["Values"]["TRANSFORM"]
    except (KeyError, ValueError):  # the app takes the default, or func refuses the file
        return {}
    return {} if "TRANSFORM" in os.environ else {"TRANSFORM": str(chosen)}


def _run(step: Step, password: str, pause: Pause) -> None:
    """Run a step. Raises FuncFailed with its last line, in which the password is hidden."""
    with tempfile.TemporaryFile() as output, _started(step, output.fileno()) as process:
        while process.poll() is None:
            pause(_LOOK)
        if process.returncode:
            output.seek(0)
            lines = output.read().decode(errors="replace").replace(password, "***").split("\n")
            last = next((line.strip() for line in reversed(lines) if line.strip()), f"code {process.returncode}")
            raise FuncFailed(f"{step.title} failed: {last}")


def _serve(folder: Path, settings: Mapping[str, str], pause: Pause) -> None:
    """Run func until a signal, and say how to stop the services. Raises FuncFailed when func ends by itself."""
    python = {"VIRTUAL_ENV": sys.prefix, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    try:
        with _started(Step("", ["func", "start"], folder, {**settings, **python}), None) as process:
            while process.poll() is None:
                pause(_LOOK)
            raise FuncFailed(f"func ended with code {process.returncode}")
    finally:
        print(f"func: {_STOP}", flush=True)


@contextmanager
def _started(step: Step, output: int | None) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program that ends with the block. It has its own session, so that Ctrl-C reaches this process alone."""
    process = subprocess.Popen(
        step.command,
        cwd=step.folder,
        env={**os.environ, **step.settings},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output and subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


if __name__ == "__main__":
    sys.exit(main())
