import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local.demo.__main__ import main
from local.demo.accounting import Accounting, NoProgress, Waited
from tests.fakes.builders import keep_letters, partition
from tests.fakes.engines import SqliteEngine


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
        "--iot --chaos": "argument --iot: it needs the events of home_security and the functions host, without --chaos",
        "--iot --transform=flight_info": "argument --iot: it needs the events of home_security",
        "--aggregate --workers=2": "it needs the functions host",
        "--aggregate --workers=2 --transform=flight_info": "it needs the functions host",
    }.items():
        with pytest.raises(SystemExit):
            main(options.split())
        assert why in capsys.readouterr().err, options


def test_a_room_with_faults_is_refused_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--transform=tests", "--events-from=Makefile"]) == 1
    assert "demo: TRANSFORM=tests: tests/__init__.py:1: the module needs VERSION" in capsys.readouterr().err


EVENTS = 10_000


def test_without_java_a_demo_that_aggregates_is_refused_with_the_way_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(SystemExit, match=r"^2$"):
        main(["--aggregate"])
    assert "Java is missing: apt-get install openjdk-17-jre-headless" in capsys.readouterr().err


def test_a_wait_without_progress_ends_and_names_the_letters_in_the_way(sqlite: SqliteEngine, tmp_path: Path) -> None:
    store, record, log = sqlite.open(), tmp_path / "record.db", tmp_path / "host.log"
    with closing(sqlite3.connect(record)):
        log.write_text("the last line")
    keep_letters(store, {0: "a"}, status="exhausted", error="the process died")
    keep_letters(store, {0: "a"}, partition("1"), status="discarded", error="given up")
    store.close()

    def nothing(*_: object) -> None:
        pass

    child: Any = SimpleNamespace(running=True, exit_code=nothing, refuse_dead=nothing)
    watch = SimpleNamespace(books=None, silence="")
    consumers: Any = SimpleNamespace(watch=watch, refuse_dead=nothing, logs=[log])
    stack: Any = SimpleNamespace(pause=nothing, place=SimpleNamespace(live=sqlite.path))
    accounting = Accounting(stack, consumers, Waited(child, record, patience=0.05))
    with pytest.raises(
        NoProgress, match=r"accounted for.*; 1 of class unknown, exhausted: .*the process died"
    ) as ended:
        accounting.wait([], {}, child)
    assert "given up" not in str(ended.value)
