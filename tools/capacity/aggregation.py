"""`python -m tools.capacity.aggregation READINGS`: costs and needs of the aggregation of so many readings a day.

The load is even: each kind of sensor of a home reports once a minute. `home_activity` adds its readings up by
15 minutes, hour and day.
"""

import argparse
from dataclasses import dataclass

from tools.capacity.arguments import positive, whole
from tools.capacity.limits import DAY, GB, MB
from tools.capacity.sizing import Load, size

MINUTE, WINDOW = 60, 900  # seconds between two readings of a sensor, and of a window
# A row of home_activity: header 4, nulls 4, texts 30, times 24, counts 40, run 8, slice 4, slot 2, row version 14.
WINDOW_BYTES = 130
KEPT = (("15 minutes", 1, 90), ("hour", 4, 730), ("day", 96, 3_650))  # level, windows of 15 minutes in it, days


@dataclass(frozen=True, slots=True)
class Pace:
    """The speeds that we measured on 2 cores, and the figures that we assume.

    `log_bytes_per_window` is assumed: a staged row, its deletion, and the window.
    """

    interval: int = 300
    session_seconds: float = 6
    read_per_second: float = 1e6
    added_per_second: float = 1e6
    staged_per_second: float = 178e3
    committed_per_second: float = 100e3
    log_bytes_per_window: int = 1_000
    parquet_bytes_per_window: int = 40
    cores: int = 2
    cluster_cores: int = 12
    rows_limit: int = 10_000_000


@dataclass(frozen=True, slots=True)
class Aggregating:
    """The aggregation of a number of readings a day."""

    readings: float
    pace: Pace = Pace()

    @property
    def runs(self) -> float:
        """The runs of a day."""
        return DAY / self.pace.interval

    @property
    def rows(self) -> float:
        """The readings of a run."""
        return self.readings / self.runs

    @property
    def windows(self) -> float:
        """The windows that a run touches: one for each sensor in each level, and more in a longer run."""
        sensors = self.readings / (DAY / MINUTE)
        return sensors * sum(max(1, self.pace.interval / (WINDOW * windows)) for _, windows, _ in KEPT)

    @property
    def new_windows(self) -> float:
        """The windows of 15 minutes that a day adds."""
        return self.readings / (WINDOW / MINUTE)

    @property
    def job_seconds(self) -> float:
        """The time of a job on 2 cores: start, read, add up, stage."""
        pace = self.pace
        work = self.rows / pace.read_per_second + self.rows / pace.added_per_second
        return pace.session_seconds + work + self.windows / pace.staged_per_second

    @property
    def core_hours(self) -> float:
        """The hours of a core that all jobs of a day take, start included."""
        return self.runs * self.job_seconds * self.pace.cores / 3600

    @property
    def log_rate(self) -> float:
        """The bytes a second that all windows add to the database's log."""
        return self.windows * self.runs * self.pace.log_bytes_per_window / DAY

    @property
    def ends_at(self) -> float:
        """The readings of a day above which runs fall behind: the limit of their rows, or of their time."""
        per_row = (self.job_seconds - self.pace.session_seconds) / self.rows
        by_time = max(0.0, self.pace.interval - self.pace.session_seconds) / per_row  # 0: no session starts in time
        return self.runs * min(self.pace.rows_limit, by_time)


def report(one: Aggregating) -> str:
    """Return the figures as text, each with its arithmetic."""
    pace, rate = one.pace, one.readings / DAY
    load = Load(rate, log_bytes_per_event=1_000 + round(one.log_rate / rate))  # with the share of the windows
    sizing, commit = size(load), one.windows / pace.committed_per_second
    added = sum(one.new_windows / windows for _, windows, _ in KEPT)
    shards = "" if sizing.shards == 1 else f"{sizing.shards} x "
    lines = [
        f"{one.readings:,.0f} readings a day, a run every {pace.interval:,} s",
        _line("rows", f"{one.readings:,.0f} / {DAY:,} s = {rate:,.1f}/s"),
        _line("run", f"{one.readings:,.0f} / {one.runs:,.0f} runs = {one.rows:,.0f} rows, {one.windows:,.0f} windows"),
        _line(
            "job",
            f"{pace.session_seconds:g} s + 2 x {one.rows:,.0f} / {MB:,}/s + {one.windows:,.0f} /"
            f" {pace.staged_per_second:,.0f}/s = {one.job_seconds:,.1f} s on {pace.cores} cores",
        ),
        _line("commit", f"{one.windows:,.0f} / {pace.committed_per_second:,.0f}/s = {commit:,.2f} s"),
        _line("cores", f"{one.runs:,.0f} x {one.job_seconds:,.1f} s x {pace.cores} / 3,600 = {one.core_hours:,.1f} h"),
        _line(
            "log",
            f"{one.windows:,.0f} x {one.runs:,.0f} x {pace.log_bytes_per_window:,} B / {DAY:,} s ="
            f" {one.log_rate / MB:,.3f} MB/s, beside {rate * 1_000 / MB:,.3f} MB/s of the readings",
        ),
        _line("database", f"{shards}{sizing.database} for both, with the headroom of capacity.md"),
        _line("readings", f"{_stored(one.readings, load.row_bytes_per_event)} in SQL"),
        *(_level(one, *level) for level in KEPT),
        _line("lake", f"{_stored(added, pace.parquet_bytes_per_window)}, without files that were replaced"),
        _line("ends", f"at {one.ends_at:,.0f} readings a day"),
    ]
    return "\n".join(lines)


def _level(one: Aggregating, name: str, windows: int, days: int) -> str:
    a_day = one.new_windows / windows * WINDOW_BYTES
    counted = f"{one.new_windows / windows:,.0f} windows a day x {WINDOW_BYTES} B"
    return _line(name, f"{counted} = {a_day / GB:,.3f} GB a day, {a_day * days / GB:,.1f} GB for {days:,} days")


def _stored(rows: float, size: int) -> str:
    a_day = rows * size / GB
    return f"{rows:,.0f} x {size} B = {a_day:,.2f} GB a day, {365 * a_day:,.0f} GB a year"


def _line(name: str, text: str) -> str:
    return f"  {name + ':':<12}{text}"


def main(arguments: list[str] | None = None) -> int:
    """Print the figures of one load."""
    parser = argparse.ArgumentParser(prog="python -m tools.capacity.aggregation", description=__doc__)
    parser.add_argument("readings", type=positive, help="readings a day")
    parser.add_argument(
        "--interval", type=whole, default=Pace().interval, help="seconds between two runs (default 300)"
    )
    given = parser.parse_args(arguments)
    print(report(Aggregating(given.readings, Pace(interval=given.interval))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
