"""The command line in a real terminal, against the real app: width, colour, questions, Ctrl-C."""

import re
from pathlib import Path

import pytest

from tests.acceptance.api.served import Served
from tests.acceptance.cli.terminal import TMUX, WITHOUT_TMUX, Terminal, environment, hubledger, joined

pytestmark = [pytest.mark.slow, pytest.mark.skipif(TMUX is None, reason=WITHOUT_TMUX)]
REASON = "--reason 'the kind is known now'"


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_watch_fits_the_terminal_and_leaves_it_clean(width: int, fresh: Served, short_path: Path) -> None:
    given = environment(fresh.base_url)
    with Terminal(short_path, given, "status --watch --every 0.5", (width, 24)) as terminal:
        screen = terminal.shows("balanced")
        assert re.search(r"(?m)^ 10 .* ok *$", screen), screen
        assert ("filtered" in screen) == (width == 200)
        terminal.press("C-c")
        assert terminal.code() == 130
        assert terminal.screen().strip() == "ended with code 130"


def test_colour_is_on_in_a_terminal_and_off_on_request(fresh: Served, short_path: Path) -> None:
    found = {}
    for at, (options, more) in enumerate([("", {}), ("--no-color", {}), ("", {"NO_COLOR": "1"})]):
        folder = short_path / str(at)
        folder.mkdir()
        with Terminal(folder, environment(fresh.base_url, **more), f"letters list {options}") as terminal:
            terminal.code()
            found[options, *more] = "\x1b[" in terminal.screen(with_colours=True)
    assert found == {("",): True, ("--no-color",): False, ("", "NO_COLOR"): False}


def test_letters_are_retried_after_a_question(fresh: Served, short_path: Path) -> None:
    with Terminal(
        short_path, environment(fresh.base_url), f"letters retry --status exhausted --no-wait {REASON}"
    ) as terminal:
        assert "aaaa" in terminal.shows("Retry 6 letters? [y/N]")
        terminal.press("y", "Enter")
        assert terminal.code() == 0
        assert "done: moved 6 of 6 letters" in terminal.screen()
    assert fresh.sqlite.sql("SELECT COUNT(*) FROM task WHERE status = 'done'") == [(1,)]


@pytest.mark.parametrize(("keys", "code"), [(("n", "Enter"), 1), (("Enter",), 1), (("C-c",), 130), (("C-d",), 130)])
def test_a_question_that_is_not_answered_with_yes_changes_nothing(
    keys: tuple[str, ...], code: int, fresh: Served, short_path: Path
) -> None:
    before = fresh.contents()
    with Terminal(short_path, environment(fresh.base_url), f"letters discard --status exhausted {REASON}") as terminal:
        terminal.shows("Discard 6 letters? [y/N]")
        terminal.press(*keys)
        assert terminal.code() == code
        assert "nothing was changed" in terminal.screen()
    assert fresh.contents()["event_hub_dead_letter"] == before["event_hub_dead_letter"]


def test_ctrl_c_leaves_the_job_running_and_names_the_command_that_pauses_it(fresh: Served, short_path: Path) -> None:
    command = f"letters retry --status exhausted {REASON} --per-second 1 --yes"
    with Terminal(short_path, environment(fresh.base_url), command, (200, 40)) as terminal:
        terminal.until(lambda screen: re.search(r"redrive [0-9a-f-]{36}", screen) and "━" in screen)
        terminal.press("C-c")
        assert terminal.code() == 130
        told = re.search(r"goes on in the app. To pause it: (.+?) --reason WHY", joined(terminal.screen()))
    assert told
    pause = told[1].split()[told[1].split().index("bin/hubledger") + 1 :]
    paused = hubledger(fresh.base_url, *pause, "--reason", "too early", "--yes", "--json")
    assert paused.returncode == 0, paused.stderr
    task_id = pause[-1]
    cancelled = hubledger(fresh.base_url, "tasks", "cancel", task_id, "--reason", "the end", "--yes")
    assert cancelled.returncode == 0, cancelled.stderr
    assert "too early" in hubledger(fresh.base_url, "tasks", "show", task_id).stdout


def test_a_hostile_letter_neither_names_nor_clears_nor_colours_the_terminal(fresh: Served, short_path: Path) -> None:
    plain = environment(fresh.base_url)
    for at, command in enumerate(
        ["letters show 11 0 --body text", "letters list --revealed", "letters show 11 0 --body json --json"]
    ):
        folder = short_path / str(at)
        folder.mkdir()
        with Terminal(folder, plain, command, (200, 60)) as terminal:
            assert terminal.code() == 0
            screen = joined(terminal.screen(with_colours=True))
            assert terminal.title() != "owned"
        assert "owned" in screen, command
        assert "[bold red]no such kind" in screen, command
        assert "\x1b[31m[bold" not in screen, command
