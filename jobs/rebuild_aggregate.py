"""Compute an aggregate from all its rows into a shadow table, and compare it bit by bit with the current one.

The job prints one JSON object. It ends with 0 when nothing differs, with 1 when something does, and with 3 when a run
was committed in the meantime, so that they cannot be compared.
"""

import argparse
import json
import os
import sys
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession

from core.model.aggregates import Aggregate
from core.transforms.aggregates import find_aggregate
from jobs.retraction import all_rows
from jobs.session import close_session, open_session
from jobs.tables import Tables, open_tables
from jobs.transforms import differences, partial_sums, parts, rolled, sliced, stored_at

SHOWN = 20  # differing windows
EQUAL, DIFFERENT, MOVED = 0, 1, 3


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a rebuild; `moved`: a run was committed during it, so `differing` has no meaning."""

    cut: str
    windows: int
    differing: int
    shown: list[str]
    moved: bool

    @property
    def exit_code(self) -> int:
        """The exit code of the job."""
        if self.moved:
            return MOVED
        return DIFFERENT if self.differing else EQUAL


def rebuild(tables: Tables, of: Aggregate) -> Comparison:
    """Rebuild all levels at the current cut; a shadow is staged under its own id, and the next commit removes it.

    Windows that the retention of their level does not leave are not compared. `windows` are those of the finest level.
    """
    cut, now = tables.read_cut(of.name), datetime.now(UTC)
    sums = partial_sums(of, all_rows(tables, of, cut)).persist()
    found = [_compared(tables, level, rolled(level, sums), now) for level in of.levels]
    differing, shown = sum(count for count, _ in found), [text for _, texts in found for text in texts]
    windows = stored_at(of, sums, now).count()
    sums.unpersist()
    return Comparison(cut, windows, differing, shown[:SHOWN], tables.read_cut(of.name) != cut)


def _compared(tables: Tables, level: Aggregate, windows: DataFrame, now: datetime) -> tuple[int, list[str]]:
    """Return the number of windows of a level that differ, and some of them."""
    shadow = f"rebuild-{uuid.uuid4().hex}"
    tables.stage(level, sliced(level, parts(level, stored_at(level, windows, now))), shadow, "rebuild")
    stored = stored_at(level, tables.windows(level), now)
    found = differences(level, tables.staged(level, shadow), stored).persist()
    count = found.count()
    shown = [f"{level.name} {row.asDict()}" for row in found.orderBy(*level.key, "side").take(SHOWN)]
    found.unpersist()
    return count, shown


def main(arguments: list[str] | None = None) -> int:
    """Run the job and return its exit code."""
    parser = argparse.ArgumentParser(prog="rebuild_aggregate", description=__doc__)
    parser.add_argument("name", help="the name of the aggregate")
    parser.add_argument("--store", help="default: the setting STORE_CONNECTION")
    given = parser.parse_args(arguments)
    spark: SparkSession = open_session(f"rebuild-{given.name}")
    found = rebuild(open_tables(spark, given.store or os.environ["STORE_CONNECTION"]), find_aggregate(given.name))
    print(json.dumps({"cut": json.loads(found.cut), "windows": found.windows, "differing": found.differing}))
    for one in found.shown:
        print(f"difference: {one}", file=sys.stderr)
    close_session(spark)
    return found.exit_code


if __name__ == "__main__":
    sys.exit(main())
