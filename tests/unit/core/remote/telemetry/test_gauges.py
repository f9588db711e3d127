"""core/remote/telemetry/gauges.py: the facts of the watch become gauges, once."""

from dataclasses import replace
from datetime import timedelta

from core.ledger.books import Books, LetterBooks
from core.ledger.retention.burn_down import BurnDown
from core.ledger.retention.open_counts import OpenCount
from core.ledger.watch import LaggingPartition, Observation
from core.model.events import PartitionId
from core.remote.telemetry import names
from tests.fakes.builders import NOON, STREAM, FakeClock
from tests.fakes.telemetry import Memory

HUB = {names.DESTINATION: "telemetry", names.GROUP: "hubledger"}
P0, P1 = PartitionId("0"), PartitionId("1")
SEEN = Observation(
    at=NOON,
    books=Books((), LetterBooks({"waiting": 2, "exhausted": 1}, 3)),
    lagging=(LaggingPartition(P1, NOON - timedelta(seconds=90), None),),
    oldest_letter_at=NOON - timedelta(hours=1),
    absent=7,
    lags={P0: 0, P1: 12},
)


def test_a_partition_has_its_lag_and_its_age_and_one_without_a_lag_has_zeros() -> None:
    memory = Memory()
    memory.work.watched(STREAM, SEEN)
    points = memory.points()
    lag = {told[names.PARTITION]: value for told, value in points["hubledger.lag"]}
    age = {told[names.PARTITION]: value for told, value in points["hubledger.lag.age"]}
    assert (lag, age) == ({"0": 0, "1": 12}, {"0": 0.0, "1": 90.0})


def test_letters_have_their_status_and_the_facts_of_alerts_are_there() -> None:
    memory = Memory()
    memory.work.watched(STREAM, SEEN)
    points = memory.points()
    assert {told[names.LETTER_STATUS]: value for told, value in points["hubledger.letters"]} == {
        "waiting": 2,
        "exhausted": 1,
    }
    assert points["hubledger.letters.oldest_age"] == [(HUB, 3600.0)]
    assert points["hubledger.absent"] == [(HUB, 7)]
    assert points["hubledger.ledger.unbalanced"] == [(HUB, 0)]


def test_a_gauge_of_an_instance_that_lost_the_watch_ends_so_that_no_old_value_is_repeated() -> None:
    clock = FakeClock()
    memory = Memory(monotonic=clock.monotonic)
    memory.work.watched(STREAM, SEEN)
    clock.advance(60)
    assert "hubledger.lag" in memory.points()
    clock.advance(60)
    assert "hubledger.lag" not in memory.points()


def test_each_partition_has_the_hours_that_the_hub_holds_its_first_open_event() -> None:
    memory = Memory()
    counts = (
        OpenCount(P0, "kept", 3, 1, NOON - timedelta(hours=22), (0, 2, 2)),
        OpenCount(P1, "gap", 1, 1, None, (0, 0, 0)),
    )
    burn_down = BurnDown(NOON, timedelta(hours=24), (P0, P1), counts)
    memory.work.watched(STREAM, replace(SEEN, burn_down=burn_down))
    points = memory.points()
    assert points["hubledger.retention.left"] == [({**HUB, names.PARTITION: "0"}, 2.0)]
    assert points["hubledger.retention.loss"] == [(HUB, 24.0)]
    letters = {told[names.WITHIN]: value for told, value in points["hubledger.retention.letters"]}
    assert letters == {"1h": 0, "6h": 2, "24h": 2}
    assert points["hubledger.retention.lost"] == [(HUB, 1)]
