import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from core.incarnations.next_incarnation import Incarnations, Opening
from core.model.events import PartitionId, SequenceNumber, stream_of
from core.settle.partition_store import Partitions
from core.worker.ownership import SqlCheckpointStore
from tests.fakes.builders import NOON, FakeClock, commit, partition
from tests.fakes.store import MemoryStore

NAMES = ("localhost:5672", "telemetry", "hubledger")
OF_STREAM = dict(zip(("fully_qualified_namespace", "eventhub_name", "consumer_group"), NAMES, strict=True))
CLOCK = FakeClock()


@pytest.fixture
def kept() -> MemoryStore:
    return MemoryStore(now=CLOCK.now)


@pytest.fixture
def checkpoints(kept: MemoryStore) -> SqlCheckpointStore:
    return SqlCheckpointStore(kept, CLOCK.now)


def wanted(partition_id: str = "0", owner_id: str = "one", **more: Any) -> dict[str, Any]:
    """An ownership as the SDK asks for it. A first claim has no etag."""
    return {**OF_STREAM, "partition_id": partition_id, "owner_id": owner_id, **more}


def claim(checkpoints: SqlCheckpointStore, *claims: dict[str, Any]) -> list[dict[str, Any]]:
    return list(asyncio.run(checkpoints.claim_ownership(claims)))


def listed(checkpoints: SqlCheckpointStore) -> list[dict[str, Any]]:
    return list(asyncio.run(checkpoints.list_ownership(*NAMES)))


def test_a_claim_that_is_won_comes_back_with_an_etag_and_a_time_in_seconds(checkpoints: SqlCheckpointStore) -> None:
    (won,) = claim(checkpoints, wanted())
    assert {**won, "etag": None, "last_modified_time": None} == wanted(etag=None, last_modified_time=None)
    assert won["etag"]
    assert isinstance(won["last_modified_time"], float)
    assert won["last_modified_time"] == CLOCK.now().timestamp()
    assert listed(checkpoints) == [won]
    CLOCK.advance(10)
    (renewed,) = claim(checkpoints, won)
    assert renewed["etag"] != won["etag"]
    assert renewed["last_modified_time"] == won["last_modified_time"] + 10
    CLOCK.advance(3600)
    (old,) = listed(checkpoints)  # expired: listed with its age, and anybody may take it
    assert CLOCK.now().timestamp() - old["last_modified_time"] == 3600
    (taken,) = claim(checkpoints, {**old, "owner_id": "other"})
    assert taken["owner_id"] == "other"


def test_of_several_claims_only_those_that_are_won_come_back(checkpoints: SqlCheckpointStore) -> None:
    claim(checkpoints, wanted("1", "other"))
    won = claim(checkpoints, wanted("0"), wanted("1"), wanted("2"))
    assert [each["partition_id"] for each in won] == ["0", "2"]


@pytest.mark.parametrize("hours", [-24, -1, 1, 24])
def test_an_owner_whose_clock_is_wrong_sees_the_age_of_each_claim_and_others_see_that_of_its_own(
    kept: MemoryStore, checkpoints: SqlCheckpointStore, hours: int
) -> None:
    def now() -> datetime:
        return CLOCK.now() + timedelta(hours=hours)

    wrong = SqlCheckpointStore(kept, now)
    listed(wrong)
    claim(checkpoints, wanted("0"))
    claim(wrong, wanted("1", "other"))
    CLOCK.advance(10)
    assert [now().timestamp() - one["last_modified_time"] for one in listed(wrong)] == [10, 10]
    assert [CLOCK.now().timestamp() - one["last_modified_time"] for one in listed(checkpoints)] == [10, 10]


def test_what_is_listed_may_be_changed_and_read_again_and_again(checkpoints: SqlCheckpointStore) -> None:
    claim(checkpoints, wanted())
    first = asyncio.run(checkpoints.list_ownership(*NAMES))
    assert list(first) == list(first)
    for each in first:
        each.clear()
    assert [each["owner_id"] for each in listed(checkpoints)] == ["one"]


def test_checkpoints_are_those_of_the_transactions_with_offsets_as_texts_and_the_sdk_moves_none(
    kept: MemoryStore, checkpoints: SqlCheckpointStore
) -> None:
    own = stream_of("LocalHost", "telemetry", "hubledger").partition(PartitionId("0"))  # no port and no case counts
    kept.commit_batch(commit(kept.read_partition(own), 0, 4))
    before = kept.read_partition(own)
    asyncio.run(checkpoints.update_checkpoint({**wanted(), "offset": "640", "sequence_number": 10}))
    assert kept.read_partition(own) == before
    (checkpoint,) = asyncio.run(checkpoints.list_checkpoints(*NAMES))
    assert checkpoint == {**OF_STREAM, "partition_id": "0", "offset": "256", "sequence_number": 4}
    claim(checkpoints, wanted())
    (ownership,) = kept.read_ownerships(partition(hub="localhost/telemetry").stream)
    assert ownership.partition == partition(hub="localhost/telemetry")


def owned(checkpoints: SqlCheckpointStore, owners: str) -> dict[str, list[dict[str, Any]]]:
    """Let each letter own its partition. Return the ownerships of each owner."""
    for number, owner_id in enumerate(owners):
        claim(checkpoints, wanted(str(number), owner_id))
    return {owner: [each for each in listed(checkpoints) if each["owner_id"] == owner] for owner in set(owners)}


def shares(checkpoints: SqlCheckpointStore) -> str:
    return "".join(sorted(each["owner_id"] or "-" for each in listed(checkpoints)))


def test_an_owner_with_too_many_gives_one_away_when_it_renews_to_one_without(checkpoints: SqlCheckpointStore) -> None:
    """The SDK leaves 8 partitions among three owners at 4, 2, 2."""
    own = owned(checkpoints, "aaaabbcc")["a"]
    assert len(claim(checkpoints, *own)) == 3
    assert shares(checkpoints) == "-aaabbcc"
    (free,) = [each for each in listed(checkpoints) if not each["owner_id"]]
    assert len(claim(checkpoints, {**free, "owner_id": "b"})) == 1
    assert shares(checkpoints) == "aaabbbcc"


def test_a_release_is_no_renewal(checkpoints: SqlCheckpointStore) -> None:
    own = owned(checkpoints, "aaaabbcc")["a"]
    claim(checkpoints, {**own[0], "owner_id": ""})
    assert shares(checkpoints) == "-aaabbcc"


def test_in_a_new_incarnation_every_link_is_closed_before_it_is_claimed(
    kept: MemoryStore, checkpoints: SqlCheckpointStore
) -> None:
    stream = stream_of(*NAMES)
    kept.commit_batch(commit(kept.read_partition(stream.partition(PartitionId("0"))), 0, 4))
    listed(checkpoints)
    (before,) = claim(checkpoints, wanted())
    starts = {PartitionId("0"): SequenceNumber(0)}
    opening = Opening(kept.read_incarnation(stream), stream, NOON, starts, "a", "b", NOON)
    Incarnations(kept.database, Partitions(kept.database)).open_incarnation(opening)
    assert listed(checkpoints) == []
    assert claim(checkpoints, {**before, "owner_id": ""}) == []
    assert claim(checkpoints, wanted()) == []
    assert listed(checkpoints) == []
    assert len(claim(checkpoints, wanted())) == 1
    assert list(asyncio.run(checkpoints.list_checkpoints(*NAMES))) == []
