"""Promises of every store about partitions that are stopped on purpose."""

from dataclasses import replace
from datetime import timedelta

import pytest

from core.errors import StopReason
from core.ledger.store import Ledger
from core.model.commits import PartitionStop
from core.model.events import SequenceNumber
from core.store.database import OneStream
from tests.fakes.builders import EPOCH, commit, partition, settled
from tests.fakes.store import Store

P = partition()
LATER = EPOCH + timedelta(days=1)


def test_a_partition_has_no_stop_until_one_is_noted(store: Store) -> None:
    assert store.read_partition(P).stops == ()


def test_a_stop_keeps_its_first_time_and_counts_its_attempts(store: Store) -> None:
    state = store.read_partition(P)
    store.note_stop(state, "outage", "40 of 50 events fail", LATER)
    store.note_stop(state, "outage", "45 of 50 events fail", LATER + timedelta(minutes=1))
    state = store.read_partition(P)
    assert state.stops == (PartitionStop("outage", "45 of 50 events fail", 2, LATER),)
    assert state.stop_for("incarnation") is None
    assert store.read_partition(partition("1")).stops == ()


def test_a_stop_is_cleared_alone(store: Store) -> None:
    state = store.read_partition(P)
    store.note_stop(state, "outage", "all fail", LATER)
    store.note_stop(state, "incarnation", "a new hub", LATER)
    store.clear_stops(store.read_partition(P), ["outage"])
    assert [stop.reason for stop in store.read_partition(P).stops] == ["incarnation"]


@pytest.mark.parametrize("reason", ["store", "trigger"])
def test_a_fault_that_repeats_and_a_standstill_are_stops_among_others(store: Store, reason: StopReason) -> None:
    state = store.read_partition(P)
    store.note_stop(state, reason, "it failed 5 times", LATER)
    store.note_stop(state, reason, "it failed 6 times", LATER + timedelta(minutes=1))
    store.note_stop(state, "held", "too many", LATER)
    again = PartitionStop(reason, "it failed 6 times", 2, LATER)
    assert store.read_partition(P).stops == (PartitionStop("held", "too many", 1, LATER), again)
    ledger = Ledger(OneStream(store.database, P.stream))
    assert ledger.read_stops()[P.partition_id][1] == again
    store.clear_stops(state, ["held"])
    assert store.read_partition(P).stops == (again,)
    store.clear_stops(state, [reason])
    assert store.read_partition(P).stops == ()


def test_a_commit_leaves_the_stop(store: Store) -> None:
    state = store.anchor_partition(store.read_partition(P), SequenceNumber(0), LATER)
    store.note_stop(state, "outage", "all fail", LATER)
    store.commit_batch(commit(store.read_partition(P), 0, 4, settled({}, filtered=5)))
    assert [stop.reason for stop in store.read_partition(P).stops] == ["outage"]


def test_a_commit_ends_the_stops_that_it_names_and_leaves_the_others(store: Store) -> None:
    state = store.anchor_partition(store.read_partition(P), SequenceNumber(0), LATER)
    reasons: tuple[StopReason, ...] = ("outage", "held", "incarnation")
    for reason in reasons:
        store.note_stop(state, reason, "it was met", LATER)
    known = store.read_partition(P)
    store.commit_batch(replace(commit(known, 0, 4, settled({}, filtered=5)), ends=("outage", "held")))
    assert [stop.reason for stop in store.read_partition(P).stops] == ["incarnation"]


def test_the_detail_of_a_stop_is_cut(store: Store) -> None:
    state = store.read_partition(P)
    store.note_stop(state, "held", "ü" * 5_000, LATER)
    assert store.read_partition(P).stops[0].detail == "ü" * 2_000
    store.note_stop(state, "outage", "x" + "👩" * 2_000, LATER)  # two UTF-16 units each, as the server counts
    assert store.read_partition(P).stops[1].detail == "x" + "👩" * 999
