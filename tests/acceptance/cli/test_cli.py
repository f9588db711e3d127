import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.model.events import SequenceNumber
from tests.acceptance.api.served import HUB, Contents, Served, fill
from tests.acceptance.tutorial.page import Command, steps_of
from tests.acceptance.tutorial.reader import in_a_copy
from tests.fakes.builders import EPOCH, commit, event, letter, partition, settled
from tests.patience import Patience, allowed
from tests.repo.product import ROOT

TMUX = shutil.which("tmux")
in_tmux = pytest.mark.skipif(TMUX is None, reason="tmux is not installed: apt-get install tmux")
ENDED = "ended with code "
REASON = "--reason 'the kind is known now'"
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b[31m[bold red]no such kind[/]\x9b1;1H\u202e"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Contents]]:
    """The app, filled, also with a letter whose error, key and body try to steer the terminal."""
    made = Served(tmp_path_factory.mktemp("cli"))
    fill(made)
    of = partition("11", hub=HUB)
    made.store.anchor_partition(made.store.read_partition(of), SequenceNumber(0), EPOCH)
    given = letter(event(0, f'{{"n":"{HOSTILE}"}}', key="home\x1b[2J"), error=HOSTILE)
    later = datetime.now(UTC) + timedelta(minutes=50)
    outcome = settled({}, letters=[replace(given, status="waiting", due_at=later)])
    made.store.commit_batch(commit(made.store.read_partition(of), 0, 0, outcome))
    yield made, made.contents()
    made.close()


@pytest.fixture
def fresh(app: tuple[Served, Contents]) -> Served:
    app[0].restore(app[1])
    return app[0]


def environment(url: str, **more: str) -> dict[str, str]:
    """The environment of a command: without what would turn off colour or change the width."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES", "TERM")}
    return {**kept, "HUBLEDGER_URL": url, **more}


def hubledger(url: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command without a terminal."""
    words, given = [sys.executable, "-m", "hubledger", *arguments], environment(url, **more)
    none, limit = subprocess.DEVNULL, allowed(60)
    return subprocess.run(
        words, cwd=ROOT, env=given, stdin=none, capture_output=True, text=True, timeout=limit, check=False
    )


def joined(screen: str) -> str:
    """The screen without the breaks of its lines."""
    return screen.replace("\n", "")


@dataclass(frozen=True)
class Terminal:
    """A real terminal: tmux with a server of its own. It stays after a command's end, with the exit code on a line."""

    socket: str
    printed: tuple[str, ...] = ()  # options of the screen: all that was printed, its wrapped lines as one

    def tmux(self, *arguments: str, **options: object) -> str:
        words = [str(TMUX), "-S", self.socket, *arguments]
        return str(subprocess.run(words, capture_output=True, text=True, **{"check": True, **options}).stdout)  # type: ignore[call-overload]

    def press(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def begin(self, line: str) -> None:
        """Type a command on an empty screen. `code` waits for its end."""
        self.press("-R")
        self.tmux("clear-history")
        self.answer(f"{line}; echo {ENDED}$?")

    def answer(self, line: str) -> None:
        self.press("-l", line)
        self.press("Enter")

    def screen(self, *options: str) -> str:
        """The text on the screen. With `-e`, its colours as escapes."""
        return self.tmux("capture-pane", "-p", *self.printed, *options)

    def until(self, holds: Callable[[str], object]) -> str:
        """Wait until the screen fulfils a condition, and return it."""
        patience = Patience(60)
        while not holds(screen := self.screen()):
            patience.pause(self.screen, 0.05)
        return screen

    def shows(self, text: str) -> str:
        return self.until(lambda screen: text in joined(screen))

    def code(self) -> int:
        ended = re.compile(rf"{ENDED}(\d+)")
        found = ended.search(joined(self.until(lambda screen: ended.search(joined(screen)))))
        assert found
        return int(found[1])


@contextmanager
def terminal(given: Mapping[str, str], *command: str, size: tuple[int, int], at: Path = ROOT) -> Iterator[Terminal]:
    """Open a terminal in which a command line runs, or a shell. Its folder has a path short enough for a socket."""
    folder = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    made = Terminal(str(folder / "tmux"), () if command else ("-J", "-S", "-"))
    own = {**given, "TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "SHELL": "/bin/sh"}
    window = ("new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), "-c", str(at))
    made.tmux("-f", "/dev/null", *window, *(command or ("/bin/sh",)), env=own, cwd=at)
    try:
        yield made
    finally:
        made.tmux("kill-server", check=False)
        shutil.rmtree(folder)


@contextmanager
def running(app: Served, command: str, size: tuple[int, int] = (80, 40), **more: Any) -> Iterator[Terminal]:
    line = f"trap : INT; {sys.executable} -m hubledger {command}; echo {ENDED}$?; cat"
    with terminal(environment(app.base_url, **more), line, size=size) as made:
        yield made


@in_tmux
def test_a_watch_fits_the_terminal_and_leaves_it_clean_and_colour_is_off_on_request(fresh: Served) -> None:
    for width in (60, 200):
        with running(fresh, "status --watch --every 0.5", (width, 24)) as terminal:
            screen = terminal.until(lambda screen: re.search(r"(?m)^ 10 .* ok *$", screen))
            assert "balanced" in screen
            assert ("filtered" in screen) == (width == 200)
            terminal.press("C-c")
            assert terminal.code() == 130
            assert terminal.screen().strip() == "ended with code 130"
    asked: list[tuple[str, dict[str, Any], bool]] = [("", {}, True), ("--no-color", {}, False)]
    for options, more, is_on in (*asked, ("", {"NO_COLOR": "1"}, False)):
        with running(fresh, f"letters list {options}", **more) as terminal:
            terminal.code()
            assert ("\x1b[" in terminal.screen("-e")) is is_on, (options, more)


@in_tmux
def test_letters_are_retried_after_a_yes_and_any_other_answer_changes_nothing(fresh: Served) -> None:
    before = fresh.contents()["event_hub_dead_letter"]
    for keys, code in ((("n", "Enter"), 1), (("Enter",), 1), (("C-c",), 130), (("C-d",), 130)):
        with running(fresh, f"letters discard --status exhausted {REASON}") as terminal:
            terminal.shows("Discard 6 letters? [y/N]")
            terminal.press(*keys)
            assert terminal.code() == code
            assert "nothing was changed" in terminal.screen()
    assert fresh.contents()["event_hub_dead_letter"] == before
    with running(fresh, f"letters retry --status exhausted --no-wait {REASON}") as terminal:
        assert "aaaa" in terminal.shows("Retry 6 letters? [y/N]")
        terminal.press("y", "Enter")
        assert terminal.code() == 0
        assert "done: moved 6 of 6 letters" in terminal.screen()
    assert fresh.sqlite.sql("SELECT COUNT(*) FROM task WHERE status = 'done'") == [(1,)]


@in_tmux
def test_ctrl_c_leaves_the_job_running_and_names_the_command_that_pauses_it(fresh: Served) -> None:
    with running(fresh, f"letters retry --status exhausted {REASON} --per-second 1 --yes", (200, 40)) as terminal:
        terminal.until(lambda screen: re.search(r"redrive [0-9a-f-]{36}", screen) and "━" in screen)
        terminal.press("C-c")
        assert terminal.code() == 130
        told = re.search(r"goes on in the app. To pause it: (.+ [0-9a-f-]{36})", joined(terminal.screen()))
    assert told
    pause = told[1].split()[told[1].split().index("bin/hubledger") + 1 :]
    with running(fresh, shlex.join(pause)) as terminal:  # as it is: it asks for the reason
        for question, answer in (("Reason, which the app stores", "too early"), ("Pause task", "y")):
            terminal.shows(question)
            terminal.answer(answer)
        assert terminal.code() == 0
    cancelled = hubledger(fresh.base_url, "tasks", "cancel", pause[-1], "--reason", "the end", "--yes")
    assert cancelled.returncode == 0, cancelled.stderr
    assert "too early" in hubledger(fresh.base_url, "tasks", "show", pause[-1]).stdout


@in_tmux
def test_a_hostile_letter_neither_names_nor_clears_nor_colours_the_terminal(fresh: Served) -> None:
    for command in ("show 11 0 --body text", "list --revealed", "show 11 0 --body json --json"):
        with running(fresh, f"letters {command}", (200, 60)) as terminal:
            assert terminal.code() == 0
            screen = joined(terminal.screen("-e"))
            assert terminal.tmux("display-message", "-p", "#{pane_title}").strip() != "owned"
        assert "owned" in screen and "[bold red]no such kind" in screen, command
        assert "\x1b[31m[bold" not in screen, command


@in_tmux
def test_what_a_command_needs_is_asked_for(tmp_path: Path) -> None:
    root = in_a_copy(tmp_path / "my-app").folder
    fields = {"item": "lamp", "quantity": 2, "placed_at": "2026-03-01T09:12:04Z"}
    lines = [json.dumps({"order_id": f"A-{number}", **fields}) for number in range(1, 6)]
    (root / "orders.jsonl").write_text("\n".join([*lines, '{"order_id": "A-6", ', "no JSON"]) + "\n")
    kept = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
    given = {**kept, "PATH": f"{root / 'bin'}:{os.environ['PATH']}", "XDG_CONFIG_HOME": str(tmp_path)}
    with terminal(given, size=(80, 24), at=root) as shell:
        shell.answer("trap : INT")

        def typed(line: str, *answers: tuple[str, str]) -> str:
            shell.begin(line)
            for question, answer in answers:
                shell.shows(question)
                shell.answer(answer)
            assert shell.code() == 0
            return shell.screen()

        questions = (("Name of your events", "orders"), ("File with orders", "orders.jsonl"))
        screen = typed("hubledger new --key order_id", *questions)
        assert "Left out: 2 lines of orders.jsonl" in screen
        assert "hubledger try --transform apps.orders" in screen
        screen = typed("hubledger try --transform orders")
        assert "apps.orders, orders/1: events 5, with rows 5, filtered 0, letters 0" in screen
        typed("hubledger new shop --from orders.jsonl")
        asked = ("Which room (apps.orders, apps.shop)", "shop"), ("not one of 'apps.orders', 'apps.shop'", "apps.shop")
        assert "apps.shop, shop/1: events 5" in typed("hubledger try", *asked)


def test_completion_knows_the_commands_and_their_options(tmp_path: Path) -> None:
    script = str(ROOT / "bin" / "hubledger")
    asked = {"COMP_WORDS": "hubledger letters re", "COMP_CWORD": "2", "_HUBLEDGER_COMPLETE": "complete_bash"}
    found = subprocess.run([script], env=environment("") | asked, capture_output=True, text=True, check=False)
    assert found.stdout.split() == ["retry"]
    home = {"HOME": str(tmp_path), "PATH": environment("")["PATH"]}
    in_bash = ["bash", "-c", f"{shlex.quote(script)} --install-completion; exit $?"]  # it asks which shell it is in
    done = subprocess.run(in_bash, env=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert any("_HUBLEDGER_COMPLETE" in path.read_text() for path in tmp_path.rglob("*") if path.is_file())


README = (ROOT / "README.md").read_text(encoding="utf-8")
SESSION = [step for step in steps_of(README) if isinstance(step, Command) and step.line.startswith("bin/hubledger ")]
# Ids and times are one sign in the session and in the output; the widths of columns follow them.
_VOLATILE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[\d-]* ?\d\d:\d\d:\d\dZ, (now|[\w ]+ ago)|─+")


def steady(text: str) -> str:
    """A text without what differs from one session to the next."""
    lines = [" ".join(_VOLATILE.sub("#", line).split()) for line in text.splitlines()]
    return "".join(f"{line}\n" for line in lines if line)


@pytest.mark.proof("command line")
def test_the_commands_of_the_session_of_the_readme_print_what_it_shows(fresh: Served) -> None:
    differing = []
    for command in SESSION:
        done = hubledger(fresh.base_url, *shlex.split(command.line)[1:], COLUMNS="100")
        assert done.returncode == 0, done.stderr
        if not Command(command.line, steady(command.output)).shows(steady(done.stdout)):
            differing.append(f"$ {command.line}\n{done.stdout}")
    assert "\n".join(differing) == ""
    assert len(SESSION) == 4
