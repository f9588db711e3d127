"""The reference in docs/cli.md, out of the help of every command. `python -m tests.repo.cli_page` writes it again."""

import re
from typing import Any

import click
import typer.main

from hubledger.cli.commands import app
from hubledger.cli.operate.commands import GROUPS, SINGLE
from tests.repo.product import ROOT

PAGE = ROOT / "docs" / "cli.md"
MARK = "<!-- Out of the help of every command, written by `python -m tests.repo.cli_page`. -->\n"
# Options of nearly all commands, with the beginning of their help; the page has them once, above the reference.
COMMON = {"--url URL": "The app's address; default: ", "--json": "Print the app's ", "--no-color": "Print without "}
NAMES = [*SINGLE, "use", *(f"{group} {name}" for group, (_, own) in GROUPS.items() for name in own)]


def row(name: str) -> str:
    """Return the row of a command. Options that it needs are part of the call, also a reason: only a terminal asks."""
    command: Any = typer.main.get_command(app)
    for word in name.split():
        command = command.commands[word]
    context = click.Context(command)
    records = [(one, *one.get_help_record(context)) for one in command.params if one.param_type_name == "option"]
    own = [(one, head) for one, head, text in records if not text.startswith(COMMON.get(head, "\0"))]
    pieces = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    needed = [(one, head) for one, head in own if one.required or one.name == "reason"]
    arguments = [re.sub(r"\{(.*?)\}(?:\.\.\.)?|\[(\[.*\]\.\.\.)\]\.\.\.", r"\1\2", piece) for piece in pieces]
    call = " ".join([name, *arguments, *(head for _, head in needed)])
    options = ", ".join(f"`{max(one.opts, key=len)}`" for one, head in own if (one, head) not in needed)
    effect = re.split(r"(?<=\.) ", " ".join(command.help.split()))[0]
    return f"| `{_cell(call)}` | {_cell(effect)} | {options} |"


def written() -> str:
    head, _, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    table = ["| command | effect | options |", "|---|---|---|", *map(row, NAMES)]
    return f"{head}{MARK}\n" + "\n".join([*table, ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
