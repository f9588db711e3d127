"""The Spark session of a job: in UTC, without progress bars, and with the same results on every engine."""

from pyspark.sql import SparkSession

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    # The first level holds 65,536 groups. A run has more windows, so both levels would take a third more time.
    "spark.sql.codegen.aggregate.map.twolevel.enabled": "false",
}


def open_session(name: str) -> SparkSession:
    """Return the session of the engine, or open one."""
    builder = SparkSession.builder.appName(name)
    for setting, value in SETTINGS.items():
        builder = builder.config(setting, value)
    return builder.getOrCreate()
