"""`python3 -m tests.acceptance.tutorial`: a newcomer follows the pages on a bare machine, as `make check-fresh` has it.

The pages are README.md, docs/your-own-events.md, docs/your-own-aggregate.md and docs/run.md. Their commands are read
from them, and run with nothing but what these commands install: this program itself needs only Python.
"""

import re
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.acceptance.tutorial.page import Command, steps_of
from tests.acceptance.tutorial.reader import USUAL_PORT, Reader
from tests.patience import allowed

ROOT = Path(__file__).parents[3]
OURS = "bin/hubledger"
# The commands of docs/run.md: for a target how it is called here, the exit code, and a text of its output.
CALLED: Mapping[str, tuple[tuple[str, int, str], ...]] = {
    "help": (("make help", 0, "make demo"),),
    "setup": (("make setup", 0, "next: bin/hubledger new"),),
    "demo": (
        ("make demo EVENTS=2000 KILL=1 UNDELIVERABLE=5 HOMES=100 RATE=1000 SEED=2", 0, "Proved: each of"),
        ("make demo EVENTS=2000 CHAOS=1 LIKE_AZURE=1", 0, "Proved: each of"),
        ("make demo EVENTS=2000 IOT=1", 0, "Proved: each of"),
        ("make demo EVENTS=2000 WORKERS=2 TRANSFORM=flight_info", 0, "Proved: each of"),
        ("make demo EVENTS_FROM=bad.jsonl", 2, "TRANSFORM: name the room of the events in bad.jsonl: apps.orders"),
        ("make demo TRANSFORM=apps.orders EVENTS_FROM=bad.jsonl EVENTS=1 KEY=order_id", 0, "1 dead-lettered"),
        (
            "make demo TRANSFORM=zzz",
            2,
            "TRANSFORM: there is no room zzz: name home_security, flight_info or apps.orders",
        ),
        ("make demo AGGREGATE=1", 2, "Java is missing"),
        ("make demo STORE=abc", 2, "demo: STORE: the store is no ODBC string"),
    ),
    "serve": (("make serve EVENTS=5", 2, "EVENTS: make serve does not read it"),),
    "check-room": (
        ("make check-room TRANSFORM=orders", 0, " passed in "),
        ("make check-room TRANSFORM=zzz", 2, "check-room: there is no room zzz"),
    ),
    "simulate": (("make simulate SEEDS=20 FIRST=17", 0, "20"),),
    "explore": (("make explore ONLY=remembers", 0, "2 of 2 as they should be"),),
    "house": (("make house", 0, "core"),),
    "test-sqlserver": (("make test-sqlserver", 0, "skipped, MSSQL_CONNECTION names no T-SQL server"),),
    "test-spark41": (("make test-spark41", 2, "Java is missing"),),
    "check-bicep": (("make check-bicep", 0, "bicep is not on the PATH"),),
    "func": (("make func", 2, "docker is missing"),),
    "azurite": (("make azurite", 2, "npm is missing"),),
    "javascript": (("make javascript", 2, "npm is missing"),),
    "docs": (("make docs", 0, "the site is in .local-run/site/index.html"),),
    "clean": (("make clean", 0, "removing .local-run"),),
}
BEGUN = ("serve", "run")  # until Ctrl-C
LEFT_OUT = {
    "check": ".ci/run runs it",
    "test": "5 minutes, and .ci/run runs it",
    "test-all": ".ci/run runs it",
    "test-spark": "it needs Java",
    "soak": "half an hour",
    "format": "it changes files",
    "check-fresh": "this is it",
    "check-deployed": "a bare Debian of its own",
    "check-infra": ".ci/run runs it",
    "real-host": "tests/acceptance/real_host runs it",
    "smoke": "tests/acceptance/postdeploy runs it",
    "scriptdom": "45 MB for the syntax gate of make test",
    "screenshots": "it needs Chromium",
    "mutants": "hours",
    "bench": "half an hour",
    "bench-full": "hours",
    "bench-readme": "it writes pages",
}
SHOWN, WIDTH = 3, 160  # lines of an output that are printed, and characters of a line
READY = re.compile(r"^(?:ready|pages): http://localhost:\d+/api/ops ", re.M)


class Walk:
    """The commands of a newcomer, and those that did something else than the pages say."""

    def __init__(self) -> None:
        self.reader, self.wrong, self.commands = Reader(ROOT), list[str](), 0
        self._began = time.monotonic()

    def say(self, line: str, is_command: bool = True) -> None:
        self.commands += is_command
        print(f"{time.monotonic() - self._began:6.1f} s  {'$ ' if is_command else ''}{line}", flush=True)

    def show(self, output: str) -> None:
        for line in [one for one in output.splitlines() if one.strip()][-SHOWN:]:
            print(f"          {line[:WIDTH]}", flush=True)

    def type(self, line: str, code: int = 0, shows: str = "") -> str:
        self.say(line)
        output = self.reader.run(line)
        self.show(output)
        ended = int((re.findall(r"^exit code (\d+)$", output, re.M) or ["0"])[-1])
        if ended != code or shows not in output or "Traceback" in output:
            self.wrong.append(f"$ {line}\nwanted: exit code {code} and {shows!r}\n{output}")
        return output

    def begin(self, line: str) -> None:
        self.say(f"{line}   until Ctrl-C")
        self.reader.begin(line)
        self._until(lambda: READY.search(self.reader.shown) and self.answers("/api/status"), line)

    def answers(self, path: str) -> str:
        """Return the body at an address of the app that runs. Empty where it does not answer with 200."""
        try:
            with urllib.request.urlopen(f"http://localhost:{self.reader.port}{path}", timeout=allowed(30)) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""

    def must_answer(self, path: str) -> None:
        self.say(f"GET {path}", is_command=False)
        self._until(lambda: self.answers(path), path)

    def _until(self, holds: Callable[[], object], what: str) -> None:
        until = time.monotonic() + allowed(180)
        while not holds():
            if time.monotonic() > until:
                self.wrong.append(f"{what}: not ready:\n{self.reader.shown}")
                return
            time.sleep(0.5)


def without_packages(walk: Walk) -> None:
    """Run what a command without its packages names in place of make. What make installs follows on the front page."""
    said = walk.type(f"{OURS} status", 1, "typer is missing: run `make setup`, or `")
    walk.type("".join(re.findall(r", or `(.+)`, in ", said)))
    walk.type(f"{OURS} status", 2, "which app?")
    walk.type(f"{OURS} try", 1, "msgspec is missing: run `make setup`, or `")


def front_page(walk: Walk) -> None:
    """Run the demo of README.md, and its session on the demo's app, with a cause and a number of this app."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = [step for step in steps_of(text) if isinstance(step, Command)]
    walk.begin(f"KEEP=1 {commands[0].line}")
    seen = row_of("".join(one.output for one in commands))
    have = row_of(walk.type(f"COLUMNS=160 {OURS} letters causes --status exhausted"))
    for one in commands[1:]:
        if one.line.startswith("make "):
            walk.say(f"{one.line}   left out: {LEFT_OUT[one.line.split()[1]]}", is_command=False)
            continue
        line = one.line.replace(f" {seen[0]} ", f" {have[0][:6]} ")
        walk.type(line.replace(f" {seen[1]} {seen[2]}", f" {have[1]} {have[2]}"))
    walk.reader.stop()


def row_of(table: str) -> tuple[str, str, str]:
    found = re.search(r"^ \w.* ([0-9a-f]{4,}) +(\d+) / ([\d,]+) ", table, re.M)
    return (found[1], found[2], found[3]) if found else ("none", "none", "none")


def page(walk: Walk, name: str) -> None:
    """Take each step of a page. Its outputs must be those that it shows."""
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    for step in steps_of(text):
        if isinstance(step, Command):
            walk.say(step.line)
        walk.reader.take(step)
        if isinstance(step, Command):
            walk.show(walk.reader.last)
        if isinstance(step, Command) and step.is_endless:
            for path in re.findall(rf"<http://localhost:{USUAL_PORT}(/[^>]+)>", text):
                walk.must_answer(path)
    walk.reader.stop()
    walk.wrong += walk.reader.differing
    walk.reader.differing.clear()


def page_of_commands(walk: Walk) -> None:
    text = (ROOT / "docs" / "run.md").read_text(encoding="utf-8")
    for target, reason in LEFT_OUT.items():
        walk.say(f"make {target}   left out: {reason}", is_command=False)
    walk.say("docker compose ...   left out: a bare machine has no Docker", is_command=False)
    for target, calls in CALLED.items():
        if target == "clean":
            continue
        for line, code, shows in calls:
            walk.type(line, code, shows)
        if target == "demo":
            walk.begin("make serve")
            walk.type(f"{OURS} status")
            walk.reader.stop()
    walk.begin("make run")
    for path in re.findall(r"`(/api/[^`]+)`", text):
        walk.must_answer(path)
        walk.must_answer(f"{path}/activity")
    for line in re.findall(rf"`({OURS} [^`]+)`", text):
        walk.type(line.replace(" --watch", ""))
    walk.reader.stop()
    for line, code, shows in CALLED["clean"]:
        walk.type(line, code, shows)


def main() -> int:
    walk = Walk()
    without_packages(walk)
    front_page(walk)
    page(walk, "your-own-events.md")
    page(walk, "your-own-aggregate.md")
    page_of_commands(walk)
    walk.say(f"{walk.commands} commands, {len(walk.wrong)} not as the pages say", is_command=False)
    print("\n".join(walk.wrong), flush=True)
    return 1 if walk.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
