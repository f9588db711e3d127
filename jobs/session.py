"""The Spark session of a job: in UTC, without progress bars, and with the same results on every engine."""

from pyspark import SparkContext
from pyspark.sql import SparkSession

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    # The first level holds 65,536 groups. A run has more windows, so both levels would take a third more time.
    "spark.sql.codegen.aggregate.map.twolevel.enabled": "false",
}
_ours: list[SparkSession] = []


def open_session(name: str) -> SparkSession:
    """Return the session of the place where the job runs, or open one."""
    is_there = SparkSession.getActiveSession() is not None or SparkContext._active_spark_context is not None
    builder = SparkSession.builder.appName(name)
    for setting, value in SETTINGS.items():
        builder = builder.config(setting, value)
    spark = builder.getOrCreate()
    if not is_there:
        _ours.append(spark)
    return spark


def close_session(spark: SparkSession) -> None:
    """Stop a session that `open_session` opened. One that was there belongs to somebody else, as on Databricks."""
    if spark in _ours:
        _ours.remove(spark)
        spark.stop()
