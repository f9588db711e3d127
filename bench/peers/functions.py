"""The app of three functions beside ours, of which PEERS_FUNCTION names one: as people write them, without a guarantee.

`bare` reads bodies by `json.loads`, checks nothing, and inserts its rows in one transaction. `fast` does so after our
reading of times was put in place, and `nothing` returns at once. Each notes the number of its events in the file
PEERS_SEEN.
"""

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any, List  # noqa: UP035

import azure.functions as func

from bench.peers.run import FAST, NOTHING
from bench.peers.table import open_table
from core.app import prepare_interpreter
from handlers.timestamps import read_times_fast

app = func.FunctionApp()
kind = os.environ["PEERS_FUNCTION"]
seen = os.open(os.environ["PEERS_SEEN"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
table = None if kind == NOTHING else open_table(os.environ["PEERS_STORE"])
if kind == FAST:
    read_times_fast()
prepare_interpreter()  # the local host is in this process, and must cost the same beside each function


@app.event_hub_message_trigger(
    arg_name="events",
    connection="EVENTHUB",
    event_hub_name="%EVENTHUB_NAME%",
    consumer_group="%EVENTHUB_CONSUMER_GROUP%",
    cardinality=func.Cardinality.MANY,
    data_type=func.DataType.BINARY,
)
def insert(events: List[func.EventHubEvent]) -> None:  # noqa: UP006 - the worker reads no list[...]
    """Insert the rows of a batch. It does not look up their partition: that would cost it more than the insert."""
    if table is not None:
        with table.transaction():
            table.add_all(list(rows_of(events)))
    os.write(seen, f"{len(events)}\n".encode())


def rows_of(events: Sequence[func.EventHubEvent]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of readings, as their bodies have them. A body that is none is skipped."""
    for event in events:
        try:
            body = json.loads(event.get_body())
            if body["kind"] in ("registration", "heartbeat"):
                continue
            place, sensor, at = body["home_id"], body["sensor_id"], body["observed_at"]
        except (ValueError, LookupError, TypeError):
            continue
        yield "", event.sequence_number, place, sensor, body["kind"], body.get("state"), body.get("ppm"), at
