"""A planted bug: a small replacement in one file, and the tests of which at least one must fail."""

from dataclasses import dataclass

Bug = tuple[str, str, str]  # a sentence about the bug, the text to replace, and the wrong text


@dataclass(frozen=True, slots=True)
class Mutant:
    """A bug with a name. `old` occurs once in the file `path`; `tests` are arguments of pytest."""

    name: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.path}, mutant '{self.name}'"

    @property
    def subject(self) -> str:
        """The room of the file: "core/ingest", "sql/queries"."""
        return "/".join(self.path.split("/")[:-1][:2])

    def planted(self, text: str) -> str:
        """Return the file's text with the bug; ValueError unless the text to replace occurs once."""
        found = text.count(self.old)
        if found != 1:
            raise ValueError(f"the file has this text {found} times, not once: {self.old!r}")
        return text.replace(self.old, self.new)


def in_file(path: str, tests: str, *bugs: Bug) -> tuple[Mutant, ...]:
    """Return the mutants of one file, which share their tests; white space separates the tests."""
    return tuple(Mutant(name, path, old, new, tuple(tests.split())) for name, old, new in bugs)
