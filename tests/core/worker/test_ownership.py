import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from core.model.events import Partition, stream_of
from core.worker.ownership import Ownership, SqlCheckpointStore, surplus
from tests.fakes.builders import EPOCH, STREAM, partition
from tests.fakes.store import MemoryStore, Store
from tests.patience import allowed

P = partition()
NEVER_OWNED = None


def owned(owner_id: str, etag: str, place: Partition = P) -> Ownership:
    return Ownership(place, owner_id, etag, EPOCH + timedelta(microseconds=123_457))


def test_a_claim_wins_only_by_the_etag_that_stands(store: Store) -> None:
    steps = [
        (("one", "etag-1"), "etag-0", False),  # an etag renews nothing where nothing was owned
        (("one", "etag-1"), NEVER_OWNED, True),
        (("other", "etag-2"), NEVER_OWNED, False),
        (("other", "etag-2"), "etag-1", True),
        (("one", "etag-3"), "etag-1", False),
        (("", "etag-4"), "etag-2", True),  # a release stays listed
        (("one", "etag-5"), "etag-4", True),
    ]
    stands: tuple[Ownership, ...] = ()
    assert store.read_ownerships(P.stream) == stands
    for claim, etag, wins in steps:
        assert store.claim_ownership(owned(*claim), etag) is wins, (claim, etag)
        stands = (owned(*claim),) if wins else stands
        assert store.read_ownerships(P.stream) == stands


def test_streams_and_partitions_are_owned_apart(store: Store) -> None:
    places = [P, partition("10"), partition(group="other"), partition(hub="namespace/other")]
    for number, place in enumerate(places):
        assert store.claim_ownership(owned("one", f"etag-{number}", place), NEVER_OWNED)
    assert {one.partition for one in store.read_ownerships(STREAM)} == {P, partition("10")}
    assert [one.partition for one in store.read_ownerships(places[2].stream)] == [places[2]]


@pytest.mark.parametrize("expected", [NEVER_OWNED, "etag-0"], ids=["never owned", "owned before"])
def test_exactly_one_of_many_claimers_wins(make_store: Callable[[], Store], expected: str | None) -> None:
    stores = [make_store() for _ in range(4)]
    for number in range(20):
        place = partition(str(number))
        if expected is not None:
            stores[0].claim_ownership(owned("before", expected, place), NEVER_OWNED)
        claims = [owned(str(each), f"etag-{each + 1}", place) for each in range(4)]
        with ThreadPoolExecutor(4) as pool:
            won = list(pool.map(lambda own, claim: own.claim_ownership(claim, expected), stores, claims))
        assert sum(won) == 1
        (stands,) = [one for one in stores[0].read_ownerships(P.stream) if one.partition == place]
        assert stands == claims[won.index(True)]


@pytest.mark.parametrize(
    ("owners", "too_many"),
    [
        ("", 0),
        ("aaaaaaaa", 0),
        ("aaaabbcc", 1),
        ("aaabbbcc", 0),
        ("aaaaaabc", 3),
        ("bbbbcccc", 0),
        ("ab", 0),
        ("aab", 0),
        ("aaa-b", 0),  # released partitions have no owner and still count
        ("aaaa-b", 1),
    ],
)
def test_an_owner_has_too_many_above_the_rounded_up_share(owners: str, too_many: int) -> None:
    names = ["" if owner == "-" else owner for owner in owners]
    standing = [Ownership(partition(str(number)), owner, "etag", EPOCH) for number, owner in enumerate(names)]
    assert surplus(standing, "a") == too_many


CLAIM = {
    "fully_qualified_namespace": "ns",
    "eventhub_name": "telemetry",
    "consumer_group": "hubledger",
    "partition_id": "0",
    "owner_id": "a",
}


def owners_of(store: MemoryStore) -> list[str]:
    return [one.owner_id for one in store.read_ownerships(stream_of("ns", "telemetry", "hubledger"))]


def test_a_claim_that_wins_after_its_cancellation_is_released() -> None:
    claiming, go_on = threading.Event(), threading.Event()

    class SlowOwnerships(MemoryStore):
        def claim_ownership(self, ownership: Ownership, expected_etag: str | None) -> bool:
            claiming.set()
            assert go_on.wait(allowed(10))
            return super().claim_ownership(ownership, expected_etag)

    async def cancelled() -> None:
        own = SqlCheckpointStore(store)
        running = asyncio.ensure_future(own.claim_ownership([CLAIM]))
        await asyncio.to_thread(claiming.wait, 10)
        running.cancel()
        releasing = asyncio.ensure_future(own.release_all())
        go_on.set()
        await releasing

    store = SlowOwnerships()
    asyncio.run(cancelled())
    assert owners_of(store) == [""]


def test_a_release_leaves_the_partitions_of_peers_and_no_claim_wins_after_it() -> None:
    store, beats = MemoryStore(), list[bool]()

    async def released() -> list[object]:
        own, peer = SqlCheckpointStore(store, beat=lambda: beats.append(True)), SqlCheckpointStore(store)
        await own.list_ownership("ns", "telemetry", "hubledger")
        await own.claim_ownership([CLAIM])
        await peer.claim_ownership([{**CLAIM, "partition_id": "1", "owner_id": "b"}])
        await own.release_all()
        return list(await own.claim_ownership([{**CLAIM, "partition_id": "2"}]))

    assert asyncio.run(released()) == []
    assert owners_of(store) == ["", "b"]
    assert beats == [True], "each balancing is a sign of life"
