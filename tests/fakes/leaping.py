"""A clock of the hooks on which a pause takes no time."""


class Leaping:
    """The time in seconds. A pause leaps far, so that a wait asks few times until its deadline."""

    def __init__(self, leap: float = 300.0) -> None:
        self.at = 0.0
        self._leap = leap

    def monotonic(self) -> float:
        return self.at

    def sleep(self, seconds: float, /) -> None:
        self.at += seconds * self._leap
