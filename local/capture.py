"""`python -m local.capture`: write the emulator's log as the Avro files that Event Hubs Capture would write.

Schema and file names are Microsoft's. Each partition has one file for five minutes. Stop the emulator first: it locks
its database.
"""

import argparse
import sqlite3
import sys
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from local.event_hubs.codec import Raw, decode
from local.event_hubs.events import Event
from local.event_hubs.log import Disk
from local.event_hubs.sections import APPLICATION_PROPERTIES, DATA, MESSAGE_ANNOTATIONS, sections
from local.functions_host.event_hub_inputs import json_value

NAMESPACE = "localhost"
SPAN = timedelta(minutes=5)
SCHEMA = {
    "type": "record",
    "name": "EventData",
    "namespace": "Microsoft.ServiceBus.Messaging",
    "fields": [
        {"name": "SequenceNumber", "type": "long"},
        {"name": "Offset", "type": "string"},
        {"name": "EnqueuedTimeUtc", "type": "string"},
        {"name": "SystemProperties", "type": {"type": "map", "values": ["long", "double", "string", "bytes"]}},
        {"name": "Properties", "type": {"type": "map", "values": ["long", "double", "string", "bytes", "null"]}},
        {"name": "Body", "type": ["null", "bytes"]},
    ],
}


def export(database: Path, hub: str, partitions: Iterable[str], folder: Path) -> int:
    """Write the events of these partitions. Return their number.

    Raise FileNotFoundError, and sqlite3.Error when the database is in use.
    """
    import fastavro  # heavy, and only an export needs it

    if not database.exists():
        raise FileNotFoundError("there is no such file")
    written = 0
    with closing(Disk(database)) as disk:
        for partition_id in partitions:
            events = disk.last_events(hub, partition_id, None)
            for begin, each in groupby(events, lambda event: event.enqueued_at // (SPAN // timedelta(milliseconds=1))):
                moment = datetime.fromtimestamp(begin * SPAN.total_seconds(), UTC)
                path = folder / NAMESPACE / hub / partition_id / f"{moment:%Y/%m/%d/%H/%M/%S}.avro"
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("wb") as file:
                    fastavro.writer(file, SCHEMA, map(record_of, each), codec="deflate")
            written += len(events)
    return written


def record_of(event: Event) -> dict[str, Any]:
    """Return an event as Capture writes it. Its time is a text without a fraction of a second."""
    body, annotations, properties = b"", {}, {}
    for section in sections(event.payload):
        if section.code == DATA:
            body += decode(event.payload, section.body)[0]
        elif section.code == MESSAGE_ANNOTATIONS:
            annotations = decode(event.payload, section.body)[0]
        elif section.code == APPLICATION_PROPERTIES:
            properties = decode(event.payload, section.body)[0]
    key = annotations.get("x-opt-partition-key")
    enqueued_at = datetime.fromtimestamp(event.enqueued_at / 1000, UTC)
    return {
        "SequenceNumber": event.sequence_number,
        "Offset": str(event.offset),
        "EnqueuedTimeUtc": f"{enqueued_at:%m/%d/%Y %I:%M:%S %p}",
        "SystemProperties": {} if key is None else {"x-opt-partition-key": str(key)},
        "Properties": {str(name): _plain(value) for name, value in properties.items()},
        "Body": body,
    }


def _plain(value: Any) -> Any:
    """Return a value as one of the schema's types: a uuid and a char as texts, a decimal as a double."""
    if isinstance(value, Raw):
        return json_value(value)
    return value if isinstance(value, int | float | str | bytes | None) else str(value)


def main(arguments: list[str] | None = None) -> int:
    """Print the number of events and return 0. Print one line and return 1 when the database cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m local.capture", description=__doc__)
    parser.add_argument("--database", type=Path, required=True, help="the --database of the emulator")
    parser.add_argument("--hub", default="telemetry")
    parser.add_argument("--partitions", type=int, default=16, help="the number in the hub; default: 16")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write into")
    given = parser.parse_args(arguments)
    try:
        written = export(given.database, given.hub, map(str, range(given.partitions)), given.out)
    except (sqlite3.Error, OSError, ImportError) as error:
        print(f"capture: {given.database}: {error}", file=sys.stderr)
        return 1
    print(f"{written} events in {given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
