"""Spark Structured Streaming with `foreachBatch`, as its Programming Guide shows it: (e).

It reads files: the connector to Event Hubs and the Avro source are jars that pip does not bring, so the captured events
come as lines of JSON, with the body in base64. `foreachBatch` parses and writes them on the driver, one transaction a
micro-batch, without a use of the batch id. The guide names that at-least-once. So Spark does less here than it would
with a hub: no AMQP.
"""

import base64
import json
import os
import signal
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

from bench.peers.consumers import rows_of_bodies
from bench.peers.table import open_table
from bench.spark import open_spark
from local.capture import record_of
from local.event_hubs.log import Disk

FILE = 500  # events in a file: as large as a batch of the others
AT_ONCE = 16  # files in a micro-batch: one of each partition
SOURCE, STATE = "captured", "spark-state"


def write_files(database: Path, hub: str, partitions: int, folder: Path) -> int:
    """Write the log of an emulator that has ended as files of JSON lines. Return the number of events."""
    folder.mkdir(parents=True)
    written = 0
    with closing(Disk(database)) as disk:
        for id in map(str, range(partitions)):
            for number, events in enumerate(_chunks(disk.last_events(hub, id, None))):
                lines = [_line(id, record_of(event)) for event in events]
                (folder / f"{number:06}-{id}.json").write_text("".join(lines), encoding="utf-8")
                written += len(lines)
    return written


def _chunks(events: list[Any]) -> list[list[Any]]:
    return [events[at : at + FILE] for at in range(0, len(events), FILE)]


def _line(partition_id: str, record: dict[str, Any]) -> str:
    body = base64.b64encode(record["Body"]).decode()
    return json.dumps({"partition_id": partition_id, "number": record["SequenceNumber"], "body": body}) + "\n"


def main() -> int:
    """Read the files of a folder into the store until SIGTERM. Return 1 where Spark is not installed."""
    folder, table = Path(sys.argv[1]), open_table(os.environ["PEERS_STORE"])
    spark = open_spark()
    if spark is None:
        return 1

    def write(frame: Any, batch_id: int) -> None:
        found = frame.collect()
        rows = rows_of_bodies((one.partition_id, one.number, base64.b64decode(one.body)) for one in found)
        with table.transaction():
            table.add_all(rows)

    files = spark.readStream.schema("partition_id string, number bigint, body string")
    stream = files.option("maxFilesPerTrigger", AT_ONCE).json(os.environ["PEERS_FILES"])
    query = stream.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / STATE)).start()
    print("spark ready", flush=True)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    while not ended.wait(0.2) and query.isActive:
        pass
    query.stop()
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
