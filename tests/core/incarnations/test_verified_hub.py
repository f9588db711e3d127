"""VerifiedHub: each method of a HubReader answers for the stream's hub only, also when the hub changes amid a read."""

import threading
from collections.abc import Callable
from contextlib import closing, nullcontext
from copy import deepcopy
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from core.errors import HubUnreachable, StreamIncarnationChanged
from core.incarnations.hub_check import OLDEST, SOONEST, HubVerification, VerifiedHub
from core.model.events import Event, SequenceNumber
from core.model.ports import HubReader, OffsetRefused
from tests.core.incarnations.world import NEW, World, log, renewed
from tests.fakes.builders import EPOCH, NOON, STREAM, partition

FIVE = SequenceNumber(5)


class Reading(World):
    """A world in which partition 0 is committed up to 9, and 1 up to 2."""

    def __init__(self) -> None:
        super().__init__()
        self.deliver(log(0, 9))
        self.deliver(log(0, 2), "1")
        verification = HubVerification(self.hub, self.clock.monotonic, threading.RLock())
        self.read = VerifiedHub(self.hub, verification, self.base)

    def range(self, first: int = 0, last: int = 9) -> list[int]:
        given = self.read.read_range(partition(), SequenceNumber(first), SequenceNumber(last), NOON)
        return [event.sequence_number for event in given]

    def pass_the_age(self) -> None:
        self.clock.advance(SOONEST * 2)

    def empty(self) -> None:
        for id in "01":
            self.hub.recreate(id)

    def refill(self) -> None:
        self.recreate(*renewed(0, 20))

    def fail_over(self) -> None:
        """Replace the hub by a copy that lost the last events and took others since."""
        for id, last in (("0", 6), ("1", 0)):
            self.hub.recreate(id)
            self.hub.publish(id, [*log(0, last), *renewed(last + 1, 12)])
        self.hub.expire_before("0", 7)
        self.hub.expire_before("1", 1)


@pytest.fixture
def reading() -> Reading:
    made = Reading()
    made.read.extent(partition())  # a reading of the right hub is remembered
    made.pass_the_age()
    return made


METHODS: dict[str, Callable[[Reading], Any]] = {
    "partitions": lambda to: to.read.partitions(),
    "created_at": lambda to: to.read.created_at(),
    "extent": lambda to: to.read.extent(partition()),
    "first_at": lambda to: to.read.first_at(partition(), FIVE),
    "first_at of a time": lambda to: to.read.first_at(partition(), EPOCH + timedelta(seconds=5)),
    "first_at of an offset": lambda to: to.read.first_at(partition(), "320"),
    "find_event": lambda to: to.read.find_event(partition(), FIVE),
    "read_range": lambda to: to.range(),
    "read_range of one": lambda to: to.range(5, 5),
}
CHANGES: dict[str, Callable[[Reading], object]] = {
    "recreated": lambda to: to.recreate(),
    "recreated and filled": Reading.refill,
    "emptied": Reading.empty,
}
STILL_RIGHT = [("partitions", "emptied"), ("created_at", "emptied")]
each_method = pytest.mark.parametrize("ask", METHODS.values(), ids=METHODS)


def test_the_table_has_every_method_that_says_what_the_hub_holds() -> None:
    public = {name for name in vars(HubReader) if not name.startswith("_")}
    assert {name.partition(" ")[0] for name in METHODS} == public


@each_method
def test_each_method_answers_as_the_hub_does(reading: Reading, ask: Callable[[Reading], Any]) -> None:
    found = ask(reading)
    reading.read = reading.hub  # type: ignore[assignment]
    assert found == ask(reading)


@pytest.mark.parametrize(("method", "change"), [*product(METHODS, CHANGES)])
def test_each_method_refuses_a_different_hub(reading: Reading, method: str, change: str) -> None:
    right = deepcopy(vars(reading.hub))
    CHANGES[change](reading)
    with nullcontext() if (method, change) in STILL_RIGHT else pytest.raises(StreamIncarnationChanged):
        METHODS[method](reading)
    vars(reading.hub).update(right)
    reading.pass_the_age()
    METHODS[method](reading)


@each_method
def test_each_method_passes_on_that_the_hub_does_not_answer(reading: Reading, ask: Callable[[Reading], Any]) -> None:
    reading.hub.fails = lambda: True
    with pytest.raises(HubUnreachable):
        ask(reading)


@pytest.mark.parametrize("ask", [METHODS["find_event"], METHODS["read_range"], METHODS["read_range of one"]])
def test_what_a_hub_that_failed_over_does_not_hold_is_not_gone(reading: Reading, ask: Callable[[Reading], Any]) -> None:
    reading.fail_over()
    with pytest.raises(StreamIncarnationChanged, match="as the event of the checkpoint"):
        ask(reading)


def test_events_that_retention_or_compaction_took_are_gone(reading: Reading) -> None:
    reading.hub.expire_before("0", 3)
    reading.hub.lose("0", 5, 9)
    assert reading.read.find_event(partition(), FIVE) is None
    assert reading.range() == [3, 4, 6, 7, 8]
    assert reading.read.extent(partition()).beginning == 3
    reading.hub.expire_before("0", 10)
    assert reading.range() == []


def test_an_offset_that_a_different_hub_refuses_is_no_fault_of_the_request(reading: Reading) -> None:
    with pytest.raises(OffsetRefused):
        reading.read.first_at(partition(), "99999")
    reading.recreate()
    with pytest.raises(StreamIncarnationChanged):
        reading.read.first_at(partition(), "320")


@pytest.mark.parametrize("filled", [[], renewed(0, 20)], ids=["empty", "filled"])
def test_a_hub_that_is_recreated_amid_a_range_ends_it(reading: Reading, filled: list[Event]) -> None:
    numbers = []
    given = reading.read.read_range(partition(), SequenceNumber(0), SequenceNumber(9), NOON)
    with closing(given) as events, pytest.raises(StreamIncarnationChanged):
        for event in events:
            numbers.append(event.sequence_number)
            if event.sequence_number == 4:
                reading.recreate(*filled)
                reading.pass_the_age()
    assert numbers == [0, 1, 2, 3, 4]


def test_a_range_asks_for_the_creation_as_often_as_a_new_hub_needs_to_reach_its_numbers(reading: Reading) -> None:
    reading.hub.asked.clear()
    reading.range()
    assert reading.asked("created_at") == 1
    many = 10 * int(OLDEST * 100_000)
    reading.deliver(log(10, 10))
    reading.hub.publish("0", log(many, many + 2))
    reading.hub.asked.clear()
    reading.clock.advance(OLDEST / 2)
    reading.range(many, many + 2)
    assert reading.asked("created_at") == 1


def test_the_hub_of_the_next_incarnation_is_read_as_soon_as_it_is_open(reading: Reading) -> None:
    reading.recreate(*renewed(0, 4))
    with pytest.raises(StreamIncarnationChanged):
        reading.range(0, 4)
    reading.open_next()
    assert reading.range(0, 4) == [0, 1, 2, 3, 4]
    assert reading.base.read_incarnation(STREAM).hub_created_at == NEW
