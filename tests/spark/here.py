"""The environment of every Spark process of the tests, and the reason when Spark cannot run here."""

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONF = Path(__file__).parent / "conf"  # the options, the log and the daemon of every Spark process


def lacking() -> str | None:
    """Return the missing part and the way to get it, in one line. None when Spark can run."""
    if find_spec("pyspark") is None:
        return "pyspark is not installed: make test installs it where Java is found"
    java = Path(os.environ.get("JAVA_HOME", "")) / "bin" / "java"
    if shutil.which("java") is None and not java.exists():
        return "Java is missing: apt-get install openjdk-17-jre-headless, or set JAVA_HOME"
    return None


def environment() -> dict[str, str]:
    """Return the environment of a Spark process: loopback only, quiet, and this Python on both sides."""
    return {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONF_DIR": str(CONF),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{CONF}",
    }


def spark_home() -> Path:
    """Return the folder of Spark in the wheel of pyspark."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def spark_submit() -> str:
    """Return the spark-submit of that wheel."""
    return str(spark_home() / "bin" / "spark-submit")
