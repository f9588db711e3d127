"""The operator of a demo: discard letters that block later events, have tasks done, open the next incarnation."""

import http.client
import json
import sqlite3
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, suppress
from typing import Any, Protocol
from urllib.parse import urlsplit

from local.programs import Interrupted
from local.stack.app_totals import BooksUnavailable, LiveStore, get, select
from local.stack.consumers import ticking
from local.stack.processes import Pause
from local.stack.sql_server import ServerRefused

LOOK_EVERY = 1.0  # seconds
LOOK_AT_TASK = 0.5  # seconds
LOOKS = 240  # without anything new: two minutes, and longer on a busy machine, where a look takes longer
ANSWER = 60.0  # seconds until the host must answer
PATIENCE = 120.0  # seconds until a stop must be reported
ORDER = 500  # letters of one order
# Letters that no retry can resolve; one that was held has the class of the letter that it waited for until it is tried.
_HOPELESS = """
SELECT partition_id, sequence_number FROM event_hub_dead_letter
WHERE status = 'exhausted' OR (status = 'waiting' AND error_class = 'refused' AND fingerprint <> 'held')
ORDER BY partition_id, sequence_number
"""

# The host or the store restarts, or the demo ends.
_RESTARTING = (OSError, http.client.HTTPException, ValueError, sqlite3.Error, ServerRefused, Interrupted)


class Addressed(Protocol):
    """A host at an address, which changes with each of its successors."""

    @property
    def address(self) -> str: ...


class NotOpened(Exception):
    """The next incarnation could not be opened. The message holds the last answer."""


class NotDone(Exception):
    """A task did not end well. The message holds the last answer of the app."""


def discarding(host: Addressed, store: LiveStore, every: float = LOOK_EVERY) -> AbstractContextManager[None]:
    """Discard hopeless letters through the API beside a `with` block, so that held events are tried."""

    def discard() -> None:
        with suppress(*_RESTARTING):
            letters = [
                {"partition_id": partition_id, "sequence_number": str(number)}
                for partition_id, number in select(store, _HOPELESS, most=ORDER)
            ]
            if letters:
                why = "the demo's operator gives it up"
                order = {"move": "discard", "letters": letters, "expected_count": len(letters), "reason": why}
                open_task(host.address, "redrive", order)

    return ticking(every, discard)


def open_next_incarnation(host: Addressed, pause: Pause) -> None:
    """Wait until the app reports the stop, and open the next incarnation as an operator would: after a dry run."""
    deadline = time.monotonic() + PATIENCE
    while (incarnation := _stopped_incarnation(host.address)) is None:
        if time.monotonic() > deadline:
            raise NotOpened(f"the app reported no recreated hub in {PATIENCE:g} s")
        pause(LOOK_EVERY)
    reason = "the demo has recreated the hub"
    order = {"reason": reason, "expected_incarnation": incarnation}
    code, found = change(host.address, "POST", "/api/streams/next-incarnation", order)
    if code == 200:
        order |= {"dry_run": False, "expected_hub_created_at": found["hub_created_at"]}
        code, found = change(host.address, "POST", "/api/streams/next-incarnation", order)
    if code != 200:
        raise NotOpened(f"POST /api/streams/next-incarnation answers {code}: {found}")
    print(f"opened incarnation {found['incarnation']}: {found['evidence']}", flush=True)


def open_task(address: str, kind: str, order: Mapping[str, Any]) -> tuple[int, Any]:
    return change(address, "PUT", f"/api/tasks/{uuid.uuid4()}", {"kind": kind, **order})


def done_task(
    host: Addressed, kind: str, order: Mapping[str, Any], pause: Pause, meanwhile: Callable[[], object] = lambda: None
) -> dict[str, Any]:
    """Open a task, do something meanwhile, and return the answer when the task is done.

    Raises NotDone when the task ends in a different way.
    """
    try:
        code, task = open_task(host.address, kind, order)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotDone(f"the {kind} has no answer: {error}") from error
    if code != 201:
        raise NotDone(f"the {kind} is answered with {code}: {task}")
    meanwhile()
    looks, seen, last, id = 0, None, "", task["task_id"]
    while looks < LOOKS:
        try:
            task = json.loads(get(host.address, f"/api/tasks/{id}"))
        except (BooksUnavailable, OSError, http.client.HTTPException, ValueError) as error:
            last = str(error)
        else:
            if task["status"] == "done":
                return dict(task)
            last = f"it is {task['status']}: {task['fault'] or 'no fault is noted'}"
            if task["status"] in ("failed", "cancelled"):
                break
            looks, seen = (looks if task == seen else 0), task
        looks += 1
        pause(LOOK_AT_TASK)
    raise NotDone(f"{kind} {id} is not done: {last}")


def change(address: str, method: str, path: str, body: Mapping[str, Any], timeout: float = ANSWER) -> tuple[int, Any]:
    """Send a change, and return the status and the body of the answer."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=timeout)
    with closing(connection):
        connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def _stopped_incarnation(address: str) -> int | None:
    """Return the number of the incarnation that a different hub stops, or None while the app reports no stop."""
    try:
        status = json.loads(get(address, "/api/status"))
        stops = [stop["reason"] for partition in status["partitions"] for stop in partition["stops"]]
        return int(status["incarnation"]) if "incarnation" in stops else None
    except (BooksUnavailable, OSError, http.client.HTTPException, ValueError, KeyError):
        return None
