"""`use`: contexts are kept for their user alone, and the settings win over them."""

import io
import json
import stat
import sys
from pathlib import Path

import pytest

from hubledger.cli.main import main
from tests.hubledger.cli.small_app import Described, SmallApp

KEY = "a-secret-key"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of contexts, in a folder that does not exist yet."""
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
    assert main(["use", "prod"]) == 0
    capsys.readouterr()
    assert main(["use"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if "example.com" in line]
    assert lines == [
        ["*", "prod", "https://prod.example.com", "with", "a", "key"],
        ["test", "https://test.example.com", "scope", "api://1/.default"],
    ]
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
