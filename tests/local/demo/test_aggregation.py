"""local/demo/aggregation.py: the steps, the replay, the killed job, and a proof that names each missing part."""

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from core.aggregation.spark_engine import JobRequest, JobState
from core.aggregation.tick import PROGRAM
from core.model.rows import row_table
from core.remote.spark.local_engine import LocalEngine, LocalSpark
from local.demo.aggregation import (
    KILLED,
    LOOKS,
    SPARK,
    JobKiller,
    NoAggregate,
    NotAggregated,
    NotReplayed,
    Range,
    aggregate_all,
    aggregate_of_demo,
    committed_range,
    prove_aggregate,
    replay,
    rows_per_event,
    spark_process,
    worked,
)
from local.feed.businesses import HOMES, Domain, domain_of_sample
from local.feed.sample import Line, Sample
from local.stack.consumers import ticking
from tests import patience
from tests.fakes.rooms import migrate_examples
from tests.local.conftest import Host
from tests.local.feed.builders import flight_story, story
from tests.local.stores import AGGREGATED, Files, ingest, shop
from tests.rooms.found import outcomes_of, room_named

RUN: dict[str, Any] = {"number": 1, "attempt": 1, "status": "submitted", "failure": None}
RUN_ROW = (
    "INSERT INTO aggregation_run (run_id, job, run_number, cut_from, cut_to, engine, attempt, submits, status,"
    " planned_at, intent_at, is_snapshot) VALUES ('{}', '{}', {}, '{{}}', '{{}}', 'local', {}, 1, '{}', 'at', 'at', 0)"
)
FAILURE_ROW = (
    "INSERT INTO aggregation_failure (run_id, submit_number, attempt, failed_at, why, reason)"
    " VALUES ('{}', 1, 1, 'at', 'its job failed', '{}')"
)


def cut(files: Files, job: str, **partitions: int) -> None:
    places = ", ".join(f"'1/{name[1:]}', {commit}" for name, commit in partitions.items())
    files.change(f"INSERT INTO aggregation_cut (job, cut, run_number) SELECT '{job}', json_object({places}), 1")


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


# the replay

CHOSEN = Range("3", 0, 99, 80)
COUNTS = {"events": 100, "rows_retracted": 91}
PLANNED = {"task_id": "j", "status": "planned", "fault": None, "counts": COUNTS}


def test_the_range_is_of_the_newest_incarnation_and_ends_with_the_last_event_of_committed_runs(tmp_path: Path) -> None:
    files, of = Files(tmp_path), aggregate_of_demo(HOMES)
    ingest(files.store, story(homes=8, events=1_200))
    assert committed_range(files.store, of) is None, "nothing is aggregated"
    cut(files, of.name, p0=2, p1=3, p2=1)
    place = "WHERE partition_id = '1' AND commit_number"
    ((last,),) = files.change(f"SELECT last_sequence_number FROM batch_ledger {place} = 3")
    ((rows,),) = files.change(f"SELECT COUNT(*) FROM sensor_reading {place} <= 3")
    assert committed_range(files.store, of) == Range("1", 0, last, rows)
    without_rows, later = files.copied_to(tmp_path / "no-rows"), files.copied_to(tmp_path / "later")
    without_rows.change("DELETE FROM sensor_reading")
    later.change(
        "INSERT INTO event_stream (stream_id, event_hub, consumer_group, incarnation, anchored_at)"
        " SELECT 2, event_hub, consumer_group, 2, anchored_at FROM event_stream"
    )
    assert (committed_range(without_rows.store, of), committed_range(later.store, of)) == (None, None)


def test_a_replay_is_requested_for_good_and_awaited(host: Host) -> None:
    host.answers = [(201, PLANNED)]
    host.status = [PLANNED, {**PLANNED, "status": "running"}, {**PLANNED, "status": "done"}]
    shown: list[str] = []
    replay(host.address, CHOSEN, lambda _: None, shown.append)
    ((path, order),) = host.posts
    assert path.startswith("/api/tasks/")
    assert (order["kind"], order["partitions"], order["dry_run"]) == ("replay", ["3"], False)
    assert (order["from"], order["to"]) == ({"sequence_number": "0"}, {"sequence_number": "99"})
    assert shown[-1] == "replayed 100 events: 91 rows were replaced"
    assert len(host.status) == 1


def test_a_replay_that_stands_still_is_given_up(host: Host) -> None:
    running = [{**PLANNED, "counts": {**COUNTS, "events": events}} for events in range(5)]
    host.answers, host.status = [(201, PLANNED)], [*running, PLANNED]
    looks: list[float] = []
    with pytest.raises(NotReplayed, match="replay j is not done: it is planned: no fault is noted"):
        replay(host.address, CHOSEN, looks.append, print)
    assert len(looks) == LOOKS + 5


def test_a_replay_that_is_refused_fails_or_has_no_answer_is_raised_with_the_reason(host: Host) -> None:
    host.answers = [(409, {"detail": "another replay works there"}), (201, PLANNED)]
    host.status = [{**PLANNED, "status": "failed", "fault": "the hub is a new one"}]
    with pytest.raises(NotReplayed, match=r"409.*another replay works there"):
        replay(host.address, CHOSEN, lambda _: None, print)
    with pytest.raises(NotReplayed, match="replay j is not done: it is failed: the hub is a new one"):
        replay(host.address, CHOSEN, lambda _: None, print)
    host.close()
    with pytest.raises(NotReplayed, match="the replay has no answer"):
        replay(host.address, CHOSEN, lambda _: None, print)


# the killed job

# Like spark-submit: a process with Spark's main class in its command starts the program. The program ends after it.
SUBMIT = f"""#!/bin/sh
exec {sys.executable} -c '
import os, subprocess, sys
program = next(word for word in sys.argv if word.endswith(".py"))
reading, writing = os.pipe()
sys.exit(subprocess.run([sys.executable, program], stdin=reading).returncode)
' {SPARK} "$@"
"""


def until(wanted: Callable[[], object]) -> None:
    patience.until(wanted, 60)


class Jobs:
    """A store with the run "r" of home_activity, and an engine for its jobs."""

    def __init__(self, folder: Path) -> None:
        self.store, self.folder = folder / "store.db", folder / "spark"
        migrate_examples(self.store)
        self.change(RUN_ROW.format("r", "home_activity", 1, 1, "submitted"))
        (folder / "spark-submit").write_text(SUBMIT)
        (folder / "spark-submit").chmod(0o755)
        for program in (PROGRAM, "other.py"):
            (folder / program).write_text("import sys; sys.stdin.read()")
        self.engine = LocalEngine(LocalSpark(str(folder / "spark-submit"), folder, self.folder))
        self.killer = JobKiller(self.store, self.folder, "home_activity")

    def change(self, statement: str) -> None:
        with closing(sqlite3.connect(self.store, isolation_level=None)) as connection:
            connection.execute(statement)

    def submit(self, name: str, program: str = PROGRAM) -> Path:
        """Submit a job that runs until somebody ends it, and wait until its program runs."""
        self.engine.submit(JobRequest(name, program, ()))
        if program == PROGRAM:
            until(lambda: spark_process(self.folder / name))
        return self.folder / name

    def ended(self, name: str) -> JobState:
        until(lambda: self.engine.state(name) is not JobState.RUNNING)
        return self.engine.state(name)


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    made = Jobs(tmp_path)
    yield made
    for folder in made.folder.glob("*"):
        made.engine.cancel(folder.name)


def test_the_job_of_the_open_run_is_killed_with_a_reason_that_counts_and_the_next_attempt_runs_on(
    jobs: Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    pid = spark_process(jobs.submit("agg-r-1"))
    with ticking(0.01, jobs.killer):
        assert jobs.ended("agg-r-1") is JobState.FAILED
    assert jobs.engine.report("agg-r-1").reason == KILLED[0]
    assert capsys.readouterr().out == f"killing Spark, process {pid}, in run 1, attempt 1\n"
    jobs.change(FAILURE_ROW.format("r", KILLED[0]))
    jobs.change("UPDATE aggregation_run SET attempt = 2, submits = 2")
    folder = jobs.submit("agg-r-2")
    assert jobs.killer.look()
    assert spark_process(folder) and jobs.engine.state("agg-r-2") is JobState.RUNNING


def test_a_job_that_computes_is_seen_to_work_and_one_without_processes_is_not(jobs: Jobs, tmp_path: Path) -> None:
    (tmp_path / PROGRAM).write_text("while True: pass")
    folder = jobs.submit("agg-r-1")
    before = worked(folder)
    until(lambda: worked(folder) > before + 0.05)
    jobs.engine.cancel("agg-r-1")
    assert jobs.ended("agg-r-1") is JobState.FAILED
    assert jobs.engine.report("agg-r-1").reason == KILLED[1]
    assert (worked(folder), worked(tmp_path / "nowhere")) == (0, 0)


def test_jobs_of_different_runs_and_programs_are_left_alone(jobs: Jobs) -> None:
    others = [jobs.submit("agg-r-2"), jobs.submit("agg-s-1")]
    starting = jobs.submit("agg-r-1", "other.py")
    until(lambda: jobs.engine.find("agg-r-1"))
    assert not jobs.killer.look()
    assert spark_process(starting) is None
    jobs.change("UPDATE aggregation_run SET job = 'alerts_by_day', attempt = 2")
    assert not jobs.killer.look()
    assert all(spark_process(folder) for folder in others)
    assert {jobs.engine.state(name) for name in ("agg-r-1", "agg-r-2", "agg-s-1")} == {JobState.RUNNING}


# the proof


def whole(folder: Path, domain: Domain) -> Files:
    """Return what a whole demo leaves: three runs, the second after a kill, and a replay in the last one."""
    minutes = story(homes=8, events=200) if domain is HOMES else flight_story(numbers=8, events=200)
    files, of = Files.agreeing(folder, minutes, domain, settled=True), aggregate_of_demo(domain)
    names = [row[1] for row in files.change("PRAGMA table_info(batch_ledger)")]
    own = {"commit_number": "1000", "kind": "'replay'", "invocation_id": "'replay'"}
    values = ", ".join(own.get(name, name) for name in names)
    files.change(
        *(RUN_ROW.format(f"run-{at}", of.name, at, 2 if at == 2 else 1, "committed") for at in (1, 2, 3)),
        FAILURE_ROW.format("run-2", KILLED[0]),
        f"INSERT INTO batch_ledger ({', '.join(names)}) SELECT {values} FROM batch_ledger"
        " WHERE partition_id = '0' AND commit_number = 1",
        "INSERT INTO retracted_row (stream_id, partition_id, commit_number, table_name, sequence_number, ordinal,"
        f" row_commit_number, row) VALUES (1, '0', 1000, '{row_table(of.source).name}', 0, 0, 1, '{{}}')",
        *AGGREGATED[domain.name],
    )
    cut(files, of.name, p0=1_000)
    return files


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return whole(tmp_path_factory.mktemp("homes"), HOMES)


def test_the_proof_of_homes_has_both_objects_and_the_page_of_the_busiest_home(homes: Files) -> None:
    most = "SELECT home_id FROM home_activity GROUP BY home_id ORDER BY SUM(readings) DESC, home_id DESC LIMIT 1"
    ((home_id,),) = homes.change(most)
    ((windows, readings),) = homes.change("SELECT COUNT(*), SUM(readings) FROM home_activity")
    shown: list[str] = []
    figures, differences = prove_aggregate(HOMES, homes.store, shown.append)
    page = f"http://localhost:7071/api/homes/{home_id}"
    assert differences == []
    assert figures == {
        "aggregate": {"name": "home_activity", "equals_recount": True, "rows": readings},
        "aggregation": {"runs": 3, "replays": 1, "killed": 1, "windows": windows},
        "home_page": page,
    }
    assert page in shown[0] and f"make serve FOLDER={homes.store.parent}" in shown[0]


RUNS = "aggregation: 2 runs are committed, but the demo must have at least 3; more EVENTS make more runs"
REPLAYS = "aggregation: no committed run has a replay of rows that it adds up"
KILLS = "aggregation: no run was committed by a later attempt after its job was killed"


@pytest.mark.parametrize(
    ("statement", "differences"),
    [
        ("UPDATE aggregation_run SET status = 'failed' WHERE run_number = 1", [RUNS]),
        ("UPDATE aggregation_run SET job = 'alerts_by_day' WHERE run_number = 1", [RUNS]),
        ("DELETE FROM retracted_row", [REPLAYS]),
        ("UPDATE retracted_row SET table_name = 'home_alert'", [REPLAYS]),
        ("UPDATE aggregation_cut SET cut = '{\"1/0\":999}'", [REPLAYS]),
        ("DELETE FROM aggregation_failure", [KILLS]),
        ("UPDATE aggregation_failure SET reason = 'spark-submit ended with 1'", [KILLS]),
        ("UPDATE aggregation_run SET attempt = 1", [KILLS]),
        ("UPDATE aggregation_run SET status = 'submitted' WHERE run_number = 2", [RUNS, KILLS]),
    ],
)
def test_each_missing_part_of_the_work_is_named(
    homes: Files, tmp_path: Path, statement: str, differences: list[str]
) -> None:
    copy = homes.copied_to(tmp_path)
    copy.change(statement)
    figures, found = prove_aggregate(HOMES, copy.store, print)
    assert found == differences
    assert figures["aggregate"]["equals_recount"] is True  # type: ignore[index]


def test_an_aggregate_that_is_empty_proves_nothing(homes: Files, tmp_path: Path) -> None:
    copy = homes.copied_to(tmp_path)
    copy.change("DELETE FROM home_activity")
    figures, differences = prove_aggregate(HOMES, copy.store, print)
    assert differences[-1] == "home_activity: it is empty"
    assert figures["home_page"] is None and figures["aggregate"]["equals_recount"] is False  # type: ignore[index]
