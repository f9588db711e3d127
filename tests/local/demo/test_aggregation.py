"""local/demo/aggregation.py: steps and replays that fail, and a proof that names each missing part."""

from pathlib import Path
from typing import Any

import pytest

from local.demo.aggregation import (
    KILLED,
    LOOKS,
    NoAggregate,
    NotAggregated,
    NotReplayed,
    Range,
    aggregate_all,
    aggregate_of_demo,
    prove_aggregate,
    replay,
    rows_per_event,
)
from local.feed.businesses import HOMES, domain_of_sample
from local.feed.sample import Line, Sample
from tests.local.conftest import Host
from tests.local.feed.builders import story
from tests.local.stores import AGGREGATED, Files, shop
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


@pytest.fixture
def homes(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """The state after a whole demo: three runs, the second after a kill, and a replay in the last one."""
    files = Files.agreeing(tmp_path_factory.mktemp("homes"), story(homes=8, events=200), settled=True)
    names = [row[1] for row in files.change("PRAGMA table_info(batch_ledger)")]
    own = {"commit_number": "1000", "kind": "'replay'", "invocation_id": "'replay'"}
    values = ", ".join(own.get(name, name) for name in names)
    files.change(
        "INSERT INTO aggregation_run (run_id, job, run_number, cut_from, cut_to, engine, attempt, submits, status,"
        " planned_at, intent_at, is_snapshot) SELECT 'run-' || value, 'home_activity', value, '{}', '{}', 'local',"
        " iif(value = 2, 2, 1), 1, 'committed', 'at', 'at', 0 FROM json_each('[1, 2, 3]')",
        "INSERT INTO aggregation_failure (run_id, submit_number, attempt, failed_at, why, reason)"
        f" VALUES ('run-2', 1, 1, 'at', 'its job failed', '{KILLED[0]}')",
        f"INSERT INTO batch_ledger ({', '.join(names)}) SELECT {values} FROM batch_ledger"
        " WHERE partition_id = '0' AND commit_number = 1",
        "INSERT INTO retracted_row (stream_id, partition_id, commit_number, table_name, sequence_number, ordinal,"
        " row_commit_number, row) VALUES (1, '0', 1000, 'sensor_reading', 0, 0, 1, '{}')",
        "INSERT INTO aggregation_cut (job, cut, run_number) VALUES ('home_activity', '{\"1/0\":1000}', 1)",
        *AGGREGATED[HOMES.name],
    )
    return files


RUNS = "aggregation: 2 runs are committed, but the demo must have at least 3; more EVENTS make more runs"
REPLAYS = "aggregation: no committed run has a replay of rows that it adds up"
KILLS = "aggregation: no run was committed by a later attempt after its job was killed"


def test_each_missing_part_of_the_work_is_named_and_an_empty_aggregate_proves_nothing(
    homes: Files, tmp_path: Path
) -> None:
    for number, (statement, expected) in enumerate(
        (
            ("SELECT 'whole'", []),
            ("UPDATE aggregation_run SET status = 'failed' WHERE run_number = 1", [RUNS]),
            ("UPDATE aggregation_run SET job = 'alerts_by_day' WHERE run_number = 1", [RUNS]),
            ("DELETE FROM retracted_row", [REPLAYS]),
            ("UPDATE retracted_row SET table_name = 'home_alert'", [REPLAYS]),
            ("UPDATE aggregation_cut SET cut = '{\"1/0\":999}'", [REPLAYS]),
            ("UPDATE aggregation_failure SET reason = 'spark-submit ended with 1'", [KILLS]),
            ("UPDATE aggregation_run SET attempt = 1", [KILLS]),
        )
    ):
        copy = homes.copied_to(tmp_path / str(number))
        copy.change(statement)
        figures, found = prove_aggregate(HOMES, copy.store, print)
        assert found == expected, statement
        assert figures["aggregate"]["equals_recount"] is True  # type: ignore[index]
    homes.change("DELETE FROM home_activity")
    figures, found = prove_aggregate(HOMES, homes.store, print)
    assert found[-1] == "home_activity: it is empty"
    assert figures["home_page"] is None and figures["aggregate"]["equals_recount"] is False  # type: ignore[index]
