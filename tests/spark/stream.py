"""A stream of homes' events over the world's store: ingested, retried and replayed by the code that the app runs."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from core.errors import MissingReference, PoisonEvent
from core.ingest.ingest import Ingestion, ingest_batch
from core.letters.retry import Keeper, claim_due, retry_chunk
from core.model.events import Event
from core.model.letters import RetryReport
from core.model.rows import References, Row
from core.replay.pieces import ReplayJob
from core.replay.request import ReplayOrder
from core.transforms.loading import load_transform
from examples.home_security.transform import SensorReading
from tests.fakes.builders import STREAM, batch, event, partition
from tests.fakes.erasing import ErasingWorld as Replays
from tests.spark.readings import NOON
from tests.spark.world import World

HOMES = load_transform("examples.home_security")

Mended = Callable[[SensorReading], Iterable[SensorReading]]


def registered(home_id: str) -> str:
    """Return the body of a home's registration."""
    return json.dumps({"kind": "registration", "home_id": home_id, "time_zone": "Europe/Berlin", "armed": False})


def gas_event(home_id: str, ppm: int, at: datetime = NOON) -> str:
    """Return the body of a reading of carbon monoxide."""
    body = {"kind": "carbon_monoxide", "home_id": home_id, "sensor_id": "co-1", "ppm": ppm}
    return json.dumps({**body, "observed_at": at.isoformat()})


def motion_event(home_id: str, at: datetime = NOON) -> str:
    """Return the body of a motion."""
    body = {"kind": "motion", "home_id": home_id, "sensor_id": "motion-1", "state": "active"}
    return json.dumps({**body, "observed_at": at.isoformat()})


class Stream:
    """The trigger, the keeper of letters and replays, with one transform at a time."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.replays = Replays(world.store, {}, HOMES, world.clock)

    def take(self, *bodies: str, of: str = "0") -> None:
        """Publish events to the hub, and have the trigger take them in one batch."""
        hub, own = self.replays.hub, self.replays
        if of not in hub.held:
            hub.recreate(of)
        first = hub.last[of] + 1
        taken = [event(first + at, body) for at, body in enumerate(bodies)]
        hub.publish(of, taken)
        ingest_batch(batch(taken, partition(of)), Ingestion(own.store, own.transform, own.own))

    def deploy(self, mended: Mended, version: str) -> None:
        """Deploy a transform that gives the readings to `mended`."""

        def rows_of(event: Event, references: References) -> Iterable[Row]:
            for row in HOMES.rows_of(event, references):
                yield from mended(row) if isinstance(row, SensorReading) else [row]

        self.replays.transform = replace(HOMES, version=version, rows_of=rows_of)

    def replay(self, wanted: ReplayOrder | None = None) -> ReplayJob:
        """Request a replay and run it."""
        done = self.replays.replay(wanted)
        assert (done.task.status, done.task.fault) == ("done", None)
        return done

    def retry(self) -> list[RetryReport]:
        """Retry the letters when every waiting one is due."""
        own = self.replays
        self.world.clock.advance(7_200)
        keeper = Keeper(STREAM, own.store, own.transform, own.hub.find_event, own.own)
        return [retry_chunk(chunk, keeper, "by hand") for chunk in claim_due(keeper)]


def as_they_are(reading: SensorReading) -> Iterable[SensorReading]:
    yield reading


def moved(reading: SensorReading) -> Iterable[SensorReading]:
    """Move gas by an hour with half its parts, and make a motion a door."""
    if reading.ppm is None:
        yield replace(reading, kind="door")
    else:
        yield replace(reading, ppm=reading.ppm // 2, observed_at=reading.observed_at + timedelta(hours=1))


def fewer(reading: SensorReading) -> Iterable[SensorReading]:
    """Drop gas of 50 parts or less."""
    if reading.ppm is None or reading.ppm > 50:
        yield reading


def twice(reading: SensorReading) -> Iterable[SensorReading]:
    """Add a second row to every reading, from a different sensor."""
    yield reading
    yield replace(reading, sensor_id=f"{reading.sensor_id}-again")


def refusing(reading: SensorReading) -> Iterable[SensorReading]:
    """Refuse gas above 50 as poison, and have switches wait for a reference."""
    if reading.ppm is None:
        raise MissingReference("a floor plan")
    if reading.ppm > 50:
        raise PoisonEvent("nobody believes this")
    yield reading
