"""The capacity calculator: its sums, its steps from tier to tier, and the page that quotes it."""

import json
import re
import subprocess
import sys
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.functions_host.json_sections import parse_time_span
from tests.patience import allowed
from tests.repo.product import ROOT
from tools.capacity import limits
from tools.capacity.__main__ import main, report
from tools.capacity.limits import DATABASES, MB
from tools.capacity.sizing import Costs, Load, size, stored_bytes_per_day

PAGE = (ROOT / "docs" / "capacity.md").read_text(encoding="utf-8")
STEPS = (1_000, 10_000, 100_000, 1_000_000)


def test_small_events_are_bought_by_number_and_large_ones_by_bytes() -> None:
    assert size(Load(1_000, headroom=1)).hub_units == 1
    assert size(Load(1_001, headroom=1)).hub_units == 2
    assert size(Load(1_000, event_bytes=5_000, headroom=1)).hub_units == 5


def test_past_forty_units_the_tier_is_premium_and_past_its_largest_a_cluster() -> None:
    assert size(Load(40_000, headroom=1, log_bytes_per_event=1)).hub_tier is limits.STANDARD
    assert size(Load(40_001, headroom=1, log_bytes_per_event=1)).hub_tier is limits.PREMIUM
    assert size(Load(1_000_000, headroom=1, log_bytes_per_event=1)).hub_tier is limits.DEDICATED


def test_a_partition_of_the_standard_tier_takes_no_more_than_one_unit() -> None:
    assert size(Load(20_000, headroom=1)).partitions == 20


def test_the_database_is_the_cheapest_whose_log_takes_the_load_and_past_the_largest_it_is_split() -> None:
    assert str(size(Load(9_000, headroom=1)).database) == "GeneralPurpose 2 vCores"
    assert str(size(Load(9_001, headroom=1)).database) == "GeneralPurpose 4 vCores"
    assert size(Load(100_000, headroom=1)).shards == 1
    assert size(Load(100_001, headroom=1)).shards == 2


def test_instances_follow_the_processor_time_and_the_memory() -> None:
    heavy = Costs(cpu_seconds_per_event=1e-3)
    assert size(Load(8_000, headroom=1), heavy).instances == 8
    assert size(Load(8_000, headroom=1), heavy, memory=4096).instances == 4


def test_what_breaks_first_is_what_bears_least() -> None:
    assert size(Load(10_000, log_bytes_per_event=1)).breaks_first.name in ("throughput", "partitions")
    assert size(Load(59_999, headroom=1, event_bytes=1, log_bytes_per_event=600)).breaks_first.name == "database"


def test_a_day_of_rows_is_a_product() -> None:
    assert stored_bytes_per_day(Load(10, row_bytes_per_event=100)) == 86_400_000


@given(
    st.builds(
        Load,
        st.floats(1, 2e6),
        st.integers(1, 1_000_000),
        st.integers(1, 100_000),
        st.integers(1, 10_000),
        st.floats(1, 5),
    ),
    st.sampled_from(sorted(limits.INSTANCE_CORES)),
)
def test_whatever_is_bought_bears_the_load_unless_an_instance_per_partition_does_not(load: Load, memory: int) -> None:
    sizing = size(load, memory=memory)
    for part in sizing.parts:
        if part.name != "instances":
            assert part.bears >= load.events_per_second * 0.999999
    assert 1 <= sizing.instances <= min(sizing.partitions, limits.INSTANCES)


@pytest.mark.parametrize("events", [1_000, 3_000, 10_000, 16_000])
def test_azure_starts_as_many_instances_as_are_bought(events: int) -> None:
    """Azure divides the waiting events by the threshold of host.json, and a batch waits for a second."""
    hubs = json.loads((ROOT / "host.json").read_text(encoding="utf-8"))["extensions"]["eventHubs"]
    threshold, wait = hubs["targetUnprocessedEventThreshold"], parse_time_span(hubs["maxWaitTime"]).total_seconds()
    assert threshold * Costs().cpu_seconds_per_event <= wait, "one instance would not keep up with what waits for it"
    assert ceil(events * wait / threshold) <= size(Load(events)).instances


def row_of(events: int) -> str:
    """Return the row of the page's table for a load."""
    text = report(size(Load(events)))
    parts = dict(re.findall(r"^  (\w+): +(.+)$", text, re.MULTILINE))
    (first,) = re.findall(r"^breaks first: (.+?);", text, re.MULTILINE)
    names = ("database", "throughput", "partitions", "instances")
    return f"| {events:,} | {' | '.join(parts[name] for name in names)} | {first} |"


def test_the_page_quotes_the_calculator() -> None:
    assert report(size(Load(STEPS[1]))) in PAGE
    assert [row for row in map(row_of, STEPS) if row not in PAGE] == []


def test_the_page_names_what_the_calculator_counts_with() -> None:
    costs = Costs()
    assert f"{costs.cpu_seconds_per_event * 1e6:.0f} µs" in PAGE
    assert not re.search(r"\bTBD\b|\?\?\?", PAGE)


def test_the_command_prints_a_sizing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["12_000", "--bytes", "400", "--memory", "4096"]) == 0
    assert "12,000 events/s of 400 B" in capsys.readouterr().out


@pytest.mark.parametrize(
    "wrong",
    [
        ["0"],
        ["x"],
        ["-1"],
        ["nan"],
        ["1e13"],
        ["10", "--partitions", "1e3"],
        ["10", "--bytes", "0"],
        ["10", "--memory", "1"],
        [],
    ],
)
def test_wrong_figures_are_refused(wrong: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(wrong)
    assert ended.value.code == 2


def test_a_text_is_refused_in_a_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong, words in (
        (["many"], "a number, not 'many'"),
        (["1", "--partitions", "1e3"], "a whole number, not '1e3'"),
    ):
        with pytest.raises(SystemExit):
            main(wrong)
        assert capsys.readouterr().err.splitlines()[-1].endswith(f"must be {words}")


def test_the_telemetry_of_shards_is_that_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["1_000_000"]) == 0
    shards = size(Load(1_000_000)).shards
    assert f"telemetry a day of each of {shards} shards" in capsys.readouterr().out


def test_the_page_has_the_load_that_each_database_carries() -> None:
    load = Load(0)
    rows = [
        f"| {one} | {one.log_bytes_per_second / MB:,.0f} MB/s | {carried:,.0f} | {carried / load.headroom:,.0f} |"
        for one in DATABASES
        for carried in [one.log_bytes_per_second / load.log_bytes_per_event]
    ]
    assert len(rows) >= 6 and [row for row in rows if row not in PAGE] == []


@pytest.mark.parametrize("words", [["tools.capacity", "25_000"], ["tools.capacity.aggregation", "50_000_000"]])
def test_a_python_without_any_package_computes_it(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-m", *words], cwd=ROOT, capture_output=True, text=True, timeout=allowed(60), check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
