"""core/worker/ownership.py: the contract of the SDK's checkpoint store, and what it relies on without saying so."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from core.incarnations.next_incarnation import Incarnations, Opening
from core.model.events import PartitionId, SequenceNumber, stream_of
from core.settle.partition_store import Partitions
from core.worker.ownership import SqlCheckpointStore
from tests.fakes.builders import NOON, FakeClock, commit, partition
from tests.fakes.memory_store import MemoryStore

NAMES = ("localhost:5672", "telemetry", "hubledger")
CLOCK = FakeClock()


@pytest.fixture
def kept() -> MemoryStore:
    return MemoryStore(now=CLOCK.now)


@pytest.fixture
def checkpoints(kept: MemoryStore) -> SqlCheckpointStore:
    return SqlCheckpointStore(kept, CLOCK.now)


def wanted(partition_id: str = "0", owner_id: str = "one", **more: Any) -> dict[str, Any]:
    """An ownership as the SDK asks for it. A first claim has no etag."""
    names = dict(zip(("fully_qualified_namespace", "eventhub_name", "consumer_group"), NAMES, strict=True))
    return {**names, "partition_id": partition_id, "owner_id": owner_id, **more}


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


def test_of_several_claims_only_those_that_are_won_come_back(checkpoints: SqlCheckpointStore) -> None:
    claim(checkpoints, wanted("1", "other"))
    won = claim(checkpoints, wanted("0"), wanted("1"), wanted("2"))
    assert [each["partition_id"] for each in won] == ["0", "2"]


def test_an_owner_renews_with_the_etag_of_its_last_claim(checkpoints: SqlCheckpointStore) -> None:
    (first,) = claim(checkpoints, wanted())
    CLOCK.advance(10)
    (second,) = claim(checkpoints, first)
    assert second["etag"] != first["etag"]
    assert second["last_modified_time"] == first["last_modified_time"] + 10


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


def test_an_expired_ownership_is_listed_with_its_age_and_can_be_taken(checkpoints: SqlCheckpointStore) -> None:
    claim(checkpoints, wanted())
    CLOCK.advance(3600)
    (old,) = listed(checkpoints)
    assert CLOCK.now().timestamp() - old["last_modified_time"] == 3600
    (taken,) = claim(checkpoints, {**old, "owner_id": "other"})
    assert taken["owner_id"] == "other"


def test_what_is_listed_may_be_changed_and_read_again_and_again(checkpoints: SqlCheckpointStore) -> None:
    claim(checkpoints, wanted())
    first = asyncio.run(checkpoints.list_ownership(*NAMES))
    assert list(first) == list(first)
    for each in first:
        each.clear()
    assert [each["owner_id"] for each in listed(checkpoints)] == ["one"]


def test_checkpoints_are_those_of_the_transactions_with_offsets_as_texts(kept: MemoryStore) -> None:
    place = stream_of("localhost", "telemetry", "hubledger").partition(PartitionId("0"))
    kept.commit_batch(commit(kept.read_partition(place), 0, 4))
    (checkpoint,) = asyncio.run(SqlCheckpointStore(kept).list_checkpoints(*NAMES))
    names = wanted()
    assert checkpoint == {
        **{name: names[name] for name in ("fully_qualified_namespace", "eventhub_name", "consumer_group")},
        "partition_id": "0",
        "offset": "256",
        "sequence_number": 4,
    }
    assert isinstance(checkpoint["offset"], str)


def test_a_namespace_with_a_port_is_the_stream_that_the_trigger_names_without_one(kept: MemoryStore) -> None:
    claim(SqlCheckpointStore(kept), wanted())
    (ownership,) = kept.read_ownerships(partition(hub="localhost/telemetry").stream)
    assert ownership.partition == partition(hub="localhost/telemetry")


def test_a_checkpoint_of_the_sdk_moves_nothing(kept: MemoryStore, checkpoints: SqlCheckpointStore) -> None:
    own = stream_of(*NAMES).partition(PartitionId("0"))
    kept.commit_batch(commit(kept.read_partition(own), 0, 4))
    before = kept.read_partition(own), list(asyncio.run(checkpoints.list_checkpoints(*NAMES)))
    asyncio.run(checkpoints.update_checkpoint({**wanted(), "offset": "640", "sequence_number": 10}))
    assert (kept.read_partition(own), list(asyncio.run(checkpoints.list_checkpoints(*NAMES)))) == before


class TestAnEvenShare:
    """The SDK leaves 8 partitions among three owners at 4, 2, 2."""

    def owned(self, checkpoints: SqlCheckpointStore, shares: str) -> dict[str, list[dict[str, Any]]]:
        for number, owner_id in enumerate(shares):
            claim(checkpoints, wanted(str(number), owner_id))
        return {owner: [each for each in listed(checkpoints) if each["owner_id"] == owner] for owner in set(shares)}

    def shares(self, checkpoints: SqlCheckpointStore) -> str:
        return "".join(sorted(each["owner_id"] or "-" for each in listed(checkpoints)))

    def test_an_owner_with_too_many_gives_one_away_when_it_renews(self, checkpoints: SqlCheckpointStore) -> None:
        own = self.owned(checkpoints, "aaaabbcc")["a"]
        assert len(claim(checkpoints, *own)) == 3
        assert self.shares(checkpoints) == "-aaabbcc"

    def test_what_was_given_away_goes_to_one_that_lacks_it(self, checkpoints: SqlCheckpointStore) -> None:
        claim(checkpoints, *self.owned(checkpoints, "aaaabbcc")["a"])
        (free,) = [each for each in listed(checkpoints) if not each["owner_id"]]
        assert len(claim(checkpoints, {**free, "owner_id": "b"})) == 1
        assert self.shares(checkpoints) == "aaabbbcc"

    @pytest.mark.parametrize("shares", ["aaaaaaaa", "aaaabbbb", "aaabbbcc"])
    def test_owners_with_an_even_share_keep_it(self, checkpoints: SqlCheckpointStore, shares: str) -> None:
        for own in self.owned(checkpoints, shares).values():
            listed(checkpoints)
            assert len(claim(checkpoints, *own)) == len(own)
        assert self.shares(checkpoints) == shares

    def test_a_release_is_no_renewal(self, checkpoints: SqlCheckpointStore) -> None:
        own = self.owned(checkpoints, "aaaabbcc")["a"]
        claim(checkpoints, {**own[0], "owner_id": ""})
        assert self.shares(checkpoints) == "-aaabbcc"


def test_in_a_new_incarnation_every_link_is_closed_before_it_is_claimed(
    kept: MemoryStore, checkpoints: SqlCheckpointStore
) -> None:
    stream = stream_of(*NAMES)
    kept.commit_batch(commit(kept.read_partition(stream.partition(PartitionId("0"))), 0, 4))
    (before,) = (listed(checkpoints), claim(checkpoints, wanted()))[1:]
    opening = Opening(
        kept.read_incarnation(stream), stream, NOON, {PartitionId("0"): SequenceNumber(0)}, "a", "b", NOON
    )
    Incarnations(kept.database, Partitions(kept.database)).open_incarnation(opening)
    assert listed(checkpoints) == []
    assert claim(checkpoints, {**before[0], "owner_id": ""}) == []
    assert claim(checkpoints, wanted()) == []
    assert listed(checkpoints) == []
    assert len(claim(checkpoints, wanted())) == 1
    assert list(asyncio.run(checkpoints.list_checkpoints(*NAMES))) == []
