"""local/demo/aggregation.py: steps of the host until nothing is new, against a server that answers from a list."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.demo.aggregation import LOOKS, NoAggregate, NotAggregated, aggregate_all, aggregate_of_demo, rows_per_event
from local.feed.businesses import HOMES, domain_of_sample
from local.feed.sample import Line, Sample
from tests.local.listed_host import Host
from tests.local.shop import shop
from tests.rooms.found import outcomes_of, room_named

RUN: dict[str, Any] = {"number": 1, "attempt": 1, "status": "submitted", "failure": None}


@pytest.fixture
def host() -> Iterator[Host]:
    made = Host()
    yield made
    made.close()


def test_the_host_takes_steps_until_nothing_is_new(
    host: Host, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host.answers = [
        (503, {"detail": "the store is locked"}),
        (202, {"did": ["submitted"], "run": RUN}),
        (202, {"did": ["has nothing new"], "run": RUN}),
    ]
    aggregate_all(host.address, "home_activity", tmp_path, lambda _: None)
    assert host.posts == [("/api/aggregations", {"job": "home_activity"})] * 3
    lines = [line.partition("aggregating: ")[2] for line in capsys.readouterr().out.splitlines()]
    assert lines == ["503: {'detail': 'the store is locked'}", "run 1, attempt 1, submitted"]


def test_a_failed_run_ends_the_aggregation_with_its_reason_and_the_last_words_of_its_job(
    host: Host, tmp_path: Path
) -> None:
    (tmp_path / "spark" / "agg-r-1").mkdir(parents=True)
    (tmp_path / "spark" / "agg-r-1" / "err").write_text("no space left\n")
    host.answers = [(202, {"did": ["failed"], "run": {**RUN, "status": "failed", "failure": "5 attempts"}})]
    with pytest.raises(
        NotAggregated, match=r"run 1, attempt 1, failed: 5 attempts; the newest job's last lines:\n.*no space"
    ):
        aggregate_all(host.address, "home_activity", tmp_path, lambda _: None)


def test_a_run_is_awaited_as_long_as_its_job_logs_and_one_that_stands_still_is_given_up(
    host: Host, tmp_path: Path
) -> None:
    (tmp_path / "spark" / "agg-r-1").mkdir(parents=True)
    host.answers = [(202, {"did": ["waits"], "run": RUN})] * (2 * LOOKS + 9)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) <= LOOKS:
            with (tmp_path / "spark" / "agg-r-1" / "err").open("a") as log:
                log.write("a stage is done\n")

    with pytest.raises(NotAggregated, match="run 1, attempt 1, submitted"):
        aggregate_all(host.address, "home_activity", tmp_path, pause)
    assert len(pauses) > 2 * LOOKS


def test_a_demo_shows_the_first_aggregate_of_its_transform_and_refuses_a_transform_without_one() -> None:
    sample = Sample(Path("events.jsonl"), (Line(1, b"{}"),))
    assert aggregate_of_demo(domain_of_sample(HOMES.transform, sample)) == aggregate_of_demo(HOMES)
    with pytest.raises(NoAggregate, match="shop declares no aggregate"):
        aggregate_of_demo(shop())


def test_the_rows_of_a_line_are_counted_with_the_states_of_the_lines_before_it() -> None:
    path = Path("examples/home_security/events.jsonl")
    lines = tuple(Line(number, body) for number, body in enumerate(path.read_bytes().splitlines(), 1))
    outcomes = outcomes_of(room_named(HOMES.transform))
    assert rows_per_event(domain_of_sample(HOMES.transform, Sample(path, lines))) == pytest.approx(
        (1 + sum(len(one.rows) for one in outcomes)) / len(lines)
    )
    assert rows_per_event(HOMES) == 0.83
