"""The run of Spark in a comparison; it is skipped by name where Java or pyspark is missing."""

import time
from pathlib import Path

from bench.peers.recounted import published
from bench.peers.run import SPARK, Bench
from bench.peers.spark_files import SOURCE, write_files
from bench.peers.watching import Look, Measured, cpu_of, measured, peak_of, stored_by, watch
from local.processes import ChildFailed
from local.stack import HUB, PARTITIONS

LONGEST = 60.0  # seconds


def read_files(bench: Bench, database: Path) -> Measured | None:
    """Write the events of the hub, whose emulator has ended, as files, and measure Spark on them.

    A micro-batch holds so many events that there is no middle of the run: its rate has the start of the query in it.
    """
    files = bench.folder / SOURCE
    write_files(database, HUB, PARTITIONS, files)
    consumer, of = bench.consumer(SPARK, HUB), published(bench.record(HUB))
    try:
        child = bench.start(consumer, PEERS_FILES=str(files))
    except ChildFailed as failed:
        print(f"peers: Spark is skipped: {failed}")
        return None
    begin = Look(time.monotonic(), 0, cpu_of(child.pid))
    last = watch(child, consumer, of.rows, LONGEST)[-1]
    peak = peak_of(child.pid)
    child.end()
    return measured([begin, last], of.events / of.rows, peak, stored_by(consumer))
