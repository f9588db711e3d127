"""The reference in docs/cli.md, out of the help of every command. `python -m tests.repo.cli_page` writes it again."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from hubledger.cli.operate.commands import GROUPS, SINGLE
from tests.repo.product import ROOT

PAGE = ROOT / "docs" / "cli.md"
MARK = "<!-- Out of the help of every command, written by `python -m tests.repo.cli_page`. -->\n"
COMMON = {  # options of nearly all commands, with their help; the page has them once, above the reference
    "--url": "--url URL The app's address; default: HUBLEDGER_URL, the context of `use`, or the local run.",
    "--json": "--json Print the app's answers as JSON, one a line.",
    "--no-color": "--no-color Print without colour, as with NO_COLOR.",
    "--help": "--help Show this message and exit.",
}
_HELP = re.compile(
    r"Usage: hubledger (?P<usage>.*?)\n\n(?P<text>.*?)(?:\n\nArguments:\n.*?)?"
    r"\n\nOptions:\n(?P<options>.*?)\n\n  Example: ",
    re.DOTALL,
)
_ENTRY = re.compile(r"^  -.*(?:\n   .*)*", re.MULTILINE)
_PRINT = """
import sys
from hubledger.cli.main import main
sys.argv[0] = "hubledger"
for name in sys.stdin.read().splitlines():
    main([*name.split(), "--help"])
    print("\\f", flush=True)
"""


@dataclass(frozen=True, slots=True)
class Command:
    """A command with its arguments, the first sentence of its text, and the help of its own options."""

    call: str
    effect: str
    options: Mapping[str, str]

    @property
    def name(self) -> str:
        return " ".join(word for word in self.call.split() if word.islower())

    @property
    def row(self) -> str:
        """The row of the command; options that it needs are part of the call."""
        needed = [head for head, meaning in self.options.items() if meaning.endswith("[required]")]
        others = ", ".join(f"`{name_of(head)}`" for head in self.options if head not in needed)
        return f"| `{_cell(' '.join([self.call, *needed]))}` | {_cell(self.effect)} | {others} |"


def name_of(head: str) -> str:
    return next(word for word in head.split() if word.startswith("--"))


def command_of(help_text: str) -> Command:
    found = _HELP.search(help_text)
    assert found is not None, help_text
    call, text = (" ".join(found[part].split()) for part in ("usage", "text"))
    options = {}
    for entry in _ENTRY.findall(found["options"]):
        if " ".join(entry.split()) not in COMMON.values():
            head, _, meaning = entry.strip().partition("  ")
            options[head] = " ".join(meaning.split())
    call = call.replace(" [OPTIONS]", "").replace("[[PARTITION/NUMBER]...]...", "[PARTITION/NUMBER]...")
    call = re.sub(r"\{(\w+)(?:\.\.\.)?\}", r"\1", call.replace("{PARTITION NUMBER}...", "PARTITION NUMBER"))
    return Command(call, re.split(r"(?<=\.) ", text)[0], options)


def names() -> list[str]:
    return [*SINGLE, "use", *(f"{group} {name}" for group, (_, own) in GROUPS.items() for name in own)]


def reference() -> str:
    done = subprocess.run(
        [sys.executable, "-c", _PRINT],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
        input="\n".join(names()),
        capture_output=True,
        text=True,
        check=True,
    )
    commands = [command_of(text) for text in done.stdout.split("\f")[:-1]]
    table = ["| command | effect | options |", "|---|---|---|", *(one.row for one in commands)]
    return "\n".join([*table, ""])


def written() -> str:
    head, _, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    return f"{head}{MARK}\n{reference()}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
