import io
import json
import platform
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.model.release import VERSION
from hubledger.cli.main import main
from local.stack import folders
from local.stack.folders import kept_folder
from tests.hubledger.cli.operate.conftest import Ask
from tests.hubledger.cli.small_app import Described, Reply, Request, SmallApp, problem

SINCE = "2026-01-01T00:00:00Z"
STOP = {"partition_id": "3", "reason": "outage", "detail": None, "attempts": 1, "stopped_at": SINCE}
STANDING = [
    {"partition_id": id, "since": SINCE, "fault": fault} for id, fault in (("3", "StoreUnavailable"), ("5", None))
]
GOOD: dict[str, Any] = {
    "version": VERSION, "hub_fault": None, "event_hub": "telemetry",
    "lag": 5, "accounted": 9, "numbers": 9, "ledger_balanced": True,
    "partitions": [{"stops": []}], "stops": 0, "standing": [], "letters": {"exhausted": 0}, "unknown_fields": [],
    "lost_erasure_keys": [], "without_key": 0,
}  # fmt: skip
BAD: dict[str, Any] = {
    **GOOD, "hub_fault": "no route", "ledger_balanced": False, "partitions": [{"stops": [STOP]}], "stops": 1,
    "letters": {"exhausted": 1_200}, "unknown_fields": [{"name": "coupon", "events": 12_000}], "without_key": 3,
    "lost_erasure_keys": [{"key_hash": "ab12", "subjects": 3, "erased_at": SINCE}],
}  # fmt: skip
OK = dict.fromkeys(
    ("versions", "address", "database", "sign-in", "app", "hub", "ledger", "stops", "erasures", "letters", "engine"),
    "ok",
)
WRONG = dict.fromkeys(("database", "hub", "ledger", "stops", "erasures"), "wrong")
CHANGED = problem("unavailable", 503, "store.db was made with a different text of migration 0001 hubledger")
States = dict[str, str]
Diagnose = Callable[..., tuple[int, States, States]]


@pytest.fixture
def diagnose(ask: Ask) -> Diagnose:
    def run(status: Any, *, is_ready: bool = True, engine: str = "none") -> tuple[int, States, States]:
        def answer(request: Request) -> Reply:
            if "health" in request.path:
                return Reply({"healthy": is_ready, "fault": None if is_ready else "no table"}, 200 if is_ready else 503)
            if "aggregations" in request.path:
                return Reply({"paused": None, "engine": engine, "runs": [{"failure": "no memory"}]})
            return status if isinstance(status, Reply) else Reply(status)

        told, shown = ask("doctor --json", answer), ask("doctor", answer)
        found = [json.loads(line) for line in told.out.splitlines()]
        assert shown.code == told.code and ("wrong" in shown.out or told.code == 0)
        return told.code, {one["part"]: one["state"] for one in found}, {one["part"]: one["said"] for one in found}

    return run


def test_each_part_of_an_app_has_a_line_that_says_whether_it_is_wrong(diagnose: Diagnose) -> None:
    code, found, _ = diagnose(GOOD)
    assert (code, found, list(found)) == (0, OK, [*OK])
    code, found, _ = diagnose(BAD, is_ready=False, engine="livy")
    assert (code, found) == (1, {**OK, **WRONG, **dict.fromkeys(("letters", "fields", "keys", "engine"), "look")})
    assert diagnose(problem("unauthorized", 401, "a key is needed"))[1]["sign-in"] == "wrong"
    assert diagnose({**GOOD, "version": "9.0"})[1]["app"] == "look"


def test_the_next_commands_of_a_diagnosis_are_lines_of_their_own_to_paste(
    monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = ask("doctor").out.splitlines()
    named = [one.partition("bin/hubledger ")[2] for one in lines if "bin/hubledger " in one]
    assert named == ["logs", "status", "erase forget-key", "letters causes --status exhausted", "runs resume"]


def test_a_partition_that_stands_and_a_database_that_this_code_cannot_run_on_are_told_in_the_words_of_the_app(
    diagnose: Diagnose,
) -> None:
    code, found, said = diagnose({**GOOD, "standing": STANDING})
    assert (code, found["stops"]) == (1, "wrong")
    assert "partitions stand: 3 (StoreUnavailable), 5 (no error)" in said["stops"]
    code, found, _ = diagnose(CHANGED, is_ready=False)
    assert (code, found["database"], found["status"], "sign-in" in found) == (1, "wrong", "wrong", False)


def test_the_versions_come_first_also_without_an_app(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--url", "http://127.0.0.1:1"]) == 2
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"hubledger {VERSION}, Python {platform.python_version()}, {platform.system()}")


def test_a_log_is_followed(monkeypatch: pytest.MonkeyPatch, ask: Ask, tmp_path: Path) -> None:
    first, second = tmp_path / "host-1.log", tmp_path / "host-2.log"
    first.write_text("one\ntwo\n")
    current = [first]

    def steps() -> Any:
        yield first.write_text("cut\n")
        second.write_text("renamed\n")
        yield second.replace(first)
        current.append(second)
        yield second.write_text("begun\n")
        with second.open("a") as log:
            log.write("grown\n")
        yield None
        raise KeyboardInterrupt

    going = steps()
    monkeypatch.setattr(folders, "running_log", lambda url: current[-1])
    monkeypatch.setattr(time, "sleep", lambda seconds: next(going))
    found = ask("logs --follow")
    assert found.code == 130
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
            line = '{"time": "2026-11-29T20:36:10.840", "level": "INFO", "held": 0, "rows": 4, "message": "line %d"}\n'
            (folder / "host-1.log").write_text("".join(line % number for number in range(100)))
            assert main(["logs"]) == 0
    found = capsys.readouterr()
    assert found.out.splitlines()[0] == "20:36:10 INFO line 60 rows=4"
    assert len(found.out.splitlines()) == 40
    assert "host-1.log" in found.err


KEY = "a-secret-key"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    for name in ("HUBLEDGER_URL", "HUBLEDGER_KEY", "HUBLEDGER_SCOPE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "settings" / "hubledger" / "contexts.json"


def use(monkeypatch: pytest.MonkeyPatch, name: str, url: str = "", key: str = KEY) -> int:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{key}\n"))
    return main(["use", name, *(["--url", url] if url else []), "--key-from-stdin"])


def test_a_context_is_kept_for_its_user_alone_and_its_app_is_asked_with_its_key(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with SmallApp(Described()) as app, SmallApp(Described()) as other:
        assert use(monkeypatch, "prod", app.url) == 0
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        main(["status"])
        assert [one.headers["x-functions-key"] for one in app.requests] == [KEY]
        main(["status", "--url", other.url])
        assert "x-functions-key" not in other.requests[0].headers, "a key goes to its own app only"
        monkeypatch.setenv("HUBLEDGER_URL", other.url)
        main(["status"])
        assert (len(app.requests), len(other.requests)) == (1, 2)
    assert KEY not in capsys.readouterr().out


def test_contexts_are_listed_switched_and_forgotten(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["use"]) == 0
    assert "no context is known" in capsys.readouterr().out
    assert use(monkeypatch, "prod", "https://prod.example.com/api/") == 0
    assert main(["use", "test", "--url", "https://test.example.com", "--scope", "api://1/.default"]) == 0
    assert main(["use", "pr"]) == 0
    capsys.readouterr()
    assert main(["use"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if "example.com" in line]
    assert lines == [
        ["*", "prod", "https://prod.example.com", "with", "a", "key"],
        ["test", "https://test.example.com", "scope", "api://1/.default"],
    ]
    assert main(["use", "tent", "--url", "https://tent.example.com", "--scope", "s"]) == 0
    capsys.readouterr()
    assert (main(["use", "te"]), capsys.readouterr().err) == (2, "hubledger: te begins 2 contexts: test, tent\n")
    assert main(["use", "prod", "--forget"]) == 0
    assert KEY not in file.read_text()
    assert main(["use", "prod"]) == main(["use", "prod", "--forget"]) == 2


def test_the_key_or_the_scope_of_a_known_context_is_changed_alone(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with SmallApp(Described()) as app:
        assert use(monkeypatch, "prod", app.url) == use(monkeypatch, "prod", key="a-newer-key") == 0
        main(["status"])
        assert [one.headers["x-functions-key"] for one in app.requests] == ["a-newer-key"]
        assert main(["use", "prod", "--scope", "api://1/.default"]) == 0
        assert json.loads(file.read_text())["known"]["prod"] == {"url": app.url, "key": "", "scope": "api://1/.default"}
    assert main(["use", "test", "--scope", "api://1/.default"]) == 2
    assert "there is no context test: make it with --url" in capsys.readouterr().err


def test_a_wrong_address_names_its_context_and_a_file_that_others_may_read_or_that_is_broken_is_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert use(monkeypatch, "prod", "http://prod.example.com") == 0
    assert main(["status"]) == 2
    said = capsys.readouterr().err
    assert "the context's address http://prod.example.com: it is not https" in said and "--url" not in said
    file.chmod(0o644)
    assert main(["use"]) == 1
    assert f"others may read it: chmod 600 {file}" in capsys.readouterr().err
    file.chmod(0o600)
    for text in ("{", "[]", json.dumps({"known": {"a": {"uri": ""}}, "current": "a"})):
        file.write_text(text)
        assert main(["use"]) == 1
        assert "is no file of contexts" in capsys.readouterr().err
    file.unlink()
    assert use(monkeypatch, "prod", "ftp://prod") == 2
