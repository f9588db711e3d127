"""Exponential backoff with full jitter: the pause of a letter before its next attempt. The caller passes chance in."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Backoff:
    """The terms of the pauses. The longest pause is `base` after the first attempt, and `factor` times as long after
    each further attempt, up to `ceiling`. `attempts` is the number of attempts in all."""

    base: timedelta = timedelta(seconds=30)
    ceiling: timedelta = timedelta(hours=1)
    attempts: int = 8
    factor: float = 2.0

    def longest(self, attempts: int) -> timedelta:
        """Return the longest pause after so many attempts; fewer than one count as one."""
        if not self.base:
            return self.base
        try:
            growth = self.factor ** (max(attempts, 1) - 1)
        except OverflowError:
            return self.ceiling
        seconds = self.base.total_seconds() * growth
        return timedelta(seconds=seconds) if seconds < self.ceiling.total_seconds() else self.ceiling

    def pause(self, attempts: int, chance: float) -> timedelta:
        """Return a pause: the longest times `chance` (0 to 1), so that letters are not all retried at once."""
        return self.longest(attempts) * chance

    def is_spent(self, attempts: int) -> bool:
        return attempts >= self.attempts
