"""Reading with the SDK's consumers: positions, groups, epochs."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

from local.event_hubs import Emulator
from tests.acceptance.event_hubs.clients import HUB, publish, reading, reading_aio, wait_until
from tests.acceptance.event_hubs.conftest import MovableClock


def test_a_reader_starts_at_its_position_or_at_the_first_event_that_retention_left(
    emulator: Emulator, clock: MovableClock
) -> None:
    publish(emulator, range(5))
    clock.ahead = timedelta(minutes=2)
    between = datetime.now(UTC) + timedelta(minutes=1)
    publish(emulator, range(5, 10))
    with reading(emulator, partition_id="0") as seen:
        seen.wait_for_events(10)
    offset = seen.events[3][1].offset
    emulator.expire_before(HUB, "0", 2)
    positions: list[tuple[dict[str, Any], int]] = [
        ({"starting_position": "-1"}, 2),
        ({"starting_position": 0}, 2),
        ({"starting_position": 3}, 4),
        ({"starting_position": 3, "starting_position_inclusive": True}, 3),
        ({"starting_position": between}, 5),
        ({"starting_position": offset}, 4),
        ({"starting_position": offset, "starting_position_inclusive": True}, 3),
        ({"starting_position": 9}, 10),
        ({"starting_position": "@latest"}, 10),
    ]

    def read(group: str, position: dict[str, Any], first: int) -> list[int]:
        with reading_aio(emulator, group, partition_id="0", **position) as seen:
            seen.wait_for_events(11 - first)
        return seen.numbers

    wait_until(lambda: emulator.reader_count(HUB) == 0)
    with ThreadPoolExecutor(len(positions)) as pool:
        groups = itertools.cycle(("$Default", "hubledger"))  # each takes five readers at the limit
        reads = [pool.submit(read, next(groups), position, first) for position, first in positions]
        wait_until(lambda: emulator.reader_count(HUB) == len(positions))
        publish(emulator, ["last"])
        numbers = [each.result() for each in reads]
    assert numbers == [list(range(first, 11)) for _, first in positions]


def test_sync_and_aio_readers_get_numbers_offsets_and_times_in_every_group_and_in_any_case(emulator: Emulator) -> None:
    publish(emulator, range(300))
    metrics: dict[str, Any] = {"partition_id": "0", "track_last_enqueued_event_properties": True}
    many = {"partition_id": "0", "prefetch": 3000, "max_batch_size": 3000}
    with (
        reading(emulator, **metrics) as one,
        reading_aio(emulator, **metrics) as two,
        reading_aio(emulator, "HUBLEDGER", **many) as three,
    ):
        for seen in (one, two, three):
            seen.wait_for_events(300)
            assert seen.numbers == list(range(300))
            assert seen.bodies == [str(number) for number in range(300)]
            offsets = [int(event.offset) for _, event in seen.events]
            assert offsets == sorted(set(offsets))
            ages = [abs(event.enqueued_time - datetime.now(UTC)) for _, event in seen.events]
            assert max(ages) < timedelta(minutes=1)


def test_a_higher_epoch_steals_the_partition(emulator: Emulator) -> None:
    publish(emulator, range(3))
    with reading(emulator, partition_id="0", owner_level=0, retry_total=0) as first:
        first.wait_for_events(3)
        with reading(emulator, partition_id="0", owner_level=1) as second:
            second.wait_for_events(3)
            first.wait(lambda seen: bool(seen.errors))
    assert type(first.errors[0]).__name__ == "ConnectionLostError"
    assert "New receiver 'nil' with higher epoch of '1' is created" in str(first.errors[0])
