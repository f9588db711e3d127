"""Open the engine and the lake that the settings name."""

from pathlib import Path

from core.aggregation.spark_engine import SparkEngine
from core.errors import SettingsRefused
from core.model.policies import embedded_path
from core.remote.spark import http as tokens
from core.remote.spark.delta import DeltaLake
from core.remote.spark.http_engines import SMALL, DatabricksEngine, LivyEngine, LivyJobs
from core.remote.spark.job_package import APP, jdbc_address, package_version
from core.remote.spark.lake_storage import BlobStorage, FolderStorage
from core.remote.spark.local_engine import LocalEngine, LocalSpark
from core.settings import Settings

_SCOPES = {"synapse": tokens.SYNAPSE, "fabric": tokens.FABRIC}


def open_engine(settings: Settings) -> SparkEngine | None:
    """Return the engine, or None for SPARK_ENGINE=none. Nothing is connected yet."""
    spark = settings.spark
    package = f"{(spark.jobs or '').rstrip('/')}/{package_version()}"  # of our own version
    if spark.engine == "local":
        jobs, memory = Path(spark.jobs) if spark.jobs else APP / "jobs", _beside_store(settings) / "spark"
        return LocalEngine(LocalSpark(spark.submit, jobs, memory, spark.options.get("conf", {})))
    if spark.engine == "livy":
        scope, sizes = _SCOPES.get(spark.livy_dialect), SMALL if spark.livy_dialect == "synapse" else {}
        token = tokens.no_token if scope is None else tokens.entra_token(scope)
        return LivyEngine(spark.livy_url, token, LivyJobs(package, {**sizes, **spark.options}))
    if spark.engine == "databricks":
        token = tokens.entra_token(tokens.DATABRICKS)
        return DatabricksEngine(spark.databricks_url, token, package, spark.options)
    return None


def open_lake(settings: Settings) -> DeltaLake | None:
    """Return the lake, or None when results stay in SQL. The local engine has a folder by default."""
    spark = settings.spark
    if spark.lake is None:
        return DeltaLake(FolderStorage(_beside_store(settings) / "lake")) if spark.engine == "local" else None
    if "://" in spark.lake:
        return DeltaLake(BlobStorage(spark.lake, spark.lake_connection))
    return DeltaLake(FolderStorage(Path(spark.lake)))


def job_arguments(settings: Settings) -> tuple[str, ...]:
    """Return the arguments of every job, without secrets: the transform, and the address of the store, which a local
    job inherits with our environment.

    SettingsRefused when a remote job could not reach the store.
    """
    event_key = ("--event-key", settings.event_key) if settings.event_key else ()
    transform = ("--transform", settings.transform, *event_key)
    if settings.spark.engine == "local":
        return transform
    try:
        address = jdbc_address(settings.store_connection)
    except ValueError as error:
        raise SettingsRefused([f"STORE_CONNECTION: {error}"]) from error
    return (*transform, "--store", address.url)


def _beside_store(settings: Settings) -> Path:
    path = embedded_path(settings.store_connection)
    return path.parent if path else Path(".local-run")
