"""Promises of every store about a commit: once, whole, and only where the checkpoint is expected."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from msgspec import structs

from core.errors import CheckpointConflict, DataRefused, StopReason
from core.ledger.store import Ledger
from core.model.commits import PartitionStop, Settled
from core.model.events import SequenceNumber
from core.model.rows import Row
from core.model.transforms import unknown_fields_of
from core.store.database import OneStream
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.fakes.builders import EPOCH, alert, commit, event, home, letter, partition, reading, settled
from tests.fakes.kept import Engine, KeptRow
from tests.fakes.store import Store

P = partition()


def everything(engine: Engine) -> tuple[object, ...]:
    return (*(engine.rows(each) for each in (SensorReading, HomeAlert, Home)), engine.letters(), engine.ledger())


def test_a_stream_keeps_its_number_for_every_partition_and_owner(make_store: Callable[[], Store]) -> None:
    one, other = make_store(), make_store()
    assert one.read_partition(P).stream_id == other.read_partition(partition("7")).stream_id


def test_each_hub_and_each_consumer_group_is_a_separate_stream(store: Store) -> None:
    places = [P, partition(group="other"), partition(hub="namespace/other"), partition(hub="other/telemetry")]
    assert len({store.read_partition(place).stream_id for place in places}) == 4


def test_the_first_commit_sets_the_checkpoint_and_counts_as_one(store: Store) -> None:
    first = commit(store.read_partition(P), 0, 4)
    assert store.commit_batch(first) == 1
    assert store.read_partition(P) == first.state_after(1)


def test_the_checkpoint_counts_the_events_with_an_unknown_field_once_for_each_commit(
    make_store: Callable[[], Store],
) -> None:
    store, other = make_store(), make_store()
    for first, names in ((0, {"coupon": 2}), (5, {}), (10, {"coupon": 1, "gift – 🎁": 3})):
        planned = commit(
            store.read_partition(P), first, first + 4, replace(settled({}, filtered=5), unknown_fields=names)
        )
        store.commit_batch(planned)
        other.forget_partition(P)
        with pytest.raises(CheckpointConflict):
            other.commit_batch(planned)
    for reader in (store, other):
        reader.forget_partition(P)
        checkpoint = reader.read_partition(P).checkpoint
        assert checkpoint is not None
        assert unknown_fields_of(checkpoint.unknown_fields) == {"coupon": 3, "gift – 🎁": 3}


def test_commit_numbers_count_on_from_one(store: Store) -> None:
    numbers = [store.commit_batch(commit(store.read_partition(P), at, at)) for at in range(5)]
    assert numbers == [1, 2, 3, 4, 5]


def test_partitions_count_their_commits_apart(store: Store) -> None:
    for id in ("0", "1", "10"):
        assert store.commit_batch(commit(store.read_partition(partition(id)), 0, 0)) == 1


def test_the_first_commit_need_not_begin_at_zero(store: Store) -> None:
    store.commit_batch(commit(store.read_partition(P), 500, 509))
    (ledger,) = store.read_ledgers()
    assert (ledger.first, ledger.last, ledger.balanced) == (500, 509, True)


def test_rows_are_kept_with_their_position_and_commit_number(store: Store, engine: Engine) -> None:
    state = store.read_partition(P)
    store.commit_batch(commit(state, 0, 1, settled({0: [reading("a"), alert("a")], 1: [home("b", armed=True)]})))
    place = (state.stream_id, "0")
    assert engine.rows(SensorReading) == [KeptRow(*place, 0, 0, 1, reading("a"))]
    assert engine.rows(HomeAlert) == [KeptRow(*place, 0, 1, 1, alert("a"))]
    assert engine.rows(Home) == [KeptRow(*place, 1, None, 1, home("b", armed=True))]


def test_the_ledger_keeps_what_became_of_the_range(store: Store, engine: Engine) -> None:
    outcome = settled({0: [reading(), alert()], 1: [reading()]}, letters=[letter(event(2))], filtered=3)
    store.commit_batch(commit(store.read_partition(P), 0, 5, outcome))
    (kept,) = engine.ledger()
    assert (kept.first, kept.last, kept.commit_number) == (0, 5, 1)
    assert (kept.written, kept.filtered, kept.dead_lettered, kept.rows_written) == (2, 3, 1, 3)
    assert (kept.transform_version, kept.invocation_id) == ("test/1", "invocation-1")
    assert kept.committed_at == EPOCH + timedelta(days=1)


@pytest.mark.parametrize("behind", [0, 1, 3])
def test_a_commit_from_a_stale_state_writes_nothing_at_all(
    make_store: Callable[[], Store], engine: Engine, behind: int
) -> None:
    owner, zombie = make_store(), make_store()
    for number in range(behind):
        owner.commit_batch(commit(owner.read_partition(P), number, number))
    stale = zombie.read_partition(P)
    owner.commit_batch(commit(owner.read_partition(P), behind, behind, settled({behind: [home("a", armed=True)]})))
    before = everything(engine)
    rows = settled({behind: [reading(), alert(), home("a")]}, letters=[letter(event(behind + 1))])
    with pytest.raises(CheckpointConflict) as conflict:
        zombie.commit_batch(commit(stale, behind, behind + 1, rows))
    assert conflict.value.expected == (behind - 1 if behind else None)
    assert everything(engine) == before
    assert zombie.read_partition(P).checkpoint == owner.read_partition(P).checkpoint


def test_a_commit_that_expects_more_than_is_there_conflicts(store: Store, engine: Engine) -> None:
    done = commit(store.read_partition(P), 0, 4)
    with pytest.raises(CheckpointConflict):
        store.commit_batch(commit(done.state_after(1), 5, 9))
    assert engine.ledger() == []


def test_a_conflict_leaves_the_store_usable(store: Store) -> None:
    stale = store.read_partition(P)
    store.commit_batch(commit(stale, 0, 0))
    with pytest.raises(CheckpointConflict):
        store.commit_batch(commit(stale, 0, 0))
    assert store.commit_batch(commit(store.read_partition(P), 1, 1)) == 2


def refusals() -> dict[str, list[Row]]:
    return {
        "a number of 65 bits": [reading(ppm=2**63)],
        "a number below 64 bits": [reading(ppm=-(2**63) - 1)],
        "a letter beyond ASCII in a text of ASCII": [replace(reading(), state="offén")],
        "a lone surrogate in a row": [home(time_zone="\ud800")],
        "a time without a zone": [reading(at=datetime(2026, 1, 1))],  # noqa: DTZ001
        "a time after the last year in UTC": [reading(at=datetime.max.replace(tzinfo=timezone(-timedelta(hours=5))))],
        "a time before the first year in UTC": [reading(at=datetime.min.replace(tzinfo=timezone(timedelta(hours=5))))],
        "nothing where something must be": [home(time_zone=None)],  # type: ignore[arg-type]
    }


@pytest.mark.parametrize("case", refusals())
def test_refused_data_leaves_nothing_written(store: Store, engine: Engine, case: str) -> None:
    store.commit_batch(commit(store.read_partition(P), 0, 0, settled({0: [home("a")]})))
    before, state = everything(engine), store.read_partition(P)
    rows = settled({1: [home("a", armed=True), reading(), alert()], 2: refusals()[case]}, letters=[letter(event(3))])
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
    store.commit_batch(commit(store.read_partition(P), 0, 0, outcome))
    before = everything(engine)
    with pytest.raises(DataRefused):
        store.commit_batch(commit(store.read_partition(P), first, 1, outcome if first else None))
    assert everything(engine) == before


@pytest.mark.parametrize("filtered", [0, 4, 6])
def test_counts_that_do_not_sum_to_the_range_are_refused(store: Store, engine: Engine, filtered: int) -> None:
    with pytest.raises(DataRefused):
        store.commit_batch(commit(store.read_partition(P), 0, 4, settled({}, filtered=filtered)))
    assert engine.ledger() == []
    assert store.read_partition(P).checkpoint is None


def test_numbers_at_the_edges_of_64_bits_are_kept(store: Store, engine: Engine) -> None:
    end = 2**63 - 1
    rows = settled({end - 1: [reading(ppm=end)], end: [reading(ppm=-(2**63))]})
    store.commit_batch(commit(store.read_partition(P), end - 1, end, rows))
    checkpoint = store.read_partition(P).checkpoint
    assert checkpoint is not None
    assert checkpoint.sequence_number == end
    assert [one.row for one in engine.rows(SensorReading)] == [reading(ppm=end), reading(ppm=-(2**63))]
    assert [one.sequence_number for one in engine.rows(SensorReading)] == [end - 1, end]
    assert [ledger.balanced for ledger in store.read_ledgers()] == [True]


INSTANTS = [
    datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    datetime(2026, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2026, 6, 1, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2026, 6, 1, 5, 45, tzinfo=timezone(timedelta(hours=5, minutes=45))),
    datetime(2026, 6, 1, 1, 2, 3, 4, tzinfo=timezone(timedelta(hours=-12))),
]


@pytest.mark.parametrize("moment", INSTANTS, ids=str)
def test_instants_are_kept_to_the_microsecond(store: Store, engine: Engine, moment: datetime) -> None:
    last = event(1, at=moment)
    outcome = settled({0: [reading(at=moment)]}, letters=[letter(last)])
    planned = replace(commit(store.read_partition(P), 0, 1, outcome), last=last, committed_at=moment)
    store.commit_batch(planned)
    checkpoint = store.read_partition(P).checkpoint
    assert checkpoint is not None
    assert checkpoint.enqueued_at == moment
    assert [one.row for one in engine.rows(SensorReading)] == [reading(at=moment)]
    (kept,) = engine.letters()
    assert (kept.enqueued_at, kept.failed_at, kept.due_at) == (moment, moment, moment)
    assert [one.committed_at for one in engine.ledger()] == [moment]


# As long as the columns are: 32 and 40 units of UTF-16.
TEXTS = [
    "", " ", "'; DROP TABLE home; --", "%_\\\"'`$1 ?1 :x @y", "a\nb\r\tc\x01\x1f", "👩‍👩‍👧", "ß" * 32, "👩" * 16,
    "\x00", "a\x00b", "\ufdd0", "a\uffff",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_hostile_texts_are_kept_as_they_are(store: Store, engine: Engine, text: str) -> None:
    key = f"{text}." if text.endswith(" ") else text  # no key ends with a space
    row = replace(reading(key), sensor_id=text)
    outcome = settled({0: [row], 1: [home(key, text)]})
    place = partition(hub=f"namespace/{text}", group=text)
    store.commit_batch(commit(store.read_partition(place), 0, 1, outcome))
    assert [one.row for one in engine.rows(SensorReading)] == [row]
    assert [one.row for one in engine.rows(Home)] == [home(key, text)]
    assert [ledger.partition for ledger in store.read_ledgers(place.stream)] == [place]


@pytest.mark.parametrize("text", ["ß" * 33, "👩" * 17, "x" * 33, "x" * 5_000], ids=ascii)
def test_a_text_longer_than_its_column_is_refused_whole_where_columns_have_a_length(
    store: Store, engine: Engine, text: str
) -> None:
    state = store.read_partition(P)
    planned = commit(state, 0, 1, settled({0: [reading(text)], 1: [home(text, "zone")]}))
    if engine.dialect.limits_texts:
        with pytest.raises(DataRefused):
            store.commit_batch(planned)
        assert everything(engine) == ([], [], [], [], [])
        assert store.read_partition(P) == state
    else:
        store.commit_batch(planned)
        assert [one.row for one in engine.rows(SensorReading)] == [reading(text)]
        assert [one.row for one in engine.rows(Home)] == [home(text, "zone")]


def test_an_opaque_offset_is_kept_as_it_is(store: Store) -> None:
    for number, offset in enumerate(["-1", "0007", "1.0", "9" * 60, "", "1:2-3/é"]):
        last = structs.replace(event(number), offset=offset)
        store.commit_batch(replace(commit(store.read_partition(P), number, number), last=last))
        checkpoint = store.read_partition(P).checkpoint
        assert checkpoint is not None
        assert checkpoint.offset == offset


def test_a_store_that_was_closed_opens_again(store: Store) -> None:
    store.commit_batch(commit(store.read_partition(P), 0, 0))
    store.close()
    store.close()
    assert store.commit_batch(commit(store.read_partition(P), 1, 1)) == 2


LATER = EPOCH + timedelta(days=1)


def test_a_stop_keeps_its_first_time_and_counts_its_attempts(store: Store) -> None:
    state = store.read_partition(P)
    store.note_stop(state, "outage", "40 of 50 events fail", LATER)
    store.note_stop(state, "outage", "45 of 50 events fail", LATER + timedelta(minutes=1))
    state = store.read_partition(P)
    assert state.stops == (PartitionStop("outage", "45 of 50 events fail", 2, LATER),)
    assert state.stop_for("incarnation") is None
    assert store.read_partition(partition("1")).stops == ()


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
