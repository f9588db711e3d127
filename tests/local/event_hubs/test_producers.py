from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.event_hubs.codec import Int, Symbol
from local.event_hubs.errors import AmqpError
from local.event_hubs.events import BATCH_FORMAT, Publication, read_publication
from local.event_hubs.hubs import Hub, Hubs, HubSettings
from local.event_hubs.log import PartitionLog
from local.event_hubs.producers import Claim, Producers
from local.event_hubs.sections import MESSAGE_ANNOTATIONS
from tests.local.event_hubs.messages import batch, message, section

NEW = Claim(None, None, None)
LAST = 2**31 - 1
ORDER = "com.microsoft:out-of-order-sequence"


def annotated(number: int | None, **given: int) -> bytes:
    values = given if number is None else {**given, "sequence-number": Int(number)}
    return section(MESSAGE_ANNOTATIONS, {Symbol(f"com.microsoft:producer-{k}"): v for k, v in values.items()})


def numbered(first: int | None, count: int = 1, **given: int) -> bytes:
    inner = [annotated(None if first is None else (first + at) & LAST, **given) + message() for at in range(count)]
    return annotated(first, **given) + batch(inner)


def publication(first: int | None, count: int = 1, **given: int) -> Publication:
    return read_publication(numbered(first, count, **given), BATCH_FORMAT)


def refusal(producers: Producers, claim: Claim) -> str:
    with pytest.raises(AmqpError) as refused:
        producers.register(claim)
    return refused.value.condition


def outcomes(producers: Producers, producer: Claim, *batches: tuple[int, int]) -> list[bool | str]:
    found: list[bool | str] = []
    for first, count in batches:
        try:
            found.append(producers.is_new(publication(first, count), producer))
        except AmqpError as error:
            found.append(error.condition)
    return found


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 4)), max_size=30))
def test_whatever_comes_each_number_is_stored_once_and_in_order(batches: list[tuple[int, int]]) -> None:
    producers = Producers()
    one = producers.register(NEW)
    stored: list[int] = []
    for (first, count), found in zip(batches, outcomes(producers, one, *batches), strict=True):
        stored += range(first, first + count) if found is True else ()
    assert stored == list(range(1, len(stored) + 1))


def hubs_of(path: Path) -> tuple[Hubs, Hub, PartitionLog]:
    hubs = Hubs([HubSettings("telemetry", 2)], lambda: 0)
    hubs.open(path)
    return hubs, hubs["telemetry"], hubs["telemetry"].partition("0")


def test_producers_survive_a_restart_with_the_log_and_end_with_their_hub(tmp_path: Path) -> None:
    hubs, hub, log = hubs_of(tmp_path / "hubs.db")
    one, idle = hubs.register(hub, log, NEW), hubs.register(hub, log, Claim(None, 3, None))
    for first in (1, 3, 3):
        hubs.publish(hub, log, numbered(first, 2), BATCH_FORMAT, one)
        hubs.commit()
    assert log.last_sequence == 3
    hubs.close()
    hubs, hub, log = hubs_of(tmp_path / "hubs.db")
    assert hubs.register(hub, log, Claim(idle.producer_id, None, None)).epoch == 4
    assert outcomes(log.producers, one, (3, 2), (1, 2), (5, 1)) == [False, False, True]
    hubs.recreate("telemetry")
    hubs.close()
    hubs, _, log = hubs_of(tmp_path / "hubs.db")
    assert refusal(log.producers, Claim(one.producer_id, 0, None)) == "amqp:not-allowed"
    hubs.close()
