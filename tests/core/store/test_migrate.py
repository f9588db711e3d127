"""core/store/migrate.py: one command says whether a transform and its tables are sound."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.store import migrate
from core.store.sqlserver.database import WAITING_READERS
from tests.fakes.engines import SqliteEngine
from tests.fakes.tds_server import TdsServer
from tests.fakes.written_modules import ROOM, WrittenModules, written_modules


def main(arguments: list[str]) -> int:
    """Check instead of migrating."""
    return migrate.main(["--check", *arguments])


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WrittenModules]:
    """A folder from which modules can be imported, and no settings."""
    for name in ("TRANSFORM", "STORE_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    with written_modules(tmp_path) as found:
        yield found


def test_a_sound_transform_is_one_line_that_says_what_was_checked(
    modules: WrittenModules, sqlite: SqliteEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--store", f"sqlite:{sqlite.path}"]) == main([]) == 0
    whole, part = capsys.readouterr().out.splitlines()
    sound = "examples.home_security has no fault: row classes 3, aggregates 1; "
    assert whole == f"{sound}the store has their tables"
    assert part == f"{sound}the tables were not checked, because no store is named"


def test_each_fault_is_a_line(modules: WrittenModules, capsys: pytest.CaptureFixture[str]) -> None:
    name = modules.write("def transform(event): return ()\n")
    assert main(["--transform", name]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"check: {name} has faults",
        f"{name}.py:1: the module needs VERSION, a text that the ledger and letters name",
        f"{name}.py:1: transform() is called as transform(event, references), but has a different signature",
    ]


def test_a_store_that_lacks_a_table_is_a_fault(
    modules: WrittenModules, sqlite: SqliteEngine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sqlite.sql("DROP TABLE home_alert")
    monkeypatch.setenv("STORE_CONNECTION", f"sqlite:{sqlite.path}")
    assert main([]) == 1
    assert "there is no table home_alert, or the app has no right on it" in capsys.readouterr().err
    assert main(["--store", "sqlite:"]) == main(["--store", f"sqlite:{sqlite.path}.none"]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("check: settings refused: STORE_CONNECTION must be")
    assert second.endswith("does not exist: create it with `python -m core.store.migrate`")


@pytest.fixture
def server() -> Iterator[TdsServer]:
    serving = TdsServer()
    yield serving
    serving.close()


PLACE = ("stream_id", "partition_id", "sequence_number", "ordinal")
PLACED = {**dict.fromkeys(PLACE, ("bigint", 19, 0, "", 0, "1")), "commit_number": ("bigint", 19, 0, "", 0, "")}


def test_each_warning_of_a_server_is_a_line_and_no_fault(
    modules: WrittenModules, server: TdsServer, driver_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, columns = modules.write(ROOM.format(table="placed")), {**PLACED, "number": ("float", 53, 0, "", 0, "")}
    server.state.answers["sys.columns AS c"] = [("placed", column, *described) for column, described in columns.items()]
    server.state.answers["d.compatibility_level"] = [("ledger", 160, 0)]
    assert main(["--transform", name, "--store", server.connection_string(driver_name)]) == 0
    said = capsys.readouterr()
    assert said.out == f"{name} has no fault: row classes 1, aggregates 0; the store has their tables\n"
    assert said.err.splitlines() == [
        f"check: {WAITING_READERS}",
        "check: columns change values that are sent to them; change their types:"
        " placed.number is float: bigint holds every value",
    ]


def test_a_server_whose_compatibility_level_is_too_low_is_a_fault_with_its_remedy(
    modules: WrittenModules, server: TdsServer, driver_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server.state.answers["d.compatibility_level"] = [("ledger", 120, 1)]
    assert main(["--store", server.connection_string(driver_name)]) == 1
    assert capsys.readouterr().err == (
        "check: the database ledger has the compatibility level 120, and the statements need 130 or more: run ALTER"
        " DATABASE [ledger] SET COMPATIBILITY_LEVEL = 160\n"
    )
