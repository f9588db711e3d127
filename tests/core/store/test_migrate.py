import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.store.migrate import main
from core.store.sqlserver.database import WAITING_READERS
from tests.core.store.sqlite.test_schema import ALL, newer, sql
from tests.fakes.engines import SqliteEngine
from tests.fakes.tds_server import TdsServer
from tests.fakes.written_modules import ROOM, WrittenModules, written_modules
from tests.patience import ended

ROOT = Path(__file__).parents[3]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WrittenModules]:
    """A folder from which modules can be imported, and no settings."""
    for name in ("TRANSFORM", "STORE_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    with written_modules(tmp_path) as found:
        yield found


@pytest.fixture
def server() -> Iterator[TdsServer]:
    serving = TdsServer()
    yield serving
    serving.close()


def start(*arguments: str, environment: dict[str, str] | None = None) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "core.store.migrate", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, env=environment or {})


def test_the_command_says_what_it_applied_and_then_that_nothing_is_missing(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "store.db"
    assert main(["--store", f"sqlite:{path}"]) == 0
    applied = "".join(f"applied {one.version:04} {one.name}\n" for one in ALL)
    applied += "applied examples.home_security 0001 home_security\n"
    assert capsys.readouterr() == (f"{applied}the store is up to date\n", "")
    two = ["--transform", "examples.flight_info", "--transform", "examples.home_security"]
    assert main(["--store", f"sqlite:{path}", *two]) == 0
    assert capsys.readouterr().out == "applied examples.flight_info 0001 flight_info\nthe store is up to date\n"
    done = start(environment={"STORE_CONNECTION": f"sqlite:{path}"})
    assert (ended(done, 60)[0], done.returncode) == ("the store is up to date\n", 0)


@pytest.mark.slow
def test_processes_that_migrate_at_once_apply_each_step_once(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    running = [start("--store", f"sqlite:{path}") for _ in range(4)]
    said = [(ended(each, 60), each.returncode) for each in running]
    assert [code for _, code in said] == [0] * 4, said
    assert [(sum(out.count("applied ") for (out, _), _ in said),)] == sql(path, "SELECT COUNT(*) FROM schema_migration")
    assert sql(path, "SELECT version FROM schema_migration WHERE app = 'hubledger'") == [(one.version,) for one in ALL]


@pytest.mark.parametrize(
    ("prepare", "store", "why"),
    [
        (newer, "sqlite:{}", "has migration 9998 breaking_future"),
        (lambda path: path.write_bytes(b"no database" * 100), "sqlite:{}", "not a database"),
        (Path.mkdir, "sqlite:{}", "unable to open"),
        (Path.touch, "sqlite:{}/store.db", "store.db"),
        (Path.touch, "mysql:server", "STORE_CONNECTION must be sqlite:PATH"),
        (Path.touch, "sqlite:", "STORE_CONNECTION must be sqlite:PATH"),
    ],
    ids=["newer", "no database", "a folder", "a file in the way of a folder", "an unknown kind", "no path"],
)
def test_the_command_fails_with_one_line(
    tmp_path: Path, capsys: Capture, prepare: Callable[[Path], object], store: str, why: str
) -> None:
    path = tmp_path / "store.db"
    prepare(path)
    assert main(["--store", store.format(path)]) == 1
    out, fault = capsys.readouterr()
    assert (out, fault.count("\n")) == ("", 1)
    assert fault.startswith("migrate: ")
    assert why in fault


def test_the_command_fails_with_one_line_without_any_connection() -> None:
    done = start()
    assert ended(done, 60) == ("", "migrate: settings refused: STORE_CONNECTION must be set\n")
    assert done.returncode == 1


def test_a_check_of_a_sound_transform_is_one_line_that_says_what_was_checked(
    modules: WrittenModules, sqlite: SqliteEngine, capsys: Capture
) -> None:
    assert main(["--check", "--store", f"sqlite:{sqlite.path}"]) == main(["--check"]) == 0
    whole, part = capsys.readouterr().out.splitlines()
    sound = "examples.home_security has no fault: row classes 3, aggregates 1; "
    assert whole == f"{sound}the store has their tables"
    assert part == f"{sound}the tables were not checked, because no store is named"


def test_each_fault_of_a_check_is_a_line(modules: WrittenModules, capsys: Capture) -> None:
    name = modules.write("def transform(event): return ()\n")
    assert main(["--check", "--transform", name]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"check: {name} has faults",
        f"{name}.py:1: the module needs VERSION, a text that the ledger and letters name",
        f"{name}.py:1: transform() is called as transform(event, references), but has a different signature",
    ]


def test_a_store_that_lacks_a_table_is_a_fault(
    modules: WrittenModules, sqlite: SqliteEngine, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqlite.sql("DROP TABLE home_alert")
    monkeypatch.setenv("STORE_CONNECTION", f"sqlite:{sqlite.path}")
    assert main(["--check"]) == 1
    assert "there is no table home_alert, or the app has no right on it" in capsys.readouterr().err
    for store in ("sqlite:", f"sqlite:{sqlite.path}.none"):
        assert main(["--check", "--store", store]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("check: settings refused: STORE_CONNECTION must be")
    assert second.endswith("does not exist: create it with `python -m core.store.migrate`")


PLACE = ("stream_id", "partition_id", "sequence_number", "ordinal")
PLACED = {**dict.fromkeys(PLACE, ("bigint", 19, 0, "", 0, "1")), "commit_number": ("bigint", 19, 0, "", 0, "")}


def test_each_warning_of_a_server_is_a_line_and_a_level_that_is_too_low_is_a_fault_with_its_remedy(
    modules: WrittenModules, server: TdsServer, driver_name: str, capsys: Capture
) -> None:
    name, columns = modules.write(ROOM.format(table="placed")), {**PLACED, "number": ("float", 53, 0, "", 0, "")}
    server.state.answers["sys.columns AS c"] = [("placed", column, *described) for column, described in columns.items()]
    server.state.answers["d.compatibility_level"] = [("ledger", 160, 0)]
    arguments = ["--check", "--transform", name, "--store", server.connection_string(driver_name)]
    assert main(arguments) == 0
    said = capsys.readouterr()
    assert said.out == f"{name} has no fault: row classes 1, aggregates 0; the store has their tables\n"
    assert said.err.splitlines() == [
        f"check: {WAITING_READERS}",
        "check: columns change values that are sent to them; change their types:"
        " placed.number is float: bigint holds every value",
    ]
    server.state.answers["d.compatibility_level"] = [("ledger", 120, 1)]
    assert main(arguments) == 1
    assert capsys.readouterr().err == (
        "check: the database ledger has the compatibility level 120, and the statements need 130 or more: run ALTER"
        " DATABASE [ledger] SET COMPATIBILITY_LEVEL = 160\n"
    )
