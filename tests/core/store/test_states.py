"""Promises of every store about states: the newest stands, and references find exactly what stands."""

from collections.abc import Callable, Sequence

import pytest

from core.errors import DataRefused
from core.model.rows import ReferenceKey, Row
from examples.home_security.transform import Home
from tests.fakes.builders import commit, home, partition, reading, settled
from tests.fakes.kept import Engine
from tests.fakes.store import Store

P = partition()


def put(store: Store, placed: dict[int, Sequence[Row]], place: str = "0") -> None:
    """Commit rows by sequence number, without a gap."""
    first, last = min(placed), max(placed)
    outcome = settled(placed, filtered=last - first + 1 - len(placed))
    store.commit_batch(commit(store.read_partition(partition(place)), first, last, outcome))


def keys(*home_ids: str) -> list[ReferenceKey]:
    return [ReferenceKey(Home, (home_id,)) for home_id in home_ids]


def standing(store: Store) -> Row | None:
    return store.read_references(keys("home-1")).get(ReferenceKey(Home, ("home-1",)))


def test_of_two_commits_of_one_commit_and_of_one_event_the_last_state_stands(store: Store, engine: Engine) -> None:
    put(store, {0: [home(armed=False)]})
    put(store, {1: [home(armed=True)]})
    (kept,) = engine.rows(Home)
    assert (kept.row, kept.sequence_number, kept.commit_number) == (home(armed=True), 1, 2)
    put(store, {number: [home(time_zone=f"zone-{number}")] for number in range(2, 10)})
    (kept,) = engine.rows(Home)
    assert (kept.row, kept.sequence_number) == (home(time_zone="zone-9"), 9)
    put(store, {10: [home(armed=True), home(armed=False)]})
    assert standing(store) == home(armed=False)


@pytest.mark.parametrize("older", [0, 4])
def test_an_older_number_of_the_same_partition_never_overwrites(store: Store, engine: Engine, older: int) -> None:
    put(store, {5: [home(armed=True)]})
    late = settled({older: [home(armed=False)]})
    store.commit_batch(commit(store.read_partition(P), 6, 6, late))
    (kept,) = engine.rows(Home)
    assert (kept.row, kept.sequence_number, kept.commit_number) == (home(armed=True), 5, 1)


def test_another_partition_overwrites_whatever_its_number(store: Store, engine: Engine) -> None:
    put(store, {5: [home(armed=True)]})
    put(store, {2: [home(armed=False)]}, "1")
    (kept,) = engine.rows(Home)
    assert (kept.row, kept.partition_id, kept.sequence_number) == (home(armed=False), "1", 2)
    other = store.read_partition(partition(group="other"))  # as does another stream
    store.commit_batch(commit(other, 1, 1, settled({1: [home(armed=True)]})))
    assert [kept.row for kept in engine.rows(Home)] == [home(armed=True)]


def test_thousands_of_references_that_stand_are_found_in_one_call_and_others_left_out(store: Store) -> None:
    ids = [f"home-{number}" for number in range(5_000)]
    put(store, {number: [home(id, armed=True)] for number, id in enumerate(ids)})
    wanted = keys(*ids, "home-0", "", *(f"absent-{number}" for number in range(5_000)))
    assert dict(store.read_references(key for key in wanted)) == {
        ReferenceKey.of(home(id)): home(id, armed=True) for id in ids
    }
    assert dict(store.read_references([])) == {}


HOSTILE = (
    "",
    "'",
    '"',
    "a'; DROP TABLE home; --",
    "[]",
    '["a"]',
    "null",
    "1",
    "%",
    "\\u0041",
    "é",
    "e\u0301",
    "👩‍👩‍👧",
    "a\nb",
)


@pytest.mark.parametrize("home_id", HOSTILE, ids=ascii)
def test_hostile_keys_find_their_own_row_and_no_other(store: Store, home_id: str) -> None:
    put(store, {0: [home("a")], 1: [home("A")], 2: [home("\\u0041x")], 3: [home(home_id, "own")]})
    assert dict(store.read_references(keys(home_id))) == {ReferenceKey(Home, (home_id,)): home(home_id, "own")}


@pytest.mark.parametrize("home_id", ["\ud800", "a\udfffb", "x" * 1_000_000], ids=["surrogate", "surrogate2", "1 MB"])
def test_a_key_that_cannot_stand_finds_nothing(store: Store, home_id: str) -> None:
    put(store, {0: [home("a")]})
    assert dict(store.read_references(keys(home_id, "a"))) == {ReferenceKey.of(home("a")): home("a")}
    assert dict(store.read_references(keys(home_id))) == {}


@pytest.mark.parametrize("home_id", [" ", "a ", "a  ", "b\t "], ids=ascii)
def test_a_key_that_ends_with_a_space_is_refused_because_a_server_ignores_that_space(
    store: Store, engine: Engine, home_id: str
) -> None:
    with pytest.raises(DataRefused, match=r"the key home\.home_id ends with a space"):
        put(store, {0: [home("a")], 1: [home(home_id)]})
    assert engine.rows(Home) == []
    put(store, {0: [home("a")], 1: [home(" a"), home("b\t"), home("c", time_zone="a zone ")]})
    assert [kept.row.home_id for kept in engine.rows(Home) if isinstance(kept.row, Home)] == ["a", " a", "b\t", "c"]


def test_a_row_is_seen_by_other_owners_once_it_is_committed(make_store: Callable[[], Store]) -> None:
    one, other = make_store(), make_store()
    assert standing(other) is None
    put(one, {0: [home(armed=True), reading()]})
    assert standing(other) == home(armed=True)
