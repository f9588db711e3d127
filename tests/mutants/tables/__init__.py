"""All mutants: a text for each part of the product.

`= file` and `~ test` hold for the bugs below them. A bug is a sentence, the lines to replace (`-`), and the wrong
lines (`+`). A mark alone is an empty line, or after the last line its end.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mutant:
    """A bug with a name. `old` occurs once in the file `path`. One of `tests` must fail: arguments of pytest."""

    name: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.path}, mutant '{self.name}'"

    @property
    def subject(self) -> str:
        return "/".join(self.path.split("/")[:-1][:2])

    def planted(self, text: str) -> str:
        """Return the file's text with the bug. Raises ValueError unless the text to replace occurs once."""
        found = text.count(self.old)
        if found != 1:
            raise ValueError(f"the file has this text {found} times, not once: {self.old!r}")
        return text.replace(self.old, self.new)


def mutants_of(text: str) -> Iterator[Mutant]:
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


PARTS = sorted(Path(__file__).parent.glob("*.txt"))
MUTANTS = tuple(mutant for part in PARTS for mutant in mutants_of(part.read_text(encoding="utf-8")))
