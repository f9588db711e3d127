"""The proof that an app works: an event that is sent to the hub appears in the app's books."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from infra.hooks.errors import HookRefused
from infra.hooks.patience import Clock, Pending, wait_for
from infra.hooks.smoke.app import App

DEADLINE = 300.0  # seconds from the sending to the commit
Send = Callable[[str], None]  # sends one event to a partition


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
    before = wait_for("a partition", lambda: _place(app), DEADLINE, clock)
    send(before.partition_id)
    sent_at = wait_for("the app's status", lambda: datetime.fromisoformat(app.status()["at"]), DEADLINE, clock)
    last = wait_for("the event in the hub", lambda: _end_after(app, before, sent_at), DEADLINE, clock)
    goal = f"the ledger range of event {before.partition_id}/{last}"
    written = wait_for(goal, lambda: _written(app, before.partition_id, last), DEADLINE, clock)
    numbers = last - before.hub_end
    if numbers == 1 and (explained := _explained(app, before.partition_id, last)):
        return explained
    if written <= before.written:
        raise HookRefused(f"partition {before.partition_id} has no new row for its {numbers} events up to {last}")
    span = f"{before.partition_id}/{before.hub_end + 1} to {before.partition_id}/{last}"
    return f"the range {span} is accounted for; events of it that became rows: {written - before.written}"


def _place(app: App) -> Place:
    status = app.status()
    if status["hub_fault"]:
        raise Pending(f"the app does not reach the hub: {status['hub_fault']}")
    for one in status["partitions"]:
        if one["hub_end"] is not None and not one["stops"]:
            return Place(one["partition_id"], int(one["hub_end"]), one["written"])
    raise Pending("every partition of the hub is stopped" if status["partitions"] else "the app knows no partition")


def _end_after(app: App, before: Place, sent_at: datetime) -> int:
    """Return the end of the partition, read by the app after the event was sent."""
    status = app.status()
    end = int(_partition(status, before.partition_id)["hub_end"] or -1)
    if status["hub_read_at"] is None or datetime.fromisoformat(status["hub_read_at"]) < sent_at:
        raise Pending(status["hub_fault"] or "the app read the hub before the event was sent")
    if end <= before.hub_end:
        raise Pending(f"partition {before.partition_id} still ends at {end}")
    return end


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
