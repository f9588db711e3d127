"""The proof that an app works: an event that is sent to the hub appears in the app's books."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from infra.hooks.errors import HookRefused
from infra.hooks.patience import Clock, Pending, wait_for
from infra.hooks.smoke.app import App

DEADLINE = 300.0  # seconds from the sending to the commit
Send = Callable[[Sequence[str]], Sequence[str]]  # sends one event, and returns the partitions that may have it


@dataclass(frozen=True, slots=True)
class Place:
    """A partition as it was before the event, by the app's status."""

    partition_id: str
    hub_end: int
    written: int


def prove_event(app: App, send: Send, clock: Clock) -> str:
    """Send an event, wait for its ledger range and its row, and return the sentence that says where they are.

    Raise HookRefused when they do not come in time, or when the event becomes no row. What `send` raises escapes.
    """
    before = wait_for("a partition", lambda: _places(app), DEADLINE, clock)
    watched = [before[one] for one in send(tuple(before))]
    sent_at = wait_for("the app's status", lambda: datetime.fromisoformat(app.status()["at"]), DEADLINE, clock)
    ends = wait_for("the event in the hub", lambda: _ends_after(app, watched, sent_at), DEADLINE, clock)
    grown = [(place, ends[place.partition_id]) for place in watched if place.partition_id in ends]
    written, spans = 0, [f"{one.partition_id}/{one.hub_end + 1} to {one.partition_id}/{last}" for one, last in grown]
    for place, last in grown:
        goal = f"the ledger range of event {place.partition_id}/{last}"
        written -= place.written
        written += wait_for(goal, partial(_written, app, place.partition_id, last), DEADLINE, clock)
    numbers = sum(last - place.hub_end for place, last in grown)
    if numbers == 1 and (explained := _explained(app, *ends.popitem())):
        return explained
    if written <= 0:
        raise HookRefused(f"no new row for the {numbers} events {', '.join(spans)}")
    return f"accounted for: {', '.join(spans)}; events of it that became rows: {written}"


def _places(app: App) -> dict[str, Place]:
    """Return the partitions that are not stopped, by their ids."""
    status = app.status()
    if status["hub_fault"]:
        raise Pending(f"the app does not reach the hub: {status['hub_fault']}")
    healthy = [one for one in status["partitions"] if one["hub_end"] is not None and not one["stops"]]
    if not healthy:
        raise Pending("every partition of the hub is stopped" if status["partitions"] else "the app knows no partition")
    places = [Place(one["partition_id"], int(one["hub_end"]), one["written"]) for one in healthy]
    return {place.partition_id: place for place in places}


def _ends_after(app: App, before: Sequence[Place], sent_at: datetime) -> dict[str, int]:
    """Return the ends of the partitions that have grown, read by the app after the event was sent."""
    status = app.status()
    found = {one.partition_id: int(_partition(status, one.partition_id)["hub_end"] or -1) for one in before}
    if status["hub_read_at"] is None or datetime.fromisoformat(status["hub_read_at"]) < sent_at:
        raise Pending(status["hub_fault"] or "the app read the hub before the event was sent")
    grown = {one.partition_id: found[one.partition_id] for one in before if found[one.partition_id] > one.hub_end}
    if not grown:
        raise Pending(f"no new event is in {', '.join(f'partition {name} (end {end})' for name, end in found.items())}")
    return grown


def _written(app: App, partition_id: str, last: int) -> int:
    """Return how many events of the partition became rows, once a commit has accounted for the last number."""
    one = _partition(app.status(), partition_id)
    if one["checkpoint"] is None or int(one["checkpoint"]) < last:
        stops = "".join(f"; stopped: {stop['reason']}" for stop in one["stops"])
        raise Pending(f"partition {partition_id} is committed up to {one['checkpoint']}{stops}")
    if not one["balanced"]:
        raise Pending(f"the books of partition {partition_id} do not balance")
    written: int = one["written"]
    return written


def _explained(app: App, partition_id: str, number: int) -> str | None:
    """Return the sentence of a number that is in a row. None where sign-in asks this caller for a role."""
    answer = app.get(f"/api/ledger/{partition_id}/{number}")
    if answer.status in (401, 403):
        return None
    found = answer.json() if answer.status == 200 else {}
    if found.get("outcome") != "written" or not found["range"]:
        said = found.get("sentence", f"the app answers {answer.status}")
        raise HookRefused(f"event {partition_id}/{number} was sent and became no row: {said}")
    span = found["range"]
    return f"event {partition_id}/{number}: {found['sentence']} Its range is {span['first']} to {span['last']}."


def _partition(status: dict[str, Any], partition_id: str) -> dict[str, Any]:
    found = [one for one in status["partitions"] if one["partition_id"] == partition_id]
    if not found:
        raise Pending(f"the app knows no partition {partition_id}: {status['hub_fault']}")
    partition: dict[str, Any] = found[0]
    return partition
