"""From readings to the activity of homes: pure functions, DataFrame -> DataFrame, that end in a `select` as schema.

Sums are integers and the other values are minima and maxima, so the order of rows and runs does not matter: increments
and a rebuild agree to the bit. The module uses only functions that Spark 3.5 and 4.1 share.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

WINDOW_MICROS = 15 * 60 * 1_000_000
KEY = ["home_id", "window_start", "kind"]
VALUES = [
    "readings",
    "active",
    "ppm_hundredths",
    "least_ppm_hundredths",
    "most_ppm_hundredths",
    "first_observed_at",
    "last_observed_at",
]
READINGS = "home_id string, kind string, state string, ppm bigint, observed_at timestamp"
ACTIVITY = (
    "home_id string, window_start timestamp, kind string, readings bigint, active bigint, ppm_hundredths bigint,"
    " least_ppm_hundredths bigint, most_ppm_hundredths bigint, first_observed_at timestamp, last_observed_at timestamp"
)


def partial_sums(readings: DataFrame) -> DataFrame:
    """Return the activity of these readings by home, kind and window of event time."""
    instant = F.unix_micros("observed_at")
    return (
        readings.select("home_id", "kind", "state", "ppm", instant.alias("at"), _window_micros(instant).alias("begin"))
        .groupBy("home_id", "begin", "kind")
        .agg(
            F.count(F.lit(1)).alias("readings"),
            F.count(F.when(F.col("state") == "active", 1)).alias("active"),
            F.sum("ppm").alias("ppm"),
            F.min("ppm").alias("least_ppm"),
            F.max("ppm").alias("most_ppm"),
            F.min("at").alias("first_at"),
            F.max("at").alias("last_at"),
        )
        .select(
            "home_id",
            F.timestamp_micros("begin").alias("window_start"),
            "kind",
            "readings",
            "active",
            (F.col("ppm") * 100).alias("ppm_hundredths"),
            (F.col("least_ppm") * 100).alias("least_ppm_hundredths"),
            (F.col("most_ppm") * 100).alias("most_ppm_hundredths"),
            F.timestamp_micros("first_at").alias("first_observed_at"),
            F.timestamp_micros("last_at").alias("last_observed_at"),
        )
    )


def added(activity: DataFrame) -> DataFrame:
    """Add up the parts of each window into one row."""
    return (
        activity.groupBy(*KEY)
        .agg(
            F.sum("readings").alias("readings"),
            F.sum("active").alias("active"),
            F.sum("ppm_hundredths").alias("ppm_hundredths"),
            F.min("least_ppm_hundredths").alias("least_ppm_hundredths"),
            F.max("most_ppm_hundredths").alias("most_ppm_hundredths"),
            F.min("first_observed_at").alias("first_observed_at"),
            F.max("last_observed_at").alias("last_observed_at"),
        )
        .select(*KEY, *VALUES)
    )


def windows_of(rows: DataFrame) -> DataFrame:
    """Return the windows of rows with home_id, kind and observed_at, each window once."""
    return (
        rows.select("home_id", window_start(F.col("observed_at")).alias("window_start"), "kind").distinct().select(*KEY)
    )


def parts(activity: DataFrame) -> DataFrame:
    """Mark windows as parts, to be added to the stored windows."""
    return activity.select(*KEY, F.lit(False).alias("is_whole"), *VALUES)


def corrected(activity: DataFrame, touched: DataFrame, readings: DataFrame) -> DataFrame:
    """Return windows that lost a row as whole, to replace the stored windows, and all others as parts to add.

    `readings` are all readings up to the cut. A window that lost its last row is whole, with no reading.
    """
    keys = F.broadcast(touched)
    of_touched = readings.withColumn("window_start", window_start(F.col("observed_at"))).join(
        keys, KEY, how="left_semi"
    )
    whole = (
        touched.join(partial_sums(of_touched), KEY, how="left")
        .withColumn("readings", F.coalesce(F.col("readings"), F.lit(0)))
        .withColumn("active", F.coalesce(F.col("active"), F.lit(0)))
        .select(*KEY, F.lit(True).alias("is_whole"), *VALUES)
    )
    return parts(activity.join(keys, KEY, how="left_anti")).unionByName(whole)


def snapshot(standing: DataFrame, result: DataFrame) -> DataFrame:
    """Return the whole aggregate after a run: `standing`, with the run's windows added or as replacements."""
    replaced = result.where(F.col("is_whole")).select(*KEY)
    kept = standing.join(replaced, KEY, how="left_anti").select(*KEY, *VALUES)
    return (
        added(kept.unionByName(result.select(*KEY, *VALUES)))
        .where(F.col("readings") > 0)
        .select(*KEY, F.lit(True).alias("is_whole"), *VALUES)
    )


def of_all_runs(runs: DataFrame) -> DataFrame:
    """Return the aggregate of several runs, ordered by `run_number`: a whole window replaces all parts before it."""
    last_whole = (
        runs.where(F.col("is_whole")).groupBy(*KEY).agg(F.max("run_number").alias("whole_at")).select(*KEY, "whole_at")
    )
    counting = runs.join(last_whole, KEY, how="left").where(
        F.col("whole_at").isNull() | (F.col("run_number") >= F.col("whole_at"))
    )
    return added(counting.select(*KEY, *VALUES)).where(F.col("readings") > 0).select(*KEY, *VALUES)


def differences(first: DataFrame, second: DataFrame) -> DataFrame:
    """Return the windows that differ in any bit; `side` names the side that has the row."""
    columns = [*KEY, *VALUES]
    lacking = first.select(*columns).exceptAll(second.select(*columns)).withColumn("side", F.lit("first"))
    surplus = second.select(*columns).exceptAll(first.select(*columns)).withColumn("side", F.lit("second"))
    return lacking.unionByName(surplus).select("side", *columns)


def window_start(instant: Column) -> Column:
    """Return the beginning of the window of event time that holds an instant."""
    return F.timestamp_micros(_window_micros(F.unix_micros(instant)))


def _window_micros(micros: Column) -> Column:
    return micros - F.pmod(micros, F.lit(WINDOW_MICROS))
