"""The arithmetic of the aggregation's costs, and the page that quotes it."""

import re
from datetime import timedelta

import pytest

from core.model.aggregates import aggregate_table
from examples.home_security.aggregates.home_activity import HomeActivity
from tests.repo.product import ROOT
from tools.capacity.aggregation import KEPT, WINDOW, WINDOW_BYTES, Aggregating, Pace, main, report
from tools.capacity.sizing import Load

PAGE = (ROOT / "docs" / "aggregation-costs.md").read_text(encoding="utf-8")
QUOTED = (*(Aggregating(number) for number in (1e6, 1e8, 1e9)), Aggregating(1e6, Pace(interval=3_600)))


def row_of(one: Aggregating) -> str:
    """Return the row of the page's table for a load and the pace of its runs."""
    parts = dict(re.findall(r"^  ([\w ]+): +(.+)$", report(one), re.MULTILINE))
    results = {name: text.rpartition(" = ")[2] for name, text in parts.items()}
    run, log, lake = results["run"], results["log"].partition(",")[0], results["lake"].partition(", without")[0]
    database = parts["database"].partition(" for both")[0]
    cells = (run, results["job"], results["commit"], results["cores"], log, database, results["readings"], lake)
    return f"| {one.readings:,.0f} | {one.pace.interval:,} s | {' | '.join(cells)} |"


def test_the_page_quotes_the_calculator() -> None:
    assert [row for row in map(row_of, QUOTED) if row not in PAGE] == []


def test_the_page_names_the_figures_that_the_calculator_counts_with() -> None:
    pace, load = Pace(), Load(0)
    assert pace.added_per_second == pace.read_per_second
    assert pace.log_bytes_per_window == load.log_bytes_per_event
    named = (
        f"{pace.added_per_second:,.0f}/s of readings read and added up",
        f"{pace.staged_per_second:,.0f}/s of windows staged",
        f"{pace.session_seconds:g} s for the start of a session",
        f"{pace.committed_per_second:,.0f}/s of windows committed",
        f"{pace.log_bytes_per_window:,} B of log for a reading or a window",
        f"{load.row_bytes_per_event} B for the row of a reading",
        f"the row of a window has {WINDOW_BYTES} B",
        f"{pace.rows_limit:,} x 288 runs = {Aggregating(1e9).ends_at:,.0f} readings a day",
        f"288 runs take {288 * 120 / 3_600 * pace.cluster_cores:.0f} core hours",
        f"24 runs take {24 * 120 / 3_600 * pace.cluster_cores:.0f}.",
        f"({180 * pace.committed_per_second:,.0f} windows)",
    )
    page = " ".join(PAGE.split())
    assert [one for one in named if one not in page] == []


def test_the_levels_are_those_of_home_activity() -> None:
    of = aggregate_table(HomeActivity)
    assert timedelta(seconds=WINDOW) == of.window
    assert [windows for _, windows, _ in KEPT] == [level.window // of.window for level in of.levels]


def test_a_run_touches_a_window_of_each_level_and_sensor_and_more_windows_when_it_is_longer() -> None:
    assert Aggregating(1_440_000).windows == 3 * 1_000
    assert Aggregating(1_440_000, Pace(interval=3_600)).windows == (4 + 1 + 1) * 1_000
    assert Aggregating(1_440_000).new_windows == 96_000


def test_a_job_is_its_start_and_its_work() -> None:
    pace = Pace(session_seconds=10, read_per_second=100, added_per_second=50, staged_per_second=1, interval=86_400)
    one = Aggregating(1_440, pace)
    assert (one.rows, one.windows) == (1_440, 96 + 24 + 1)
    assert one.job_seconds == pytest.approx(10 + 14.4 + 28.8 + 121)
    assert one.core_hours == pytest.approx(2 * one.job_seconds / 3_600)
    assert one.log_rate == pytest.approx(121 * 1_000 / 86_400)


def test_the_limit_is_that_of_rows_or_of_time() -> None:
    assert Aggregating(1e9, Pace(rows_limit=1_000)).ends_at == 288_000
    slow = Aggregating(1e9, Pace(read_per_second=1_000))
    assert slow.ends_at < Aggregating(1e9).ends_at
    assert Aggregating(slow.ends_at, slow.pace).job_seconds == pytest.approx(300)
    assert Aggregating(1e6, Pace(interval=1)).ends_at == 0


def test_the_command_prints_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["1_000_000", "--interval", "3600"]) == 0
    assert capsys.readouterr().out.strip() == report(QUOTED[3])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["0"], "argument readings: must be above 0 and below 1,000,000,000,000, not '0'"),
        (["-1.5"], "argument readings: must be above 0 and below 1,000,000,000,000, not '-1.5'"),
        (["nan"], "argument readings: must be above 0 and below 1,000,000,000,000, not 'nan'"),
        (["1_000", "--interval", "0"], "argument --interval: must be at least 1, not '0'"),
    ],
)
def test_the_command_refuses_a_load_of_which_there_are_no_figures(
    capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert reason in capsys.readouterr().err
