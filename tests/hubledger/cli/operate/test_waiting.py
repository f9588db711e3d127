"""The wait for a job: its bar on a terminal, a silence of the app, and the end."""

from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from hubledger.cli.operate.tasks import Job, wait_for
from hubledger.cli.output import Output
from hubledger.cli.remote.client import AppAnswer, NoConnection, Refusal

HOSTILE = "\x1b]0;owned\x07[bold]b[/bold][/]\x9b2J"
Read = Callable[[], AppAnswer]


def wait(read: Read, out: Output | None = None) -> AppAnswer:
    """Wait for a job without a pause between two looks."""
    return wait_for(Job("replay", read, "done"), out or Output(), every=0)


def on_a_terminal() -> tuple[Output, StringIO]:
    """An output whose stderr is a terminal, whatever terminal this process has, and what it got."""
    out, screen = Output(), StringIO()
    out.errors = Console(file=screen, force_terminal=True, width=120, color_system=None, _environ={})
    return out, screen


def reading(*found: dict[str, Any] | Exception) -> Read:
    """Read these, one after the other."""
    left = iter(found)

    def read() -> AppAnswer:
        one = next(left)
        if isinstance(one, Exception):
            raise one
        return AppAnswer("", one)

    return read


def job(status: str, done: int = 0, fault: str | None = None) -> dict[str, Any]:
    """A job as an answer has it."""
    return {"status": status, "done": done, "total": 2_000, "fault": fault}


def test_the_bar_shows_counts_and_the_fault_of_the_app_without_what_steers() -> None:
    out, screen = on_a_terminal()
    wait(reading(job("paused", 1_500, HOSTILE)), out)
    assert "1,500 of 2,000" in screen.getvalue()
    assert "\\x1b]0;owned\\x07[bold]b[/bold][/]\\x9b2J" in screen.getvalue()
    assert "\x1b]" not in screen.getvalue()
    assert "\x9b" not in screen.getvalue()


def test_a_silence_of_the_app_is_waited_for() -> None:
    silences = [NoConnection("no answer"), Refusal(503, "unavailable")] * 5
    assert wait(reading(*silences, job("done"))).value["status"] == "done"


def test_a_long_silence_and_a_refusal_end_the_wait() -> None:
    with pytest.raises(NoConnection):
        wait(reading(*[NoConnection("no answer")] * 30))
    with pytest.raises(Refusal):
        wait(reading(Refusal(404, "not-found"), job("done")))


@pytest.mark.parametrize("status", ["done", "cancelled", "failed", "paused"])
def test_the_wait_ends_with_the_job_and_when_it_is_paused(status: str) -> None:
    assert wait(reading(job("running"), job(status))).value["status"] == status
