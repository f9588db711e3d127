"""local/demo/__main__.py: the options that it refuses before anything starts."""

from pathlib import Path

import pytest

from local.demo.__main__ import main
from local.programs import BY_MAKE


def test_an_impossible_demo_is_refused_with_one_clear_error(capsys: pytest.CaptureFixture[str]) -> None:
    for options, why in {
        "--transform=flights": "there is no room flights: name home_security, flight_info or ",
        "--transform=other.module": "there is no room other.module",
        "--transform=nothing --events-from=Makefile": "there is no room nothing: name home_security",
        "--key=order_id": "argument --key: it needs --events-from",
        "--events-from=Makefile": "argument --transform: name the room of the events in Makefile: one like apps.orders",
        "--transform=flight_info --events-from=Makefile --key=x": "argument --key: no line of Makefile has a text or",
        "--transform=flight_info --events-from=Makefile --homes=5": "argument --homes: the events of a file have no",
        "--events=0": "must be a whole number from 1",
        "--events=-1": "must be a whole number from 1, not '-1'",
        "--workers=-1": "must be a whole number from 0, not '-1'",
        "--kill=-1": "must be a whole number from 0, not '-1'",
        "--port=0": "must be a whole number from 1 to 65535, not '0'",
        "--port=65536": "must be a whole number from 1 to 65535",
        "--seed=first": "must be a whole number, not 'first'",
        "--rate=-1": "must be a number above 0, or full, not '-1'",
        "--rate=slow": "must be a number above 0, or full",
        "--chaos=often": "ignored explicit argument 'often'",
        "--chaos --workers=2": "argument --chaos: it needs the functions host",
        "--undeliverable=5 --transform=flight_info": "argument --undeliverable: such events are only those of home",
        "--aggregate --workers=2": "it needs the functions host",
        "--aggregate --workers=2 --transform=flight_info": "it needs the functions host",
    }.items():
        with pytest.raises(SystemExit):
            main(options.split())
        assert why in capsys.readouterr().err, options


def test_make_hears_of_its_settings_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(BY_MAKE, "1")
    for options, line in {
        "--events=-1": "demo: EVENTS: must be a whole number from 1, not '-1'\n",
        "--homes=-1": "demo: HOMES: must be a whole number from 1, not '-1'\n",
        "--key=order_id": "demo: KEY: it needs EVENTS_FROM=\n",
        "--store=abc": "demo: STORE: the store is no ODBC string with SERVER= and DATABASE=: docs/run.md shows one\n",
    }.items():
        with pytest.raises(SystemExit) as refused:
            main(options.split())
        assert (refused.value.code, capsys.readouterr().err) == (2, line)


def test_a_port_in_use_and_a_folder_that_cannot_be_written_are_refused_before_anything_starts(
    taken_port: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--port", str(taken_port), "--folder", str(tmp_path / "run")]) == 1
    assert capsys.readouterr().err == f"demo: port {taken_port} is taken: choose another with --port\n"
    (tmp_path / "file").touch()
    assert main(["--folder", str(tmp_path / "file" / "run")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"demo: {tmp_path}/file/run cannot be written (Not a directory): choose a different folder")


def test_a_room_with_faults_is_refused_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--transform=tests", "--events-from=Makefile"]) == 1
    assert "demo: TRANSFORM=tests: tests/__init__.py:1: the module needs VERSION" in capsys.readouterr().err


def test_without_java_a_demo_that_aggregates_is_refused_with_the_way_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(SystemExit) as ended:
        main(["--aggregate"])
    assert ended.value.code == 2
    assert "Java is missing: apt-get install openjdk-17-jre-headless" in capsys.readouterr().err
