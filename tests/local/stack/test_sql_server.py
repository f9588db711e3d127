import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local import run
from local.demo import __main__ as demo
from local.stack.processes import Command
from local.stack.sql_server import DEMOS, RUNS, Server, ServerRefused, prepared
from local.stack.stack import Place, Stack
from tests.fakes.rooms import migrate_examples
from tests.fakes.server_files import FileServer

STRING = "DRIVER={x};SERVER=localhost,1433;DATABASE=demo;UID=sa;PWD=Secret-1"


@pytest.fixture
def files(tmp_path: Path) -> FileServer:
    folder = tmp_path / "server"
    folder.mkdir()
    return FileServer(folder)


def on(files: FileServer, text: str = STRING, pause: Callable[[float], None] = lambda _: None) -> Server:
    return Server(text, lambda: files, pause)


@pytest.fixture
def server(files: FileServer) -> Iterator[Server]:
    with closing(on(files)) as made:
        yield made


def refusal(server: Server, use: str = DEMOS) -> str:
    with pytest.raises(ServerRefused) as refused:
        server.prepare(use)
    return str(refused.value)


def test_a_missing_database_is_made_as_azure_sql_makes_it_unless_it_costs(files: FileServer, server: Server) -> None:
    files.edition = 5
    assert "database demo on localhost,1433 is missing, and one in Azure SQL costs" in refusal(server)
    assert files.databases == {}
    files.edition = 3
    server.prepare()
    made = [text for text in files.texts if "DATABASE [demo]" in text]
    assert made == ["CREATE DATABASE [demo];", "ALTER DATABASE [demo] SET READ_COMMITTED_SNAPSHOT ON;"]
    assert files.marked == {"demo": DEMOS}


def test_a_missing_driver_and_a_store_of_no_local_run_are_refused_at_once(files: FileServer, server: Server) -> None:
    files.faults = ["IM002"]
    assert refusal(server).startswith("database demo on localhost,1433 cannot be reached: IM002")
    migrate_examples(files.create("demo"))
    assert "holds tables that no local run made: name a missing or an empty database" in refusal(server)
    assert files.marked == {}
    assert not [text for text in files.texts if "DROP" in text]


def test_a_demo_empties_no_database_that_a_run_keeps(files: FileServer, server: Server) -> None:
    with prepared(server, RUNS):
        assert files.marked == {"demo": RUNS}
    assert "is for make run, which keeps it: name a" in refusal(server)
    server.close()
    files.marked["demo"] = DEMOS
    assert "is for demos and benchmarks, which empty it: name a different one for ma" in refusal(server, RUNS)


def test_a_demo_begins_with_an_empty_store(files: FileServer, server: Server, tmp_path: Path) -> None:
    migrate_examples(files.create("demo"))
    files.marked["demo"] = DEMOS
    server.prepare()
    commands: list[Command] = []

    def start(command: Command) -> SimpleNamespace:
        commands.append(command)
        return SimpleNamespace(wait_done=lambda _: None)

    children: Any = SimpleNamespace(start=start)
    Stack(Place(tmp_path, server=server), children, lambda _: None).create_store("examples.flight_info")
    (command,) = commands
    assert (command.module, command.arguments) == ("core.store.migrate", [])
    assert command.environment == {"STORE_CONNECTION": STRING, "TRANSFORM": "examples.flight_info"}
    with closing(sqlite3.connect(files.databases["demo"])) as left:
        tables = left.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        assert tables.fetchall() == []
    dropping = [text.split()[0] for text in files.texts if "DROP" in text]
    assert dropping == sorted(dropping), "keys first"
    assert "ALTER TABLE hubledger.[replay_progress] DROP CONSTRAINT [fk_replay_progress_job];" in files.texts


def test_a_database_has_one_local_run_at_a_time(files: FileServer, server: Server) -> None:
    with prepared(server), closing(on(files)) as other:
        assert "a different local run uses database demo" in refusal(other)
    with closing(on(files)) as other, prepared(other):
        assert files.locks


def test_a_string_without_server_or_database_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for text in (
        "sqlite:x.db",
        "DRIVER={x};SERVER=a",
        "DRIVER={x};DATABASE=a",
        "DRIVER={x};SERVER=a;Initial Catalog=a",  # no word of ODBC: the driver would open the database of the login
        "DRIVER={x};SERVER=a;PWD={;DATABASE=a}",
        "DRIVER={x};SERVER=a;DATABASE={Master}",
    ):
        for main in (demo.main, run.main):
            with pytest.raises(SystemExit):
                main(["--store", text])
            assert "argument --store: " in capsys.readouterr().err, text
