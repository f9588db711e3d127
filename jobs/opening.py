"""The tables that a job opens: those of the store that its arguments name."""

from pyspark.sql import SparkSession

from core.model.policies import EMBEDDED
from core.remote.spark.job_package import jdbc_address
from jobs.jdbc_tables import JdbcTables
from jobs.sign_in import sign_in_of
from jobs.sqlite_tables import SqliteTables
from jobs.tables import Tables

JDBC = "jdbc:"


def open_tables(spark: SparkSession, store: str) -> Tables:
    """Open the tables of `sqlite:PATH`, a JDBC address or an ODBC connection string; raise ValueError for any other."""
    if store.startswith(EMBEDDED):
        return SqliteTables(spark, store.removeprefix(EMBEDDED))
    address = None if store.startswith(JDBC) else jdbc_address(store)
    tables = JdbcTables(spark, store if address is None else address.url, sign_in_of(address))
    tables.require_snapshots()
    return tables
