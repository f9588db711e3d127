import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from core.aggregation.spark_engine import JobRequest
from core.aggregation.tick import PROGRAM
from core.remote.spark.http_engines import DatabricksEngine, LivyJobs
from core.remote.spark.job_package import APP, ARCHIVE, PACKAGES, modules, package_version, packages_wheel, wheel
from jobs.package import PROGRAMS, PackageRefused, main, merged, write_package
from tests.fakes.orders_room import ORDERS, write_room
from tests.patience import allowed

VERSION = package_version()


def brought(folder: Path, python: str, source: str = "x = 1") -> Path:
    """Write the wheel of a package with a compiled module."""
    folder.mkdir(exist_ok=True)
    path = folder / f"thing-1.0-cp{python}-cp{python}-manylinux2014_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("thing/__init__.py", source)
        archive.writestr(f"thing/_core.cpython-{python}-x86_64-linux-gnu.so", python)
        archive.writestr("thing-1.0.dist-info/WHEEL", f"Tag: cp{python}")
    return path


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    write_package(folder, [brought(folder / "wheels", "311")])
    return folder / VERSION


def printed(archive: Path, script: str) -> tuple[str, str]:
    """Run a script with an archive on the path, beside it. Return its output and its errors."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(archive)!r}); {script}"]
    done = subprocess.run(command, cwd=archive.parent, env={}, capture_output=True, text=True, timeout=allowed(60))
    return done.stdout.strip(), done.stderr


def test_the_folder_holds_programs_and_the_archives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheels = brought(tmp_path / "wheels", "311")
    assert main([str(tmp_path / "out"), "--wheels", str(tmp_path / "wheels")]) == 0
    written = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*")} - {VERSION}
    files = (*PROGRAMS, ARCHIVE, PACKAGES, wheel(VERSION), packages_wheel(VERSION))
    assert written == {f"{VERSION}/{name}" for name in files}
    assert str(tmp_path / "out" / VERSION / ARCHIVE) in capsys.readouterr().out
    again = write_package(tmp_path / "again", [wheels])
    assert [path.read_bytes() for path in again] == [
        (tmp_path / "out" / VERSION / path.name).read_bytes() for path in again
    ]


def test_the_version_is_a_hash_of_the_modules_and_of_the_required_packages(tmp_path: Path) -> None:
    for name in ("core", "examples", "apps", "jobs", "hubledger"):
        shutil.copytree(APP / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(APP / "requirements.txt", tmp_path)
    versions = [VERSION, package_version(tmp_path)]
    for name, text in (
        ("core/store/memory.py", "# no job uses it"),
        ("hubledger/testing.py", "# it is not deployed"),
        ("jobs/ranges.py", "# changed"),
        ("requirements.txt", "msgspec==0.99.0\n"),
    ):
        package_version.cache_clear()
        with (tmp_path / name).open("a") as file:
            file.write(text)
        versions.append(package_version(tmp_path))
    assert versions[0] == versions[1] == versions[2] == versions[3]
    assert len(set(versions)) == 3


def test_a_room_goes_with_the_jobs_but_for_its_tests_and_for_modules_that_cannot_run_there(tmp_path: Path) -> None:
    write_room(tmp_path)
    (tmp_path / "core" / "store").mkdir(parents=True)
    (tmp_path / "core" / "store" / "database.py").write_text("")
    found = {name for name in modules(tmp_path) if name.startswith("apps/orders/")}
    wanted = {"__init__.py", "transform.py", "amounts.py", "aggregates/__init__.py", "aggregates/turnover.py"}
    assert found == {f"apps/orders/{name}" for name in wanted}
    assert "examples/home_security/homes.py" not in modules()
    (tmp_path / "apps" / "orders" / "transform.py").write_text("def broken(:\n")
    assert "apps/orders/transform.py" in modules(tmp_path), "a room with a fault goes too"


def test_a_job_finds_the_aggregate_of_a_room_in_the_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / ARCHIVE, "w") as archive:
        write_room(tmp_path)
        for name, text in {**modules(), **modules(tmp_path)}.items():
            archive.writestr(name, text)
    words = "from core.transforms.loading import find_aggregate, import_transform"
    asks = f"{words}; import_transform('{ORDERS}'); print(find_aggregate('turnover').of.__module__)"
    assert printed(tmp_path / ARCHIVE, asks) == (f"{ORDERS}.aggregates.turnover", "")


def test_the_archive_holds_every_job_and_the_rooms_but_not_the_way_to_sql(written: Path) -> None:
    with zipfile.ZipFile(written / ARCHIVE) as archive:
        found = set(archive.namelist())
    jobs = {str(job) for job in Path("jobs").glob("*.py")}
    assert jobs | {"core/settle/settle.py", "examples/home_security/transform.py"} <= found
    assert not any(name.startswith("core/store/") for name in found)
    remote = "core.remote.spark.job_package, core.remote.spark.lake_storage"
    names = f"core.settle.settle, core.aggregation.lake_tables, {remote}, examples.home_security, jobs.ranges"
    assert printed(written / ARCHIVE, f"import {names}") == ("", "")  # enough to settle events


def test_wheels_of_several_versions_of_python_are_one_set_of_files_that_differ_in_compiled_modules_only(
    tmp_path: Path,
) -> None:
    wheels = [brought(tmp_path, "311"), brought(tmp_path, "313")]
    compiled = {f"thing/_core.cpython-{version}-x86_64-linux-gnu.so" for version in ("311", "313")}
    assert set(merged(wheels)) == {"thing/__init__.py", *compiled}
    brought(tmp_path, "313", source="x = 2")
    with pytest.raises(PackageRefused, match=r"thing-1\.0-cp313.* has a different thing/__init__\.py"):
        merged(wheels)


def test_what_the_engines_name_is_what_is_written_and_a_wheel_records_its_files(written: Path) -> None:
    request = JobRequest("agg-1-1", PROGRAM, ())
    batch = LivyJobs(str(written)).batch(request)
    (task,) = DatabricksEngine("https://host", lambda: None, str(written), {}).batch(request)["tasks"]
    named = [batch["file"], *batch["pyFiles"], *(one.partition("#")[0] for one in batch["archives"])]
    named += [task["spark_python_task"]["python_file"], *(one["whl"] for one in task["libraries"])]
    assert [name for name in named if not Path(name).exists()] == []
    for name in (wheel(VERSION), packages_wheel(VERSION)):
        with zipfile.ZipFile(written / name) as archive:
            info = f"{name.split('-')[0]}-{VERSION}.dist-info"
            record = archive.read(f"{info}/RECORD").decode()
            assert {line.split(",")[0] for line in record.splitlines()} == set(archive.namelist())
            assert f"Version: {VERSION}" in archive.read(f"{info}/METADATA").decode()


@pytest.mark.parametrize("first", ["core", "jobs"])
def test_modules_find_the_packages_that_the_engine_has_unpacked_beside_them(
    written: Path, tmp_path: Path, first: str
) -> None:
    """An engine unpacks the archive in the folder of the job, on the driver and on every executor."""
    shutil.copytree(written, tmp_path / "job")
    with zipfile.ZipFile(written / PACKAGES) as archive:
        archive.extractall(tmp_path / "job" / "packages")
    thing = str(tmp_path / "job" / "packages" / "thing" / "__init__.py")
    assert printed(tmp_path / "job" / ARCHIVE, f"import {first}, thing; print(thing.__file__)") == (thing, "")


@pytest.mark.slow
def test_a_failed_download_is_reported_with_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"INDEX_URL": "http://127.0.0.1:1/simple", "RETRIES": "0", "EXTRA_INDEX_URL": "", "FIND_LINKS": ""}
    for name, value in given.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    assert main([str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert told.startswith("python -m jobs.package: the wheels were not downloaded: ")
    assert "--wheels" in told
