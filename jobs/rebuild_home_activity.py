"""Compute home_activity from nothing into a shadow table, and compare it to the bit with what the increments came to.

Prints one JSON object and ends with 0 when nothing differs, 1 when something does, 3 when a run was committed
meanwhile, so that there was nothing to compare with.
"""

import argparse
import json
import os
import sys
import uuid
from dataclasses import dataclass

from pyspark.sql import SparkSession

from jobs.aggregate_home_activity import JOB, all_readings
from jobs.session import open_session
from jobs.tables import Tables, open_tables
from jobs.transforms import differences, partial_sums, parts

SHOWN = 20  # differing windows
EQUAL, DIFFERENT, MOVED = 0, 1, 3


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a rebuild found: `moved` when the cut did not stay; then `differing` says nothing."""

    cut: str
    windows: int
    differing: int
    shown: list[str]
    moved: bool

    @property
    def exit_code(self) -> int:
        """As the job ends."""
        if self.moved:
            return MOVED
        return DIFFERENT if self.differing else EQUAL


def rebuild(tables: Tables) -> Comparison:
    """Rebuild at the standing cut. The shadow is staged under an id of its own; the next commit takes it away."""
    cut = tables.read_cut(JOB)
    shadow = f"rebuild-{uuid.uuid4().hex}"
    tables.stage(parts(partial_sums(all_readings(tables, cut))), shadow, "rebuild")
    rebuilt = tables.staged(shadow)
    found = differences(rebuilt, tables.activity()).persist()
    differing = found.count()
    shown = [str(row.asDict()) for row in found.orderBy("home_id", "window_start", "kind", "side").take(SHOWN)]
    windows = rebuilt.count()
    found.unpersist()
    return Comparison(cut, windows, differing, shown, tables.read_cut(JOB) != cut)


def main(arguments: list[str] | None = None) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="rebuild_home_activity", description=__doc__)
    parser.add_argument("--store", help="default: the setting STORE_CONNECTION")
    given = parser.parse_args(arguments)
    spark: SparkSession = open_session("rebuild-home-activity")
    found = rebuild(open_tables(spark, given.store or os.environ["STORE_CONNECTION"]))
    print(json.dumps({"cut": json.loads(found.cut), "windows": found.windows, "differing": found.differing}))
    for one in found.shown:
        print(f"difference: {one}", file=sys.stderr)
    spark.stop()
    return found.exit_code


if __name__ == "__main__":
    sys.exit(main())
