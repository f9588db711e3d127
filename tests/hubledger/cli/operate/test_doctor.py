"""`doctor` and `logs`: what is wrong with an app, in a line for each part, and where its log is."""

import json
import platform
import time
from pathlib import Path
from typing import Any

import pytest

from core.model.release import VERSION
from hubledger.cli.main import main
from local.stack import folders
from local.stack.folders import kept_folder
from tests.hubledger.cli.described import Described
from tests.hubledger.cli.small_app import Reply, Request, SmallApp, problem

STOP = {"partition_id": "3", "reason": "outage", "detail": None, "attempts": 1, "stopped_at": "2026-01-01T00:00:00Z"}
GOOD: dict[str, Any] = {
    "version": VERSION, "hub_fault": None, "event_hub": "telemetry",
    "lag": 5, "accounted": 9, "numbers": 9, "ledger_balanced": True,
    "partitions": [{"stops": []}], "stops": 0, "standing": [], "letters": {"exhausted": 0}, "unknown_fields": [],
}  # fmt: skip
BAD: dict[str, Any] = {
    **GOOD, "hub_fault": "no route", "ledger_balanced": False, "partitions": [{"stops": [STOP]}], "stops": 1,
    "letters": {"exhausted": 1_200}, "unknown_fields": [{"name": "coupon", "events": 12_000}],
}  # fmt: skip


class App:
    """Answers with a status, its health, and an engine."""

    def __init__(self, status: dict[str, Any] | Reply, *, is_ready: bool = True, engine: str = "none") -> None:
        self.status, self.is_ready, self.engine = status, is_ready, engine

    def __call__(self, request: Request) -> Reply:
        if "health" in request.path:
            fault = None if self.is_ready else "no table"
            return Reply({"healthy": self.is_ready, "fault": fault}, 200 if self.is_ready else 503)
        if "aggregations" in request.path:
            return Reply({"paused": None, "engine": self.engine, "runs": [{"failure": "no memory"}]})
        return self.status if isinstance(self.status, Reply) else Reply(self.status)


def diagnosed(
    app: App, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, str]]:
    with SmallApp(app) as served:
        monkeypatch.setenv("HUBLEDGER_URL", served.url)
        code = main(["doctor", "--json"])
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert main(["doctor"]) == code
        assert "wrong" in capsys.readouterr().out or code == 0
    return code, {one["part"]: one["state"] for one in found}


def test_a_good_app_is_all_right(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = diagnosed(App(GOOD), monkeypatch, capsys)
    assert (code, set(found.values())) == (0, {"ok"})
    assert list(found) == [
        "versions",
        "address",
        "database",
        "sign-in",
        "app",
        "hub",
        "ledger",
        "stops",
        "letters",
        "engine",
    ]


def test_each_part_that_is_wrong_has_its_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = diagnosed(App(BAD, is_ready=False, engine="livy"), monkeypatch, capsys)
    wrong = dict.fromkeys(("database", "hub", "ledger", "stops"), "wrong")
    look = dict.fromkeys(("letters", "fields", "engine"), "look")
    assert (code, found) == (1, {"versions": "ok", "address": "ok", "sign-in": "ok", "app": "ok", **wrong, **look})
    code, found = diagnosed(App(problem("unauthorized", 401, "a key is needed")), monkeypatch, capsys)
    assert (code, found["sign-in"]) == (1, "wrong")


def test_a_partition_that_stands_without_a_stop_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stands = {"partition_id": "3", "since": "2026-01-01T00:00:00Z", "fault": "StoreUnavailable"}
    silent = {**stands, "partition_id": "5", "fault": None}
    with SmallApp(App({**GOOD, "standing": [stands, silent]})) as served:
        monkeypatch.setenv("HUBLEDGER_URL", served.url)
        assert main(["doctor", "--json"]) == 1
    (found,) = [one for one in map(json.loads, capsys.readouterr().out.splitlines()) if one["part"] == "stops"]
    assert found["state"] == "wrong"
    assert "partitions stand: 3 (StoreUnavailable), 5 (no error)" in found["said"]


def test_a_database_that_this_code_cannot_run_on_is_told_in_the_words_of_the_app(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = problem("unavailable", 503, "store.db was made with a different text of migration 0001 hubledger")
    code, found = diagnosed(App(changed, is_ready=False), monkeypatch, capsys)
    assert (code, found["database"], found["status"]) == (1, "wrong", "wrong")
    assert "sign-in" not in found


def test_the_versions_come_first_also_without_an_app(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--url", "http://127.0.0.1:1"]) == 2
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"hubledger {VERSION}, Python {platform.python_version()}, {platform.system()}")
    _, found = diagnosed(App({**GOOD, "version": "9.0"}), monkeypatch, capsys)
    assert found["app"] == "look"


def test_a_log_is_followed_when_it_is_cut_or_replaced_by_that_of_a_new_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    first, second = tmp_path / "host-1.log", tmp_path / "host-2.log"
    first.write_text("one\ntwo\n")
    current = first

    def cut() -> None:
        first.write_text("cut\n")

    def replace() -> None:
        second.write_text("renamed\n")
        second.replace(first)

    def begin() -> None:
        nonlocal current
        second.write_text("begun\n")
        current = second

    def grow() -> None:
        with second.open("a") as log:
            log.write("grown\n")

    steps = iter((cut, replace, begin, grow))

    def pause(seconds: float) -> None:
        step = next(steps, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    monkeypatch.setattr(folders, "running_log", lambda url: current)
    monkeypatch.setattr(time, "sleep", pause)
    with SmallApp(Described()) as app:
        assert main(["logs", "--follow", "--url", app.url]) == 130
    found = capsys.readouterr()
    assert found.out.split() == ["one", "two", "cut", "renamed", "begun", "grown"]
    assert found.err.count(":\n") == 4


def test_logs_are_those_of_the_local_run_or_the_query_for_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with SmallApp(Described()) as app:
        monkeypatch.setenv("HUBLEDGER_URL", app.url)
        assert main(["logs"]) == 0
        assert "AppTraces" in capsys.readouterr().out
        folder, find = tmp_path / "run" / "apps.orders", folders.running_log
        monkeypatch.setattr(folders, "running_log", lambda url: find(url, tmp_path))
        with kept_folder(folder):
            (folder / "host-1.out").write_text(f"{folders.HOST_READY}{app.url}/\n")
            (folder / "host-1.log").write_text("".join(f'{{"message": "line {number}"}}\n' for number in range(100)))
            assert main(["logs"]) == 0
    found = capsys.readouterr()
    assert found.out.splitlines()[0] == '{"message": "line 60"}'
    assert len(found.out.splitlines()) == 40
    assert "host-1.log" in found.err
