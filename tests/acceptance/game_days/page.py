"""docs/runbook.md as a reader takes it: sections, their commands, and the words that stand for something else."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tests.repo.product import ROOT

PAGE = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
_HEADING = re.compile(r"^## (.+)$", re.M)
_BLOCK = re.compile(r"^ *```sh\n(.*?)^ *```$", re.S | re.M)
PLACEHOLDER = re.compile(r"(?<![$\w])[A-Z]{3,}\b(?!_)")  # no variable of the shell


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page."""

    title: str
    text: str

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands of its blocks, without comments."""
        lines = "\n".join(_BLOCK.findall(self.text)).replace("\\\n", " ").splitlines()
        return tuple(re.sub(r"\s+# .*$", "", line).strip() for line in lines if line.strip())


_PIECES = _HEADING.split(PAGE)[1:]
SECTIONS: Mapping[str, Section] = {
    title: Section(title, text) for title, text in zip(_PIECES[::2], _PIECES[1::2], strict=True)
}
