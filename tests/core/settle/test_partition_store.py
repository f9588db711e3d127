from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from core.errors import CheckpointConflict, DataRefused, StopReason
from core.ingest.stalled_partitions import HubEnd
from core.ledger.store import Ledger
from core.model.commits import BatchCommit, Checkpoint, GapStatus, PartitionState, PartitionStop, SequenceGap, Settled
from core.model.events import SequenceNumber, span
from core.model.letters import LetterOutcome, RetryCommit
from core.model.rows import Row
from core.model.transforms import unknown_fields_of
from core.store.database import OneStream
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.fakes import builders
from tests.fakes.builders import EPOCH, NOON, alert, claim, commit, event, home, letter, partition, reading, settled
from tests.fakes.faulty_database import NotedDatabase
from tests.fakes.kept import Engine, KeptRow
from tests.fakes.store import Store, open_next

P = partition()


def everything(engine: Engine) -> tuple[object, ...]:
    return (*(engine.rows(each) for each in (SensorReading, HomeAlert, Home)), engine.letters(), engine.ledger())


def checkpoint_of(store: Store) -> Checkpoint:
    checkpoint = store.read_partition(P).checkpoint
    assert checkpoint is not None
    return checkpoint


def follow(store: Store, first: int, last: int, outcome: Settled | None = None) -> int:
    return store.commit_batch(commit(store.read_partition(P), first, last, outcome))


def test_each_hub_and_each_consumer_group_is_a_stream_with_one_number(make_store: Callable[[], Store]) -> None:
    one, other = make_store(), make_store()
    places = [P, partition(group="other"), partition(hub="namespace/other"), partition(hub="other/telemetry")]
    assert len({one.read_partition(place).stream_id for place in places}) == 4
    assert one.read_partition(P).stream_id == other.read_partition(partition("7")).stream_id
    hostile = ["", " ", "'; DROP TABLE home; --", "%_\\\"'`$1 ?1 :x @y", "a\nb\r\tc\x01\x1f", "👩‍👩", "a\x00b\uffff"]
    for text in hostile:
        place = partition(hub=f"namespace/{text}", group=text)
        one.commit_batch(commit(one.read_partition(place), 0, 0))
        assert [ledger.partition for ledger in other.read_ledgers(place.stream)] == [place]


def test_the_checkpoint_counts_the_events_with_an_unknown_field_once_a_commit(make_store: Callable[[], Store]) -> None:
    store, other = make_store(), make_store()
    for first, names in ((0, {"coupon": 2}), (5, {}), (10, {"coupon": 1, "gift – 🎁": 3})):
        outcome = replace(settled({}, filtered=5), unknown_fields=names)
        planned = commit(store.read_partition(P), first, first + 4, outcome)
        store.commit_batch(planned)
        other.forget_partition(P)
        with pytest.raises(CheckpointConflict):
            other.commit_batch(planned)
    for reader in (store, other):
        reader.forget_partition(P)
        assert unknown_fields_of(checkpoint_of(reader).unknown_fields) == {"coupon": 3, "gift – 🎁": 3}


def test_rows_are_kept_with_their_position(store: Store, engine: Engine) -> None:
    placed: dict[int, list[Row]] = {0: [reading("a"), alert("a")], 1: [home("b", armed=True)]}
    follow(store, 0, 6, settled(placed, letters=[letter(event(2))], filtered=4))
    place = (store.read_partition(P).stream_id, "0")
    assert engine.rows(SensorReading) == [KeptRow(*place, 0, 0, 1, reading("a"))]
    assert engine.rows(HomeAlert) == [KeptRow(*place, 0, 1, 1, alert("a"))]
    assert engine.rows(Home) == [KeptRow(*place, 1, None, 1, home("b", armed=True))]
    (kept,) = engine.ledger()
    assert (kept.first, kept.last, kept.commit_number, kept.committed_at) == (0, 6, 1, NOON)
    assert (kept.written, kept.filtered, kept.dead_lettered, kept.rows_written) == (2, 4, 1, 3)
    assert (kept.transform_version, kept.invocation_id) == ("test/1", "invocation-1")


@pytest.mark.parametrize("behind", [0, 1, 3])
def test_a_commit_from_a_stale_state_is_refused(make_store: Callable[[], Store], engine: Engine, behind: int) -> None:
    owner, zombie = make_store(), make_store()
    for number in range(behind):
        follow(owner, number, number)
    stale = zombie.read_partition(P)
    follow(owner, behind, behind, settled({behind: [home("a", armed=True)]}))
    before = everything(engine)
    rows = settled({behind: [reading(), alert(), home("a")]}, letters=[letter(event(behind + 1))])
    with pytest.raises(CheckpointConflict) as conflict:
        zombie.commit_batch(commit(stale, behind, behind + 1, rows))
    assert conflict.value.expected == (behind - 1 if behind else None)
    assert everything(engine) == before
    assert checkpoint_of(zombie) == checkpoint_of(owner)
    ahead = commit(zombie.read_partition(P), behind + 1, behind + 1).state_after(9)
    with pytest.raises(CheckpointConflict):  # it expects more than is there
        zombie.commit_batch(commit(ahead, behind + 2, behind + 2))
    assert follow(zombie, behind + 1, behind + 1) == behind + 2, "a conflict leaves the store usable"


REFUSALS: dict[str, Row] = {
    "a letter beyond ASCII in a text of ASCII": replace(reading(), state="offén"),
    "a lone surrogate in a row": home(time_zone="\ud800"),
    "a time without a zone": reading(at=datetime(2026, 1, 1)),  # noqa: DTZ001
    "a time after the last year in UTC": reading(at=datetime.max.replace(tzinfo=timezone(-timedelta(hours=5)))),
    "a time before the first year in UTC": reading(at=datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))),
    "nothing where something must be": home(time_zone=None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refused_data_leaves_nothing_written(store: Store, engine: Engine, case: str) -> None:
    follow(store, 0, 0, settled({0: [home("a")]}))
    before, state = everything(engine), store.read_partition(P)
    rows = settled({1: [home("a", armed=True), reading(), alert()], 2: [REFUSALS[case]]}, letters=[letter(event(3))])
    with pytest.raises(DataRefused):
        store.commit_batch(commit(state, 1, 3, rows))
    assert everything(engine) == before
    assert store.read_partition(P) == state
    assert store.commit_batch(commit(state, 1, 3)) == 2


@pytest.mark.parametrize(
    ("outcome", "first"),
    [
        pytest.param(settled({0: [reading()]}), 1, id="a row at a position that is taken"),
        pytest.param(settled({}, letters=[letter(event(0))]), 1, id="a second letter of one event"),
        pytest.param(settled({}, filtered=1), 0, id="a range that begins where another began"),
    ],
)
def test_what_is_there_already_is_refused(store: Store, engine: Engine, outcome: Settled, first: int) -> None:
    follow(store, 0, 0, outcome)
    before = everything(engine)
    with pytest.raises(DataRefused):
        follow(store, first, 1, outcome if first else None)
    assert everything(engine) == before


@pytest.mark.parametrize("reason", ["outage", "store", "trigger"])
def test_a_stop_keeps_its_first_time_counts_its_attempts_and_bears_others(store: Store, reason: StopReason) -> None:
    state = store.read_partition(P)
    store.note_stop(state, reason, "it failed 5 times", NOON)
    store.note_stop(state, reason, "it failed 6 times", NOON + timedelta(minutes=1))
    store.note_stop(state, "held", "ü" * 5_000, NOON)
    again = PartitionStop(reason, "it failed 6 times", 2, NOON)
    state = store.read_partition(P)
    assert set(state.stops) == {PartitionStop("held", "ü" * 2_000, 1, NOON), again}, "a detail is cut"
    assert (state.stop_for(reason), state.stop_for("incarnation")) == (again, None)
    assert store.read_partition(partition("1")).stops == ()
    assert again in [one.stop for one in Ledger(OneStream(store.database, P.stream)).read_stops()]
    store.clear_stops(state, ["held"])
    assert store.read_partition(P).stops == (again,)
    store.clear_stops(state, [reason])
    store.note_stop(state, "held", "x" + "👩" * 2_000, NOON)  # two UTF-16 units each, as the server counts
    assert [stop.detail for stop in store.read_partition(P).stops] == ["x" + "👩" * 999]


def test_a_commit_ends_the_stops_that_it_names_and_leaves_the_others(store: Store) -> None:
    state = begun(store)
    reasons: tuple[StopReason, ...] = ("outage", "held", "incarnation")
    for reason in reasons:
        store.note_stop(state, reason, "it was met", NOON)
    store.commit_batch(replace(commit(store.read_partition(P), 0, 4), ends=("outage", "held")))
    assert [stop.reason for stop in store.read_partition(P).stops] == ["incarnation"]


number = SequenceNumber


def part(first: int, last: int, status: GapStatus) -> SequenceGap:
    return SequenceGap(number(first), number(last), status)


def with_absent(
    state: PartitionState, first: int, last: int, absent: int, gaps: Sequence[SequenceGap] = ()
) -> BatchCommit:
    """A commit of which so many numbers are absent. The events were filtered."""
    filtered = settled({}, filtered=last - first + 1 - absent)
    return replace(commit(state, first, last, filtered), absent=absent, gaps=gaps)


def rows(engine: Engine) -> list[tuple[int, int, str, int]]:
    return [(kept.first, kept.last, kept.status, kept.attempts) for kept in engine.gaps()]


def begun(store: Store, of: str = "0", anchor: int = 0) -> PartitionState:
    return store.anchor_partition(store.read_partition(partition(of)), number(anchor), NOON)


def test_the_anchor_of_a_partition_stays_whoever_asks(make_store: Callable[[], Store]) -> None:
    one, other, before = make_store(), make_store(), datetime.now(UTC)
    early = other.read_partition(P)
    assert early.anchor is None and early.opened_at is not None
    assert before - timedelta(seconds=5) <= early.opened_at <= datetime.now(UTC) + timedelta(seconds=5)
    assert one.read_partition(partition("7")).opened_at == early.opened_at
    state = begun(one, anchor=2**62)
    assert (state.anchor, state.next_number, state.checkpoint) == (2**62, 2**62, None)
    assert other.read_partition(P) == other.anchor_partition(early, number(5), NOON) == state
    stores = [one, other, make_store(), make_store()]
    state = one.read_partition(partition("1"))
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda at: stores[at].anchor_partition(state, number(at), NOON).anchor, range(4))
        assert len(set(found)) == 1


def test_a_first_range_that_does_not_begin_at_the_anchor_is_a_hole(store: Store) -> None:
    for id, first in (("0", 3), ("1", 4)):
        store.commit_batch(commit(begun(store, id, anchor=3), first, 9))
    assert [books.balanced for books in store.read_books()] == [True, False]


def test_absent_numbers_belong_to_the_range_and_are_counted(store: Store, engine: Engine) -> None:
    outcome = settled({7: [reading()]}, letters=[letter(event(8))], filtered=1)
    store.commit_batch(replace(commit(store.read_partition(P), 4, 9, outcome), absent=3))
    (kept,) = engine.ledger()
    assert (kept.first, kept.last, kept.written, kept.filtered) == (4, 9, 1, 1)
    assert (kept.dead_lettered, kept.absent) == (1, 3)
    end = HubEnd(number(2**40), "256", EPOCH + timedelta(days=3))
    gone = replace(with_absent(store.read_partition(P), 10, 2**40, 2**40 - 9), last=end)
    assert store.commit_batch(gone) == 2, "a range may be absent altogether"
    checkpoint = checkpoint_of(store)
    assert (checkpoint.sequence_number, checkpoint.offset, checkpoint.enqueued_at) == (2**40, "256", end.enqueued_at)
    follow(store, 2**40 + 1, 2**40 + 1)
    (books,) = store.read_ledgers()
    assert (books.accounted, books.absent, books.balanced) == (2**40 - 2, 2**40 - 6, True)


def test_a_gap_that_was_found_is_open_and_each_further_try_counts(store: Store, engine: Engine) -> None:
    state, noted = begun(store), NotedDatabase(store.database)
    for at in range(3):
        Store(noted).note_gap(state, span(5, 9 + at), EPOCH + timedelta(hours=at))
    assert noted.calls == ["lock_partition"] * 3, "a note is one call that reads nothing before"
    assert rows(engine) == [(5, 11, "open", 3)]
    (kept,) = engine.gaps()
    assert (kept.found_at, kept.stream_id, kept.partition_id) == (EPOCH, state.stream_id, "0")


def test_a_gap_of_a_stale_state_or_of_a_closed_stream_is_none(make_store: Callable[[], Store], engine: Engine) -> None:
    one, other = make_store(), make_store()
    stale = begun(one)
    follow(other, 0, 4)
    committed = one.read_partition(P)
    follow(other, 5, 9)
    current = other.read_partition(P)
    open_next(other)
    for state, first in ((stale, 0), (committed, 5), (current, 10)):
        with pytest.raises(CheckpointConflict):
            one.note_gap(state, span(first, first + 4), EPOCH)
    assert rows(engine) == []


@pytest.mark.parametrize("is_first", [True, False])
def test_a_gap_that_another_owner_has_just_settled_stays_settled(store: Store, engine: Engine, is_first: bool) -> None:
    """The note compares the checkpoint itself, so there is no moment between a look and the note."""
    state, begin = begun(store), 0
    if not is_first:
        store.commit_batch(commit(state, 0, 4))
        state, begin = store.read_partition(P), 5
    store.commit_batch(with_absent(state, begin, begin + 4, 5, [part(begin, begin + 4, "absent")]))
    # a row begins at the first number, none at the second, and the third is later, but its state is stale too
    for missing in (span(begin, begin + 4), span(begin + 2, begin + 4), span(begin + 5, begin + 9)):
        with pytest.raises(CheckpointConflict):
            store.note_gap(state, missing, NOON)
    assert rows(engine) == [(begin, begin + 4, "absent", 1)]


def test_a_retry_of_letters_makes_no_state_stale(store: Store, engine: Engine) -> None:
    builders.keep_letters(store, {4: "a"})
    state = store.read_partition(P)
    store.claim_letters(claim())
    filtered = (LetterOutcome(number(4), "resolved", why="it was filtered"),)
    store.commit_retry(RetryCommit(state, "claim-1", filtered, settled({}, filtered=1), "test/2", "i-2", NOON))
    store.note_gap(state, span(5, 9), EPOCH)
    assert store.commit_batch(with_absent(state, 5, 9, 5, [part(5, 9, "absent")])) == 3
    assert rows(engine) == [(5, 9, "absent", 1)]
    assert [books.balanced for books in store.read_ledgers()] == [True]


def test_the_parts_of_a_gap_take_its_place_within_the_commit(store: Store, engine: Engine) -> None:
    follow(store, 0, 4)
    state = store.read_partition(P)
    store.note_gap(state, span(5, 20), EPOCH)
    store.commit_batch(with_absent(state, 5, 9, 2, [part(5, 6, "absent"), part(7, 9, "healed"), part(10, 20, "open")]))
    assert rows(engine) == [(5, 6, "absent", 1), (7, 9, "healed", 1), (10, 20, "open", 1)]
    assert [kept.found_at for kept in engine.gaps()] == [EPOCH, NOON, NOON]
    many = [part(at, at, "absent" if at % 2 else "healed") for at in range(500)]
    store.commit_batch(with_absent(store.read_partition(partition("1")), 0, 499, 250, many))
    assert [row[:3] for row in rows(engine)[3:]] == [(one.first, one.last, one.status) for one in many]


def test_a_conflict_or_a_gap_that_ends_before_it_begins_leaves_the_gap_as_it_was(store: Store, engine: Engine) -> None:
    stale = begun(store)
    store.note_gap(stale, span(0, 4), EPOCH)
    with pytest.raises(DataRefused):
        store.commit_batch(with_absent(stale, 0, 4, 5, [part(3, 2, "absent")]))
    assert engine.ledger() == []
    store.commit_batch(commit(stale, 0, 1))
    with pytest.raises(CheckpointConflict):
        store.commit_batch(with_absent(stale, 0, 4, 5, [part(0, 4, "absent")]))
    assert rows(engine) == [(0, 4, "open", 1)]


def test_open_gaps_up_to_the_checkpoint_are_closed_and_no_others(store: Store, engine: Engine) -> None:
    for id in ("0", "1"):
        state = begun(store, id)
        for first, last in ((0, 4), (5, 9), (10, 15)):
            store.note_gap(state, span(first, last), EPOCH)
        store.commit_batch(with_absent(state, 0, 11, 3, [part(0, 2, "absent")]))
    store.close_gaps(P)
    here = [(0, 2, "absent", 1), (5, 9, "healed", 1), (10, 15, "open", 1)]
    assert rows(engine) == [*here, (0, 2, "absent", 1), (5, 9, "open", 1), (10, 15, "open", 1)]
