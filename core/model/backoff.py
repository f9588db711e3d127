"""Exponential backoff with full jitter: how long a letter pauses before its next attempt. Chance is passed in."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Backoff:
    """The longest pause is `base` after the first attempt, `factor` times as long after each further one, up to
    `ceiling`; after `attempts` there is none."""

    base: timedelta = timedelta(seconds=30)
    ceiling: timedelta = timedelta(hours=1)
    attempts: int = 8
    factor: float = 2.0

    def longest(self, attempts: int) -> timedelta:
        """The longest pause after so many attempts, the last one included; fewer than one count as one."""
        if not self.base:
            return self.base
        try:
            growth = self.factor ** (max(attempts, 1) - 1)
        except OverflowError:
            return self.ceiling
        seconds = self.base.total_seconds() * growth
        return timedelta(seconds=seconds) if seconds < self.ceiling.total_seconds() else self.ceiling

    def pause(self, attempts: int, chance: float) -> timedelta:
        """A pause anywhere from none to the longest, as chance (0 to 1) has it: letters that failed together part."""
        return self.longest(attempts) * chance

    def is_spent(self, attempts: int) -> bool:
        """Whether so many attempts were all there are."""
        return attempts >= self.attempts
