"""The reference in docs/cli.md: the help of every command. `python -m tests.repo.cli_page` writes it again."""

import os
import subprocess
import sys

from hubledger.cli.operate.all import GROUPS, SINGLE
from tests.repo.product import ROOT

PAGE = ROOT / "docs" / "cli.md"
MARK = "<!-- The help of every command, written by `python -m tests.repo.cli_page`. -->\n"
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
    """Return the help of every command, as a terminal of 100 columns shows it."""
    done = subprocess.run(
        [sys.executable, "-c", _PRINT],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
        input="\n".join(names()),
        capture_output=True,
        text=True,
        check=True,
    )
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.rstrip().splitlines())


def written() -> str:
    """Return the page with the present reference."""
    head, _, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    return f"{head}{MARK}\n{reference()}"


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
