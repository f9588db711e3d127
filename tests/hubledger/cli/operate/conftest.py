import shlex
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from hubledger.cli.main import main
from tests.hubledger.cli.small_app import Described, Reply, Request, SmallApp


@dataclass(frozen=True)
class Said:
    """The exit code and the output of a command, and the requests that it sent to the app."""

    code: int
    out: str
    err: str
    requests: list[Request]

    @property
    def last(self) -> Request:
        return self.requests[-1]


Ask = Callable[..., Said]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run a command against an app that answers so, by default with full answers."""
    monkeypatch.setattr(webbrowser, "open", lambda _: True)

    def run(line: str, answer: Callable[[Request], Reply] | None = None) -> Said:
        with SmallApp(answer or Described()) as app:
            monkeypatch.setenv("HUBLEDGER_URL", app.url)
            code = main(shlex.split(line))
        found = capsys.readouterr()
        return Said(code, found.out, found.err, app.requests)

    return run
