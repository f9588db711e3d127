"""Replay events that the hub no longer has, from the files of Capture, through a transform of the app.

The job prints one JSON object: the outcomes, and the differences between the new rows and those in SQL. With `--stage`
it also stores in SQL the events that a replay can reach, so that a replay can commit them. It changes no output row.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from core.model.rows import row_table
from core.transforms.loading import load_transform
from jobs.capture import EVENTS, LETTER, OUTCOMES, RANGE, Settling, Wanted, events_within, outcomes_with
from jobs.ranges import CommitSpan, Slice
from jobs.session import close_session, open_session, open_tables, parser_of
from jobs.tables import Tables

POSITION = ["partition_id", "sequence_number", "ordinal"]
SHOWN = 20
EVER = 2**63 - 1
DEATHS = ("Python worker exited unexpectedly", "MemoryError")


@dataclass(frozen=True, slots=True)
class TableDiff:
    """One table of appended rows: the numbers of rows that are added, removed, changed and the same."""

    table: str
    added: int
    removed: int
    changed: int
    same: int
    shown: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Replayed:
    """The outcomes of the events in the files. States are only counted: which one of a key stays is decided in SQL."""

    events: int
    letters: dict[str, int]
    states: dict[str, int]
    tables: list[TableDiff]
    staged: int | None  # events, with those that were staged before


def compare(outcomes: DataFrame, tables: Tables, row_classes: Iterable[type], stream_id: int) -> list[TableDiff]:
    """Compare the appended rows of the outcomes with the rows in SQL of the same events."""
    ranges = outcomes.where(F.col("table_name") == RANGE).select(
        "partition_id", "sequence_number", F.col("texts")[0].cast("bigint").alias("last")
    )
    slices = [Slice(stream_id, row[0], row[1], row[2], 0, EVER) for row in ranges.collect()]
    return [_compared(outcomes, tables, row_class, slices) for row_class in row_classes if not row_table(row_class).key]


def _compared(outcomes: DataFrame, tables: Tables, row_class: type, slices: list[Slice]) -> TableDiff:
    name = row_table(row_class).name
    replayed = outcomes.where(F.col("table_name") == name).select(*POSITION, F.col("texts").alias("told"))
    standing = tables.texts(row_class, slices).select(*POSITION, F.col("texts").alias("standing"))
    kind = (
        F.when(F.col("standing").isNull(), "added")
        .when(F.col("told").isNull(), "removed")
        .when(F.col("told") == F.col("standing"), "same")
        .otherwise("changed")
    )
    both = (
        replayed.join(standing, POSITION, how="full")
        .select(*POSITION, "told", "standing", kind.alias("kind"))
        .persist()
    )
    counts = {row["kind"]: row["count"] for row in both.groupBy("kind").count().collect()}
    differing = both.where(F.col("kind") != "same").orderBy(*POSITION).limit(SHOWN).collect()
    both.unpersist()
    added, removed, changed, same = (counts.get(each, 0) for each in ("added", "removed", "changed", "same"))
    return TableDiff(name, added, removed, changed, same, [row.asDict() for row in differing])


def replay(spark: SparkSession, tables: Tables, given: argparse.Namespace) -> Replayed:
    """Settle the events again, compare their rows with SQL, and stage the events where the options request it.

    Where an event ends its process, and Spark tries no task twice (as on one machine), all is settled in children.
    """
    try:
        return _replay(spark, tables, given)
    except Exception as fault:  # Spark has no class of its own for a process that died
        if not any(words in str(fault) for words in DEATHS):
            raise
        return _replay(spark, tables, given, in_child=True)


def _replay(spark: SparkSession, tables: Tables, given: argparse.Namespace, in_child: bool = False) -> Replayed:
    row_classes = list(load_transform(given.transform).row_classes)
    wanted = Wanted(frozenset(given.partition), given.first, given.last)
    references = [
        (row_class, tuple(row["texts"]))
        for row_class in row_classes
        if row_table(row_class).key
        for row in tables.texts(row_class, None).select("texts").collect()
    ]
    settling = Settling(given.transform, references, wanted, timedelta(seconds=given.deadline), in_child)
    found = _found(spark, given.files).mapInArrow(outcomes_with(settling), OUTCOMES)
    outcomes = found.distinct().persist()  # although Capture may have written an event to two files
    diffs = compare(outcomes, tables, row_classes, given.stream_id)
    staged = stage(spark, tables, given) if given.stage else None
    ranges, length = outcomes.where(F.col("table_name") == RANGE), F.col("texts")[0].cast("bigint")
    events = int(ranges.agg(F.sum(length - F.col("sequence_number") + 1)).collect()[0][0] or 0)
    letters = outcomes.where(F.col("table_name") == LETTER).groupBy(F.col("texts")[0].alias("name")).count()
    states = outcomes.where(F.col("is_state")).groupBy(F.col("table_name").alias("name")).count()
    by_class, by_table = ({row["name"]: row["count"] for row in one.collect()} for one in (letters, states))
    replayed = Replayed(events, by_class, by_table, diffs, staged)
    outcomes.unpersist()
    return replayed


def stage(spark: SparkSession, tables: Tables, given: argparse.Namespace) -> int:
    """Store the wanted events that a replay can reach, each once, and return their number."""
    checkpoints = tables.read_checkpoints(given.stream_id)
    ids = [id for id in checkpoints if not given.partition or id in given.partition]
    firsts = tables.read_ledger([CommitSpan(given.stream_id, id, 0, 1) for id in ids])
    spans = {  # of each partition, from its first commit to its checkpoint
        one.partition_id: (max(given.first, one.first), min(given.last, checkpoints[one.partition_id]))
        for one in firsts
    }
    found = _found(spark, given.files).mapInArrow(events_within(spans, given.transform, given.event_key), EVENTS)
    events = found.dropDuplicates(["partition_id", "sequence_number"]).persist()
    tables.stage_events(events, given.stream_id)
    count = events.count()
    events.unpersist()
    return count


def _found(spark: SparkSession, files: str) -> DataFrame:
    return (
        spark.read.format("binaryFile")
        .option("recursiveFileLookup", "true")
        .option("pathGlobFilter", "*.avro")
        .load(files)
        .select("path", "content")
    )


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the options of the job."""
    parser = parser_of("replay_capture", __doc__)
    add = parser.add_argument
    add("--files", required=True, help="the folder or address that Capture writes NAMESPACE/HUB/PARTITION/... into")
    add("--stream-id", required=True, type=int, help="the stream (event_stream.stream_id) that the rows belong to")
    add(
        "--deadline",
        type=float,
        default=os.environ.get("TRANSFORM_DEADLINE_SECONDS") or 60,
        help="seconds of a transform",
    )
    add("--partition", action="append", default=[], help="only this partition; repeatable")
    add("--first", type=int, default=0, help="first sequence number")
    add("--last", type=int, default=EVER, help="last sequence number")
    add("--stage", action="store_true", help="also store the events in SQL, for a replay to commit")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the job and print its result."""
    given = parse(arguments)
    spark = open_session("replay-capture")
    tables = open_tables(spark, given.store)
    print(json.dumps(asdict(replay(spark, tables, given))), flush=True)
    close_session(spark)
    return 0


if __name__ == "__main__":
    sys.exit(main())
