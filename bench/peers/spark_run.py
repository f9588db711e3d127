"""The run of Spark in a comparison. It is skipped by name where Java or pyspark is missing."""

from pathlib import Path

from bench.peers.recounted import published
from bench.peers.run import SPARK, Bench
from bench.peers.spark_files import SOURCE, write_files
from bench.peers.watching import Measured, measured, peak_of_family, stored_by, watch
from local.stack.processes import ChildFailed
from local.stack.stack import HUB, PARTITIONS

LONGEST = 60.0  # seconds


def read_files(bench: Bench, database: Path) -> Measured | None:
    """Write the events of the hub, whose emulator has ended, as files, and measure Spark on them."""
    files = bench.folder / SOURCE
    write_files(database, HUB, PARTITIONS, files)
    consumer, of = bench.consumer(SPARK, HUB), published(bench.record(HUB))
    try:
        child = bench.start(consumer, PEERS_FILES=str(files))
    except ChildFailed as failed:
        print(f"peers: Spark is skipped: {failed}")
        return None
    looks = watch(child, consumer, of.rows, LONGEST)
    peak = peak_of_family(child.pid)
    child.end()
    return measured(looks, of.events / of.rows, peak, stored_by(consumer))
