"""Open the options of a job, its Spark session, and the tables of the store that its arguments name."""

import argparse
import os

from pyspark import SparkContext
from pyspark.sql import SparkSession

from core.model.policies import EMBEDDED
from core.model.release import DEFAULT_TRANSFORM
from core.remote.spark.job_package import jdbc_address
from jobs.jdbc_tables import JdbcTables
from jobs.sign_in import sign_in_of
from jobs.sqlite_tables import SqliteTables
from jobs.tables import Tables

JDBC = "jdbc:"
SETTINGS = {  # the same results on every engine
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


def parser_of(program: str, description: str | None) -> argparse.ArgumentParser:
    """Return the parser of a job's arguments, with those that every job has."""
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument(
        "--transform",
        default=os.environ.get("TRANSFORM") or DEFAULT_TRANSFORM,
        metavar="NAME",
        help="the transform whose rows it reads; default: the setting TRANSFORM, or %(default)s",
    )
    parser.add_argument(
        "--event-key", default=os.environ.get("EVENT_KEY", ""), metavar="KEY", help="default: the setting EVENT_KEY"
    )
    parser.add_argument("--store", help="default: the setting STORE_CONNECTION")
    return parser


def open_tables(spark: SparkSession, store: str | None) -> Tables:
    """Open the tables of `sqlite:PATH`, a JDBC address or an ODBC connection string. None: of STORE_CONNECTION.

    ValueError for any other text.
    """
    store = store or os.environ["STORE_CONNECTION"]
    if store.startswith(EMBEDDED):
        return SqliteTables(spark, store.removeprefix(EMBEDDED))
    address = None if store.startswith(JDBC) else jdbc_address(store)
    tables = JdbcTables(spark, store if address is None else address.url, sign_in_of(address))
    tables.require_snapshots()
    return tables
