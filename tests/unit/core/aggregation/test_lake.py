"""core/aggregation/lake.py: what the pointer lists after which runs."""

from dataclasses import replace

import pytest

from core.aggregation.lake import LISTED, LakeRun, Pointer, empty_pointer, needs_snapshot, pointer_after
from core.aggregation.runs import NO_CUT, AggregationRun, Cut
from tests.fakes.builders import EPOCH


def cut(number: int) -> Cut:
    return Cut(f'{{"1/0":{number}}}') if number else NO_CUT


def run(number: int, since: int | None = None, path: str | None = "", **more: bool) -> AggregationRun:
    """A committed run from the cut before it; its number is its cut."""
    begin = cut(number - 1 if since is None else since)
    place = f"/lake/run={number}" if path == "" else path
    made = AggregationRun(f"r{number}", "job", number, begin, cut(number), "local", 1, 1, "committed", EPOCH, EPOCH)
    return replace(made, lake_path=place, **more)  # type: ignore[arg-type]


def listed(pointer: Pointer) -> list[int]:
    return [one.number for one in pointer.runs]


def after(*runs: AggregationRun) -> Pointer:
    return pointer_after(empty_pointer("job"), runs, "/lake")


def test_runs_are_listed_in_the_order_in_which_they_follow_each_other() -> None:
    pointer = after(run(1), run(2))
    assert (listed(pointer), pointer.number, pointer.cut) == ([1, 2], 2, cut(2))
    assert pointer.runs[0] == LakeRun("r1", 1, "run=1")


def test_a_run_that_failed_between_two_leaves_no_gap() -> None:
    assert listed(after(run(1), run(3, since=1))) == [1, 3]


@pytest.mark.parametrize("path", [None, "/other/run=2"])
def test_the_list_ends_before_a_run_that_is_not_in_this_lake(path: str | None) -> None:
    pointer = after(run(1), run(2, path=path), run(3))
    assert (listed(pointer), pointer.cut) == ([1], cut(1))
    assert needs_snapshot(pointer, run(4))


def test_a_snapshot_needs_nothing_before_it() -> None:
    pointer = after(run(1), run(2, path=None), run(3, is_snapshot=True), run(4))
    assert (listed(pointer), pointer.cut) == ([3, 4], cut(4))
    assert not needs_snapshot(pointer, run(5))


def test_nothing_is_listed_twice() -> None:
    pointer = after(run(1))
    assert pointer_after(pointer, [run(1)], "/lake") == pointer


def test_a_list_that_is_long_asks_for_a_snapshot() -> None:
    pointer = after(*(run(number) for number in range(1, LISTED)))
    assert not needs_snapshot(pointer, run(LISTED))
    assert needs_snapshot(after(*(run(number) for number in range(1, LISTED + 1))), run(LISTED + 1))


def test_a_pointer_is_the_same_after_a_way_through_json() -> None:
    pointer = after(run(1), run(2))
    assert Pointer.of_json(pointer.to_json()) == pointer


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b'{"job": 1}'])
def test_what_is_no_pointer_is_refused(text: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        Pointer.of_json(text)
