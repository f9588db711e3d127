"""aggregation.py: runs, replays and killed jobs are counted from the store, and each missing one is named."""

from pathlib import Path

import pytest

from core.model.rows import row_table
from local.demo.aggregation import KILLED, WANTED, aggregate_of_demo, busiest_home, count_work, missing, prove_aggregate
from local.feed.businesses import FLIGHTS, HOMES, Domain
from local.recount.aggregates import recount_aggregate
from tests.local.aggregated import AGGREGATED, HOME_ACTIVITY
from tests.local.feed.builders import flight_story, story
from tests.local.stores import Files

ALL = {"runs": 3, "replays": 1, "killed": 1}
ALONE, WHOLE = KILLED


class Worked(Files):
    """A store of homes or flights, with the traces of an aggregation."""

    @staticmethod
    def made(folder: Path, domain: Domain) -> "Worked":
        folder.mkdir(exist_ok=True)
        minutes = story(homes=8, events=200) if domain is HOMES else flight_story(numbers=8, events=200)
        Files.agreeing(folder, minutes, domain, settled=True)
        return Worked(folder)

    def run(self, number: int, job: str, status: str = "committed", attempt: int = 1) -> None:
        self.change(
            "INSERT INTO aggregation_run (run_id, job, run_number, cut_from, cut_to, engine, attempt, submits, status,"
            " planned_at, intent_at, is_snapshot)"
            f" VALUES ('{job}-{number}', '{job}', {number}, '{{}}', '{{}}', 'local', {attempt}, {attempt}, '{status}',"
            " 'at', 'at', 0)"
        )

    def cut(self, job: str, commit: int) -> None:
        self.change(
            f"INSERT OR REPLACE INTO aggregation_cut (job, cut, run_number) VALUES ('{job}', '{{\"1/0\":{commit}}}', 1)"
        )

    def failure(self, run_id: str, reason: str) -> None:
        self.change(
            "INSERT INTO aggregation_failure (run_id, submit_number, attempt, failed_at, why, reason)"
            f" VALUES ('{run_id}', 1, 1, 'at', 'its job failed', '{reason}')"
        )

    def replay(self, replay_id: str, commit: int, retracted_from: str | None) -> None:
        """Write the ledger's row of a replay in partition 0, and a row that it has retracted."""
        names = [row[1] for row in self.change("PRAGMA table_info(batch_ledger)")]
        own = {"commit_number": str(commit), "kind": "'replay'", "invocation_id": f"'{replay_id}'"}
        values = ", ".join(own.get(name, name) for name in names)
        self.change(
            f"INSERT INTO batch_ledger ({', '.join(names)}) SELECT {values} FROM batch_ledger"
            " WHERE partition_id = '0' AND commit_number = 1"
        )
        if retracted_from is not None:
            self.change(
                "INSERT INTO retracted_row (stream_id, partition_id, commit_number, table_name, sequence_number,"
                f" ordinal, row_commit_number, row) VALUES (1, '0', {commit}, '{retracted_from}', 0, 0, 1, '{{}}')"
            )

    def work(self, domain: Domain) -> None:
        """Leave what a whole demo leaves: three runs, the second after a kill, and a replay in the last one."""
        of = aggregate_of_demo(domain)
        for number in (1, 2, 3):
            self.run(number, of.name, attempt=2 if number == 2 else 1)
        self.failure(f"{of.name}-2", ALONE)
        self.replay("replay", 1_000, row_table(of.source).name)
        self.cut(of.name, 1_000)

    def counts(self, domain: Domain = HOMES) -> dict[str, int]:
        return count_work(self.store, aggregate_of_demo(domain))


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Worked:
    return Worked.made(tmp_path_factory.mktemp("homes"), HOMES)


@pytest.fixture
def worked(homes: Worked, tmp_path: Path) -> Worked:
    homes.copied_to(tmp_path)
    return Worked(tmp_path)


def test_the_work_of_each_business_is_counted(worked: Worked, tmp_path: Path) -> None:
    worked.work(HOMES)
    flights = Worked.made(tmp_path / "flights", FLIGHTS)
    flights.work(FLIGHTS)
    assert (worked.counts(), flights.counts(FLIGHTS)) == (ALL, ALL)
    assert list(missing(ALL)) == []


def test_only_committed_runs_of_the_aggregate_count(worked: Worked) -> None:
    assert worked.counts() == {"runs": 0, "replays": 0, "killed": 0}
    worked.run(1, "home_activity", "failed")
    worked.run(2, "home_activity", "submitted")
    worked.run(1, "alerts_by_day")
    assert worked.counts()["runs"] == 0
    worked.run(3, "home_activity")
    assert worked.counts()["runs"] == 1


def test_a_replay_counts_once_all_its_commits_are_in_runs(worked: Worked) -> None:
    worked.replay("one", 1_000, "sensor_reading")
    worked.replay("one", 1_001, None)
    assert worked.counts()["replays"] == 0
    for commit, counted in ((999, 0), (1_000, 0), (1_001, 1)):
        worked.cut("home_activity", commit)
        assert worked.counts()["replays"] == counted, commit


def test_a_replay_that_replaced_no_row_of_the_aggregate_does_not_count(worked: Worked) -> None:
    worked.cut("home_activity", 2_000)
    worked.replay("nothing", 1_000, None)
    worked.replay("alerts", 1_001, "home_alert")
    assert worked.counts()["replays"] == 0


def test_a_killed_job_counts_when_a_later_attempt_was_committed(worked: Worked) -> None:
    for number, (status, attempt, reason) in enumerate(
        (
            ("committed", 1, ALONE),  # its own attempt: its result was staged before
            ("submitted", 2, ALONE),
            ("failed", 2, WHOLE),
            ("committed", 2, "spark-submit ended with 1"),
        ),
        1,
    ):
        worked.run(number, "home_activity", status, attempt)
        worked.failure(f"home_activity-{number}", reason)
    assert worked.counts()["killed"] == 0
    worked.run(5, "home_activity", attempt=2)
    worked.run(6, "home_activity", attempt=3)
    worked.failure("home_activity-5", ALONE)
    worked.failure("home_activity-6", WHOLE)
    assert worked.counts()["killed"] == 2


def test_each_missing_part_of_the_work_is_named() -> None:
    assert list(WANTED) == list(ALL)
    assert list(missing({"runs": 2, "replays": 1, "killed": 1})) == [
        "aggregation: 2 runs are committed, but the demo must have at least 3; more EVENTS make more runs"
    ]
    assert list(missing({"runs": 3, "replays": 0, "killed": 1})) == [
        "aggregation: no committed run has a replay of rows that it adds up"
    ]
    assert list(missing({"runs": 3, "replays": 1, "killed": 0})) == [
        "aggregation: no run was committed by a later attempt after its job was killed"
    ]
    assert len(list(missing({"runs": 0, "replays": 0, "killed": 0}))) == 3


def test_the_proof_of_homes_has_both_objects_and_the_page_of_a_home(worked: Worked) -> None:
    worked.work(HOMES)
    worked.change(*AGGREGATED[HOMES.name])
    most = "SELECT home_id FROM home_activity GROUP BY home_id ORDER BY SUM(readings) DESC, home_id DESC LIMIT 1"
    ((home_id,),) = worked.change(most)
    ((windows, readings),) = worked.change("SELECT COUNT(*), SUM(readings) FROM home_activity")
    shown: list[str] = []
    figures, differences = prove_aggregate(HOMES, worked.store, shown.append)
    page = f"http://localhost:7071/api/homes/{home_id}"
    assert differences == []
    assert figures == {
        "aggregate": {"name": "home_activity", "equals_recount": True, "rows": readings},
        "aggregation": {"runs": 3, "replays": 1, "killed": 1, "windows": windows},
        "home_page": page,
    }
    (line,) = shown
    assert page in line and f"make serve FOLDER={worked.store.parent}" in line
    worked.change("DELETE FROM aggregation_failure")
    figures, differences = prove_aggregate(HOMES, worked.store, shown.append)
    assert figures["aggregate"]["equals_recount"] is True  # type: ignore[index]
    assert differences == ["aggregation: no run was committed by a later attempt after its job was killed"]


def test_an_aggregate_that_is_empty_proves_nothing(worked: Worked, tmp_path: Path) -> None:
    worked.work(HOMES)
    figures, differences = prove_aggregate(HOMES, worked.store, print)
    assert differences[-1] == "home_activity: it is empty"
    assert figures["home_page"] is None and figures["aggregate"]["equals_recount"] is False  # type: ignore[index]
    flights = Worked.made(tmp_path / "flights", FLIGHTS)
    figures, differences = prove_aggregate(FLIGHTS, flights.store, print)
    assert "flight_punctuality: it is empty" in differences and len(differences) > 4
    assert list(figures) == ["aggregate", "aggregation"]


def test_the_busiest_home_has_the_most_readings(worked: Worked) -> None:
    assert busiest_home(recount_aggregate(HOME_ACTIVITY, worked.store)) is None
    worked.change(*AGGREGATED[HOMES.name])
    found = recount_aggregate(HOME_ACTIVITY, worked.store)
    readings = "SELECT home_id FROM home_activity GROUP BY home_id ORDER BY SUM(readings) DESC, home_id DESC LIMIT 1"
    assert [(busiest_home(found),)] == worked.change(readings)
    assert [(found.rows,)] == worked.change("SELECT SUM(readings) FROM home_activity")
