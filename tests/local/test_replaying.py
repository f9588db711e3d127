"""aggregation.py: the range whose rows are in committed runs, and its replay by a server that notes requests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from local.demo.aggregation import LOOKS, NotReplayed, Range, aggregate_of_demo, committed_range, replay
from local.feed.businesses import FLIGHTS, HOMES
from tests.local.feed.builders import flight_story, story
from tests.local.listed_host import Host
from tests.local.stores import Files, ingest

CHOSEN = Range("3", 0, 99, 80)
COUNTS = {"events": 100, "rows_retracted": 91}
PLANNED = {"task_id": "j", "status": "planned", "fault": None, "counts": COUNTS}
LAST = "SELECT commit_number, last_sequence_number FROM batch_ledger WHERE partition_id = '{}' ORDER BY 1 DESC LIMIT 1"


@pytest.fixture
def host() -> Iterator[Host]:
    made = Host()
    yield made
    made.close()


def cut(files: Files, job: str, **partitions: int) -> None:
    places = ", ".join(f"'1/{name[1:]}', {commit}" for name, commit in partitions.items())
    files.change(
        f"INSERT OR REPLACE INTO aggregation_cut (job, cut, run_number) SELECT '{job}', json_object({places}), 1"
    )


def test_the_range_begins_with_the_first_event_and_ends_with_the_last_one_of_committed_runs(tmp_path: Path) -> None:
    files, of = Files(tmp_path), aggregate_of_demo(HOMES)
    ingest(files.store, story(homes=8, events=1_200))
    assert committed_range(files.store, of) is None  # nothing is aggregated
    cut(files, of.name, p0=2, p1=3, p2=1)
    ((last,),) = files.change(
        "SELECT last_sequence_number FROM batch_ledger WHERE (partition_id, commit_number) = ('1', 3)"
    )
    ((rows,),) = files.change("SELECT COUNT(*) FROM sensor_reading WHERE partition_id = '1' AND commit_number <= 3")
    assert committed_range(files.store, of) == Range("1", 0, last, rows)
    files.change("DELETE FROM sensor_reading")
    assert committed_range(files.store, of) is None  # a replay would change no row of the aggregate


def test_a_range_of_flights_has_rows_of_their_changes(tmp_path: Path) -> None:
    files, of = Files(tmp_path), aggregate_of_demo(FLIGHTS)
    ingest(files.store, flight_story(numbers=20, events=600), FLIGHTS)
    ((commit, last),) = files.change(LAST.format("2"))
    cut(files, of.name, p2=commit)
    ((rows,),) = files.change("SELECT COUNT(*) FROM flight_change WHERE partition_id = '2'")
    assert committed_range(files.store, of) == Range("2", 0, last, rows)


def test_a_range_is_of_the_newest_incarnation_because_the_hub_has_no_other_events(tmp_path: Path) -> None:
    files, of = Files(tmp_path), aggregate_of_demo(HOMES)
    ingest(files.store, story(homes=8, events=400))
    ((commit, _),) = files.change(LAST.format("0"))
    cut(files, of.name, p0=commit)
    assert committed_range(files.store, of) is not None
    files.change(
        "INSERT INTO event_stream (stream_id, event_hub, consumer_group, incarnation, anchored_at)"
        " SELECT 2, event_hub, consumer_group, 2, anchored_at FROM event_stream"
    )
    assert committed_range(files.store, of) is None


def test_a_replay_is_requested_for_good_and_awaited(host: Host) -> None:
    host.answers = [(201, PLANNED)]
    host.status = [PLANNED, {**PLANNED, "status": "running"}, {**PLANNED, "status": "done"}]
    shown: list[str] = []
    replay(host.address, CHOSEN, lambda _: None, shown.append)
    ((path, order),) = host.posts
    assert path.startswith("/api/tasks/")
    assert (order.pop("kind"), order.pop("reason")) == ("replay", "the demo replays rows that are in the aggregate")
    assert order == {
        "partitions": ["3"],
        "from": {"sequence_number": "0"},
        "to": {"sequence_number": "99"},
        "dry_run": False,
    }
    assert shown == [
        "replaying numbers 0 to 99 of partition 3, with 80 rows in committed runs",
        "replayed 100 events: 91 rows were replaced",
    ]
    assert len(host.status) == 1


def test_a_replay_is_awaited_as_long_as_it_counts_events_and_one_that_stands_still_is_given_up(host: Host) -> None:
    running = [{**PLANNED, "counts": {**COUNTS, "events": events}} for events in range(LOOKS + 5)]
    host.answers, host.status = [(201, PLANNED)], [*running, {**PLANNED, "status": "done"}]
    replay(host.address, CHOSEN, lambda _: None, print)
    host.answers, host.status = [(201, PLANNED)], [PLANNED]
    looks: list[float] = []
    with pytest.raises(NotReplayed, match="replay j is not done: it is planned: no fault is noted"):
        replay(host.address, CHOSEN, looks.append, print)
    assert len(looks) == LOOKS


def test_a_host_that_gives_no_answer_to_the_order_of_a_replay_is_named(host: Host) -> None:
    host.close()
    with pytest.raises(NotReplayed, match="the replay has no answer"):
        replay(host.address, CHOSEN, lambda _: None, print)


def test_a_replay_that_is_refused_or_fails_is_raised_with_the_answer(host: Host) -> None:
    host.answers = [(409, {"detail": "another replay works there"})]
    with pytest.raises(NotReplayed, match=r"409.*another replay works there"):
        replay(host.address, CHOSEN, lambda _: None, print)
    host.answers, host.status = [(201, PLANNED)], [{**PLANNED, "status": "failed", "fault": "the hub is a new one"}]
    with pytest.raises(NotReplayed, match="replay j is not done: it is failed: the hub is a new one"):
        replay(host.address, CHOSEN, lambda _: None, print)
