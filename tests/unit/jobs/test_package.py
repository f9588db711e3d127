"""jobs/package.py: what an engine elsewhere gets is whole, the same each time, and knows no database of the app's."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from core.aggregation.spark import JobRequest
from core.aggregation.tick import PROGRAM
from core.remote.spark.databricks import DatabricksEngine
from core.remote.spark.livy import LivyJobs
from jobs.package import ARCHIVE, PROGRAMS, WHEEL, main, write_package


def test_the_folder_holds_the_programs_and_both_archives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "out")]) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted([*PROGRAMS, ARCHIVE, WHEEL])
    assert str(tmp_path / "out" / ARCHIVE) in capsys.readouterr().out


def test_the_same_sources_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = (write_package(tmp_path / name) for name in ("a", "b"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_the_archives_hold_our_modules_but_not_the_way_to_sql(tmp_path: Path) -> None:
    write_package(tmp_path)
    names = set(zipfile.ZipFile(tmp_path / ARCHIVE).namelist())
    assert {
        "jobs/tables.py",
        "jobs/transforms.py",
        "core/settle/settle.py",
        "core/transforms/home_security.py",
    } <= names
    assert not any(name.startswith("core/store/") for name in names)
    wheel = zipfile.ZipFile(tmp_path / WHEEL)
    record = wheel.read("hubledger-0.1.0.dist-info/RECORD").decode()
    assert {line.split(",")[0] for line in record.splitlines()} == set(wheel.namelist())


def test_what_the_engines_name_is_what_is_written(tmp_path: Path) -> None:
    write_package(tmp_path)
    request = JobRequest("agg-1-1", PROGRAM, ())
    batch = LivyJobs(str(tmp_path)).batch(request)
    (task,) = DatabricksEngine("https://host", lambda: None, str(tmp_path), {})._body(request)["tasks"]
    named = [batch["file"], *batch["pyFiles"], task["spark_python_task"]["python_file"], task["libraries"][0]["whl"]]
    assert [name for name in named if not Path(name).exists()] == []


def test_the_archive_alone_is_enough_to_settle_events(tmp_path: Path) -> None:
    write_package(tmp_path)
    remote = "core.remote.spark.jdbc, core.remote.spark.lakes"
    script = f"import core.settle.settle, core.aggregation.lake, {remote}, core.transforms.home_security, jobs.ranges"
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path / ARCHIVE)!r}); {script}"]
    done = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
