"""A separate process in a test: how it is started, and how it opens the database that its environment names."""

import os
import subprocess
import sys
from pathlib import Path

from core.model.policies import embedded_path
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlserver.database import SqlServerDatabase
from tests.fakes.kept import PersistentEngine
from tests.fakes.store import Store
from tests.patience import ended

ROOT = Path(__file__).parents[2]


def start(module: str, engine: PersistentEngine, *arguments: object) -> "subprocess.Popen[str]":
    """Run a module of tests/contract over an engine's database; what it prints is kept for the test."""
    command = [sys.executable, "-m", f"tests.contract.{module}", *map(str, arguments)]
    environment = os.environ | engine.environment()
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def output(running: "subprocess.Popen[str]") -> str:
    """Return the output of a process that ends without a fault."""
    out, fault = ended(running, 120)
    assert running.returncode == 0, fault
    return out


def opened() -> Store:
    """The database that this process was started over: STORE_CONNECTION, and STORE_SCHEMA on a server."""
    connection = os.environ["STORE_CONNECTION"]
    path = embedded_path(connection)
    if path is not None:
        return Store(SqliteDatabase(path, busy_timeout=30.0))
    return Store(SqlServerDatabase(connection, schema=os.environ["STORE_SCHEMA"]))
