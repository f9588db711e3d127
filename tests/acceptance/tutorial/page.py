"""A page as a list of steps: files to write, changes to apply, and commands with the output that the page shows."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BLOCK = re.compile(r"^(?:```(\w+)(?: ([\w./]+))?\n(.*?)^```|(## )[^\n]*)$", re.S | re.M)
# Figures of a machine and of a moment: seconds, rates, ports and numbers of tests. They are one sign in the page and in
# the output.
_VOLATILE = re.compile(
    r"[\d.,]+ ?s\b|\d+ passed in .*|[\d,]+ events/s|\"(?:seconds|events_per_second)\": [\d.]+|localhost:\d+"
)
_COUNTS = re.compile(r"[\d,]+")  # of a run that does not end
ANY = "..."


@dataclass(frozen=True, slots=True)
class Written:
    """A file that the reader writes."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Changed:
    diff: str


@dataclass(frozen=True, slots=True)
class Command:
    line: str
    output: str

    @property
    def is_endless(self) -> bool:
        return self.line.startswith(("make run", "make serve"))

    def shows(self, output: str) -> bool:
        lines = [rf"{re.escape(line)}\n" if line != ANY else r"(?:.*\n)*?" for line in self._steady(self.output)]
        found = "".join(f"{line}\n" for line in self._steady(output))
        return re.fullmatch("".join(lines) + (r"(?:.*\n)*" if self.is_endless else ""), found) is not None

    def _steady(self, text: str) -> list[str]:
        volatile = _COUNTS if self.is_endless else _VOLATILE
        return [line if line == ANY else volatile.sub("#", line).rstrip() for line in text.splitlines() if line.strip()]


@dataclass(frozen=True, slots=True)
class Section:
    """The begin of a section: a reader ends with Ctrl-C what runs."""


Step = Written | Changed | Command | Section


def steps_of(page: str) -> Iterator[Step]:
    """Yield the steps of a page in their order. A block of plain text is not run."""
    for kind, name, text, heading in _BLOCK.findall(page):
        if heading:
            yield Section()
        elif name:
            yield Written(name, text)
        elif kind == "diff":
            yield Changed(text)
        elif kind == "console":
            for line, output in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", text, re.M):
                yield Command(line, output)
