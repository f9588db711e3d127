"""Promises of every store about ownership: compare and set on the etag, so that one of several claimers wins."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from core.model.events import Partition
from core.worker.ownership import Ownership
from tests.contract.separate import output, start
from tests.fakes.builders import EPOCH, STREAM, commit, partition
from tests.fakes.kept import PersistentEngine
from tests.fakes.store import Store

P = partition()
NEVER_OWNED = None


def owned(owner_id: str, etag: str, place: Partition = P) -> Ownership:
    return Ownership(place, owner_id, etag, EPOCH + timedelta(microseconds=123_457))


@pytest.fixture
def owners(store: Store) -> Store:
    return store


def test_a_stream_without_owners_has_no_ownerships(owners: Store) -> None:
    assert owners.read_ownerships(P.stream) == ()


def test_a_claim_is_kept_as_it_is(owners: Store) -> None:
    assert owners.claim_ownership(owned("one", "etag-1"), NEVER_OWNED)
    assert owners.read_ownerships(P.stream) == (owned("one", "etag-1"),)


def test_a_partition_that_is_owned_cannot_be_claimed_as_if_it_never_was(owners: Store) -> None:
    owners.claim_ownership(owned("one", "etag-1"), NEVER_OWNED)
    assert not owners.claim_ownership(owned("other", "etag-2"), NEVER_OWNED)
    assert owners.read_ownerships(P.stream) == (owned("one", "etag-1"),)


def test_the_etag_that_stands_renews_and_an_older_one_does_not(owners: Store) -> None:
    owners.claim_ownership(owned("one", "etag-1"), NEVER_OWNED)
    assert owners.claim_ownership(owned("other", "etag-2"), "etag-1")
    assert not owners.claim_ownership(owned("one", "etag-3"), "etag-1")
    assert owners.read_ownerships(P.stream) == (owned("other", "etag-2"),)


def test_an_etag_renews_nothing_where_nothing_was_owned(owners: Store) -> None:
    assert not owners.claim_ownership(owned("one", "etag-1"), "etag-0")
    assert owners.read_ownerships(P.stream) == ()


def test_a_release_stays_listed_and_can_be_claimed_by_its_etag(owners: Store) -> None:
    owners.claim_ownership(owned("one", "etag-1"), NEVER_OWNED)
    assert owners.claim_ownership(owned("", "etag-2"), "etag-1")
    assert owners.read_ownerships(P.stream) == (owned("", "etag-2"),)
    assert owners.claim_ownership(owned("other", "etag-3"), "etag-2")


def test_streams_and_partitions_are_owned_apart(owners: Store) -> None:
    places = [P, partition("10"), partition(group="other"), partition(hub="namespace/other")]
    for number, place in enumerate(places):
        assert owners.claim_ownership(owned("one", f"etag-{number}", place), NEVER_OWNED)
    assert {one.partition for one in owners.read_ownerships(STREAM)} == {P, partition("10")}
    assert [one.partition for one in owners.read_ownerships(places[2].stream)] == [places[2]]


def test_an_ownership_is_seen_by_others_at_once(make_store: Callable[[], Store]) -> None:
    one, other = make_store(), make_store()
    one.claim_ownership(owned("one", "etag-1"), NEVER_OWNED)
    assert other.read_ownerships(P.stream) == (owned("one", "etag-1"),)


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


def test_checkpoints_are_those_of_the_commits_and_their_offsets_are_texts(store: Store, owners: Store) -> None:
    assert dict(owners.read_checkpoints(P.stream)) == {}
    for place, last in ((P, 4), (partition("10"), 0)):
        store.commit_batch(commit(store.read_partition(place), 0, last))
    other = partition(group="other")
    store.commit_batch(commit(store.read_partition(other), 0, 9))
    assert dict(owners.read_checkpoints(P.stream)) == {"0": (4, "256"), "10": (0, "0")}
    assert dict(owners.read_checkpoints(other.stream)) == {"0": (9, "576")}


def test_claims_of_one_moment_differ_by_their_etags(owners: Store) -> None:
    first = owned("one", "etag-1")
    owners.claim_ownership(first, NEVER_OWNED)
    owners.claim_ownership(replace(first, etag="etag-2"), "etag-1")
    assert not owners.claim_ownership(replace(first, owner_id="other", etag="etag-9"), "etag-1")


@pytest.mark.slow
def test_processes_that_race_for_partitions_win_each_once(persistent: PersistentEngine) -> None:
    running = [start("claiming_process", persistent, owner_id) for owner_id in ("one", "other", "third")]
    won = [partition_id for each in running for partition_id in json.loads(output(each))]
    assert sorted(won) == sorted(map(str, range(200)))
