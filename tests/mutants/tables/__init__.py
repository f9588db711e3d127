"""All mutants: a text for each part of the product.

`= file` and `~ test` hold for the bugs below them. A bug is a sentence, the lines to replace (`-`), and the wrong
lines (`+`). A mark alone is an empty line, or after the last line its end.
"""

from collections.abc import Iterator
from pathlib import Path

from tests.mutants.mutant import Mutant

PARTS = (
    "ingest", "journal", "stops", "letters", "held", "tasks", "values", "replay", "ledger", "pipeline", "store",
    "engines", "around",
)  # fmt: skip


def mutants_of(text: str) -> Iterator[Mutant]:
    """Yield the mutants of a table."""
    path, tests, name, was, now = "", list[str](), "", list[str](), list[str]()
    for line in [*text.splitlines(), "# the end"]:
        mark, content = line[:1], line[2:]
        if mark == "-":
            was.append(content)
        elif mark == "+":
            now.append(content)
        else:
            if now:
                yield Mutant(name, path, "\n".join(was), "\n".join(now), tuple(tests))
            name, was, now = line, [], []
            if mark == "=":
                path, tests = content, []
            elif mark == "~":
                tests.append(content)


MUTANTS = tuple(
    mutant
    for part in PARTS
    for mutant in mutants_of(Path(__file__).with_name(f"{part}.txt").read_text(encoding="utf-8"))
)
