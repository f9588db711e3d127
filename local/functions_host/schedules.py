"""Compute when a timer is due: NCRONTAB of six fields (five: without seconds) or a TimeSpan, in UTC.

Source: NCrontab's `CrontabSchedule` (day of month AND day of week, unlike cron) and WebJobs' `TimerSchedule`.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from croniter import croniter

from local.functions_host.time_spans import parse_time_span


class Schedule(Protocol):
    """A rule that gives the next instant."""

    def next_after(self, instant: datetime) -> datetime:
        """Return the first instant of the schedule after `instant` (aware UTC)."""


@dataclass(frozen=True, slots=True)
class Every:
    """A TimeSpan: a fixed interval after the last run."""

    interval: timedelta

    def next_after(self, instant: datetime) -> datetime:
        """Return the instant `interval` later."""
        return instant + self.interval


@dataclass(frozen=True, slots=True)
class Cron:
    """An NCRONTAB expression of five or six fields."""

    expression: str
    has_seconds: bool

    def next_after(self, instant: datetime) -> datetime:
        """Return the next match."""
        rule = croniter(self.expression, instant, second_at_beginning=self.has_seconds, day_or=False)
        return rule.get_next(datetime)


def parse_schedule(text: str) -> Schedule:
    """Read a timer's schedule; raise ValueError when it is neither form."""
    fields = text.split()
    if len(fields) == 1:
        interval = parse_time_span(text)
        if interval <= timedelta(0):
            raise ValueError(f"{text!r} must be longer than zero")
        return Every(interval)
    has_seconds = len(fields) == 6
    if len(fields) not in (5, 6) or not croniter.is_valid(text, second_at_beginning=has_seconds):
        raise ValueError(f"{text!r} is neither NCRONTAB of five or six fields nor a TimeSpan hh:mm:ss")
    return Cron(text, has_seconds)
