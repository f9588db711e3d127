"""local/demo/aggregation.py: steps and replays that fail, and a proof that names each missing part."""

from pathlib import Path
from typing import Any

import pytest

from local.demo.aggregation import (
    LOOKS,
    NoAggregate,
    NotAggregated,
    NotReplayed,
    Range,
    aggregate_all,
    aggregate_of_demo,
    replay,
    rows_per_event,
)
from local.feed.businesses import HOMES, domain_of_sample
from local.feed.sample import Line, Sample
from tests.local.conftest import Host
from tests.local.stores import shop
from tests.rooms.found import outcomes_of, room_named

RUN: dict[str, Any] = {"number": 1, "attempt": 1, "status": "submitted", "failure": None}


def test_a_failed_run_ends_the_aggregation_with_its_reason_and_the_last_words_of_its_job(
    host: Host, tmp_path: Path
) -> None:
    (tmp_path / "spark" / "agg-r-1").mkdir(parents=True)
    (tmp_path / "spark" / "agg-r-1" / "err").write_text("no space left\n")
    host.answers = [(202, {"did": ["failed"], "run": {**RUN, "status": "failed", "failure": "5 attempts"}})]
    with pytest.raises(NotAggregated, match=r"1, failed: 5 attempts; the newest job's last lines:\n.*no space"):
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


def test_the_rows_of_a_line_are_counted_with_the_states_of_the_lines_before_it() -> None:
    path = Path("examples/home_security/events.jsonl")
    lines = tuple(Line(number, body) for number, body in enumerate(path.read_bytes().splitlines(), 1))
    rows = 1 + sum(len(one.rows) for one in outcomes_of(room_named(HOMES.transform)))
    assert rows_per_event(domain_of_sample(HOMES.transform, Sample(path, lines))) == pytest.approx(rows / len(lines))
    assert rows_per_event(HOMES) == 0.83
    with pytest.raises(NoAggregate, match="shop declares no aggregate"):
        aggregate_of_demo(shop())


CHOSEN = Range("3", 0, 99, 80)
COUNTS = {"events": 100, "rows_retracted": 91}
PLANNED = {"task_id": "j", "status": "planned", "fault": None, "counts": COUNTS}


def test_a_replay_that_stands_still_is_refused_fails_or_has_no_answer_is_raised_with_the_reason(host: Host) -> None:
    running = [{**PLANNED, "counts": {**COUNTS, "events": events}} for events in range(5)]
    host.answers, host.status = [(201, PLANNED)], [*running, PLANNED]
    looks: list[float] = []
    with pytest.raises(NotReplayed, match="replay j is not done: it is planned: no fault is noted"):
        replay(host.address, CHOSEN, looks.append, print)
    assert len(looks) == LOOKS + 5
    host.answers = [(409, {"detail": "another replay works there"}), (201, PLANNED)]
    host.status = [{**PLANNED, "status": "failed", "fault": "the hub is a new one"}]
    with pytest.raises(NotReplayed, match=r"409.*another replay works there"):
        replay(host.address, CHOSEN, lambda _: None, print)
    with pytest.raises(NotReplayed, match="replay j is not done: it is failed: the hub is a new one"):
        replay(host.address, CHOSEN, lambda _: None, print)
    host.close()
    with pytest.raises(NotReplayed, match="the replay has no answer"):
        replay(host.address, CHOSEN, lambda _: None, print)
