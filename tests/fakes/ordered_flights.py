"""A transform for tests of states that a column orders: flights of which the latest change stands."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, cast

from core.model.events import Event
from core.model.rows import ReferenceKey, References, Row
from core.model.transforms import Transform
from core.replay.pieces import ReplayJob
from examples.flight_info.transform import FlightChange, FlightStatus
from examples.home_security.transform import SensorReading
from tests.fakes.builders import EPOCH, event
from tests.fakes.replaying import World

DAY = date(2026, 1, 2)


def flight(number: int, minute: int, status: str = "boarding") -> FlightStatus:
    return FlightStatus("LH", number, DAY, status, None, None, None, EPOCH + timedelta(minutes=minute))


def minute_of(row: Row) -> int:
    return int((cast(FlightStatus, row).changed_at - EPOCH).total_seconds()) // 60


def rows_of(event: Event, references: References) -> Iterable[Row]:
    """`N M` is flight N, changed at minute M. Several are separated by commas. `look N` reads it."""
    for words in event.body.decode().split(","):
        one, other = words.split()
        if one == "look":
            seen = references.find(FlightStatus, "LH", int(other), DAY)
            ppm = None if seen is None else minute_of(seen)
            yield SensorReading("home-1", "sensor", "look", None, ppm, event.enqueued_at)
        elif one != "quiet":
            yield flight(int(one), int(other), f"by {event.sequence_number}")


def looked_up(event: Event) -> Iterable[ReferenceKey]:
    words = event.body.decode().split()
    return [ReferenceKey(FlightStatus, ("LH", int(words[1]), DAY))] if words[0] == "look" else []


FLIGHTS = Transform("flights/1", rows_of, looked_up, (FlightStatus, FlightChange, SensorReading))


def now_as(bodies: Mapping[int, str], version: str = "flights/2") -> Transform:
    def changed(given: Event, references: References) -> Iterable[Row]:
        body = bodies.get(given.sequence_number)
        return rows_of(given if body is None else event(given.sequence_number, body), references)

    return replace(FLIGHTS, version=version, rows_of=changed)


def changes_of(world: World, dry: ReplayJob) -> Iterator[dict[str, Any]]:
    for one in world.store.read_replay_diffs(dry.task.task_id, None, 100):
        diff = json.loads(one.diff)
        yield from diff["added"] + diff["changed"]
