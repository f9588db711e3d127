"""The hash of partition keys against the values that the .NET, Java and Python clients test theirs with."""

from hypothesis import given
from hypothesis import strategies as st

from local.event_hubs.events import key_hash, partition_index

# The hashes are those of PartitionResolverTests.cs in azure-sdk-for-net.
KNOWN = {
    "7": -15263,
    "131": 30562,
    "7149583486996073602": 12977,
    "FWfAT": -22341,
    "sOdeEAsyQoEuEFPGerWO": -6503,
    "FAyAIctPeCgmiwLKbJcyswoHglHVjQdvtBowLACDNORsYvOcLddNJYDmhAVkbyLOrHTKLneMNcbgWVlasVywOByANjs": 5226,
    "!c*_!I@1^c": 15372,
    "p4*!jioeO/z-!-;w:dh": -3104,
    "$0cb": 26269,
    "-4189260826195535198": 453,
}


def test_a_key_has_the_hash_that_every_client_computes() -> None:
    assert {key: key_hash(key) for key in KNOWN} == KNOWN


def test_the_sign_of_the_hash_is_dropped_after_the_division_as_in_c_sharp() -> None:
    for count in (1, 4, 5, 16, 32):
        truncated = [abs(known) % count for known in KNOWN.values()]  # C#: Math.Abs(hash % count)
        assert [partition_index(key, count) for key in KNOWN] == truncated


def test_a_key_is_hashed_as_utf_8() -> None:
    assert key_hash("ä") != key_hash("\xc3\xa4")
    assert partition_index("ä", 32) in range(32)


@given(st.text(max_size=50), st.integers(1, 100))
def test_a_key_always_has_one_partition(key: str, count: int) -> None:
    assert partition_index(key, count) == partition_index(key, count) < count


def test_the_empty_key_has_a_partition() -> None:
    assert partition_index("", 4) == 0


def test_keys_spread_evenly_over_partitions() -> None:
    placed = [partition_index(f"home-{number}", 16) for number in range(16_000)]
    assert all(850 < placed.count(partition) < 1150 for partition in range(16))
