"""core/ownership.py: how many partitions an owner has too many."""

import pytest

from core.store.ownership import Ownership, surplus
from tests.fakes.builders import EPOCH, partition


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
