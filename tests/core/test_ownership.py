"""core/worker/ownership.py: an owner's surplus partitions, and those that it releases when it ends."""

import asyncio
import threading

import pytest

from core.model.events import stream_of
from core.worker.ownership import Ownership, SqlCheckpointStore, surplus
from tests.fakes.builders import EPOCH, partition
from tests.fakes.memory_store import MemoryStore
from tests.patience import allowed


def standing(*owners: str) -> list[Ownership]:
    return [Ownership(partition(str(number)), owner, "etag", EPOCH) for number, owner in enumerate(owners)]


@pytest.mark.parametrize(
    ("owners", "too_many"),
    [
        ("", 0),
        ("aaaaaaaa", 0),
        ("aaaabbcc", 1),
        ("aaabbbcc", 0),
        ("aaaabbbb", 0),
        ("aaaaaabc", 3),
        ("bbbbcccc", 0),
        ("ab", 0),
        ("aab", 0),
    ],
)
def test_an_owner_has_too_many_above_the_rounded_up_share(owners: str, too_many: int) -> None:
    assert surplus(standing(*owners), "a") == too_many


def test_released_partitions_have_no_owner_and_still_count() -> None:
    assert surplus(standing("a", "a", "a", "", "b"), "a") == 0
    assert surplus(standing("a", "a", "a", "a", "", "b"), "a") == 1


CLAIM = {
    "fully_qualified_namespace": "ns",
    "eventhub_name": "telemetry",
    "consumer_group": "hubledger",
    "partition_id": "0",
}


class SlowOwnerships(MemoryStore):
    """A store whose claims wait until the test lets them continue."""

    def __init__(self) -> None:
        super().__init__()
        self.claiming, self.go_on = threading.Event(), threading.Event()

    def claim_ownership(self, ownership: Ownership, expected_etag: str | None) -> bool:
        self.claiming.set()
        assert self.go_on.wait(allowed(10))
        return super().claim_ownership(ownership, expected_etag)


def owners_of(store: MemoryStore) -> list[str]:
    return [one.owner_id for one in store.read_ownerships(stream_of("ns", "telemetry", "hubledger"))]


def test_a_claim_that_wins_after_its_cancellation_is_released() -> None:
    store = SlowOwnerships()

    async def cancelled() -> None:
        own = SqlCheckpointStore(store)
        claiming = asyncio.ensure_future(own.claim_ownership([{**CLAIM, "owner_id": "a"}]))
        await asyncio.to_thread(store.claiming.wait, 10)
        claiming.cancel()
        releasing = asyncio.ensure_future(own.release_all())
        store.go_on.set()
        await releasing

    asyncio.run(cancelled())
    assert owners_of(store) == [""]


def test_a_release_leaves_the_partitions_of_peers_and_no_claim_wins_after_it() -> None:
    store = MemoryStore()

    async def released() -> list[object]:
        own, peer = SqlCheckpointStore(store), SqlCheckpointStore(store)
        await own.claim_ownership([{**CLAIM, "owner_id": "a"}])
        await peer.claim_ownership([{**CLAIM, "partition_id": "1", "owner_id": "b"}])
        await own.release_all()
        return list(await own.claim_ownership([{**CLAIM, "partition_id": "2", "owner_id": "a"}]))

    assert asyncio.run(released()) == []
    assert owners_of(store) == ["", "b"]


def test_an_owner_that_never_claimed_releases_nothing() -> None:
    store = MemoryStore()
    asyncio.run(SqlCheckpointStore(store).release_all())
    assert owners_of(store) == []


def test_each_balancing_is_a_sign_of_life() -> None:
    beats: list[bool] = []
    own = SqlCheckpointStore(MemoryStore(), beat=lambda: beats.append(True))
    asyncio.run(own.list_ownership("ns", "telemetry", "hubledger"))
    assert beats == [True]
