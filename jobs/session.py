"""The Spark session of a job: UTC everywhere, quiet, and the same results on every engine."""

from pyspark.sql import SparkSession

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    # Its first level holds 65,536 groups; with the many windows of a run it is a second look, and costs a third more.
    "spark.sql.codegen.aggregate.map.twolevel.enabled": "false",
}


def open_session(name: str) -> SparkSession:
    """The session that the engine gives, or one of our own."""
    builder = SparkSession.builder.appName(name)
    for setting, value in SETTINGS.items():
        builder = builder.config(setting, value)
    return builder.getOrCreate()
