"""The reference in docs/cli.md: the help of every command. `python -m tests.repo.cli_page` writes it again."""

import os
import re
import subprocess
import sys

from hubledger.cli.operate.all import GROUPS, SINGLE
from tests.repo.product import ROOT

PAGE = ROOT / "docs" / "cli.md"
MARK = "<!-- The help of every command, written by `python -m tests.repo.cli_page`. -->\n"
COMMON = {  # options of nearly all commands, with their help; the page has them once, above the reference
    "--url": "--url URL The app's address; default: HUBLEDGER_URL, the context of `use`, or the local run.",
    "--json": "--json Print the app's answers as JSON, one a line.",
    "--no-color": "--no-color Print without colour, as with NO_COLOR.",
    "--help": "--help Show this message and exit.",
}
_ENTRY = re.compile(r"^  -.*\n(?:   .*\n)*", re.MULTILINE)
_PRINT = """
import sys
sys.argv[0] = "hubledger"
from hubledger.cli.main import main
for name in sys.stdin.read().splitlines():
    print(f"### {name}\\n\\n```text", flush=True)
    main([*name.split(), "--help"])
    print("```\\n", flush=True)
"""


def names() -> list[str]:
    """Every command of an operator."""
    return [*SINGLE, "use", *(f"{group} {name}" for group, (_, own) in GROUPS.items() for name in own)]


def reference() -> str:
    """Return the own help of every command, as a terminal of 100 columns shows it."""
    done = subprocess.run(
        [sys.executable, "-c", _PRINT],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
        input="\n".join(names()),
        capture_output=True,
        text=True,
        check=True,
    )
    help_texts = "".join(f"{line.rstrip()}\n" for line in done.stdout.rstrip().splitlines())
    return without_common(help_texts)


def without_common(help_texts: str) -> str:
    """Return help texts without the options that stand above the reference; a different text of such an option stays."""

    def kept(entry: re.Match[str]) -> str:
        return "" if " ".join(entry[0].split()) in COMMON.values() else entry[0]

    return _ENTRY.sub(kept, help_texts).replace("Options:\n\n", "")


def written() -> str:
    """Return the page with the present reference."""
    head, _, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    return f"{head}{MARK}\n{reference()}"


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
