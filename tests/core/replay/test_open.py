"""Promises of every store about the number of replays that are open at once."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

import pytest

from core.errors import TaskOverlap, TooManyTasks
from core.model.commits import ROWS_AT_ONCE
from core.model.events import PartitionId, SequenceNumber, Span
from core.replay.pieces import MOST_OPEN, PartitionRange
from core.store.database import write
from core.tasks.statuses import TaskMove, TaskVerb
from core.tasks.task import TaskRequest
from tests.fakes.builders import EPOCH, commit, partition, settled
from tests.fakes.replaying import opened, replay_asked
from tests.fakes.store import Store

P = partition()
SPAN = Span(SequenceNumber(0), SequenceNumber(9))


def request(number: int, *, dry_run: bool = True, partition_id: str = "0") -> TaskRequest:
    id = UUID(int=number, version=4)
    ranges = (PartitionRange(PartitionId(partition_id), SPAN),)
    return replay_asked(id, ranges, dry_run=dry_run)


def moved(store: Store, number: int, name: TaskVerb) -> bool:
    return store.tasks.move(TaskMove(UUID(int=number, version=4), name, "somebody", "why", EPOCH + timedelta(hours=1)))


@pytest.fixture
def full(store: Store) -> Store:
    """As many open jobs as may be: one holds the range, one is paused, and one runs."""
    store.commit_batch(commit(store.read_partition(P), 0, 9, settled({}, filtered=10)))
    for number in range(MOST_OPEN):
        opened(store, request(number, dry_run=number > 0))
    assert moved(store, 1, "pause")
    assert moved(store, 2, "begin")
    return store


def test_no_more_replays_are_open_than_the_limit_dry_runs_included(full: Store) -> None:
    with pytest.raises(TooManyTasks, match=f"{MOST_OPEN} replays are open"):
        opened(full, request(MOST_OPEN))
    with pytest.raises(TaskOverlap):
        opened(full, request(MOST_OPEN, dry_run=False))
    assert full.find_replay(UUID(int=MOST_OPEN, version=4)) is None
    assert len(full.read_replays(P.stream, 100, None)) == MOST_OPEN


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_a_replay_that_is_over_makes_room_for_one_more(full: Store, number: int) -> None:
    assert moved(full, number, "cancel")
    opened(full, request(MOST_OPEN))
    with pytest.raises(TooManyTasks):
        opened(full, request(MOST_OPEN + 1))


def test_replays_of_a_different_stream_do_not_count(full: Store) -> None:
    opened(full, request(MOST_OPEN), partition(group="other").stream)


def test_of_requests_at_the_same_time_for_different_partitions_one_has_the_last_place(
    full: Store, make_store: Callable[[], Store]
) -> None:
    assert moved(full, 3, "cancel")
    stores, refused = [make_store() for _ in range(4)], []

    def ask(number: int) -> None:
        try:
            opened(stores[number], request(MOST_OPEN + number, partition_id=str(number)))
        except TooManyTasks:
            refused.append(number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))
    assert len(refused) == 3


def test_a_replay_that_ends_leaves_none_of_its_many_states_and_none_of_a_job_that_ended_before(store: Store) -> None:
    """They are deleted after the end of the job, a part at a time; a process that dies leaves some to the next end."""
    keys = [f"key {number}" for number in range(2 * ROWS_AT_ONCE + 1)]
    places = [{"task_id": str(request(number).order.task_id), "partition_id": "0"} for number in (1, 2)]
    opened(store, request(3))
    for number, place in enumerate(places, 1):
        opened(store, request(number))
        carried = json.dumps([[key, 4, "{}"] for key in keys])
        write(store.database, "a replay", "carry_states", **place, carried=carried)

    def left() -> list[int]:
        asked = json.dumps([[key] for key in keys])
        return [len(store.database.ask("read_carried", **place, keys=asked)) for place in places]

    store.tasks.move(TaskMove(request(1).order.task_id, "cancel", "somebody", "it dies right after", EPOCH))
    assert left() == [len(keys), len(keys)]
    assert moved(store, 3, "cancel")
    store.forget_states()
    assert left() == [0, len(keys)]
    assert moved(store, 2, "cancel")
    store.forget_states()
    assert left() == [0, 0]
