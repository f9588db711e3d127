"""Reports that Spark cannot run here, with the missing part and the way to get it."""

import subprocess

import pytest

from tests.patience import allowed
from tests.spark.here import lacking, spark_submit


def test_spark_and_java_are_here() -> None:
    missing = lacking()
    if missing is not None:
        pytest.skip(f"the Spark tests are left out: {missing}")
    done = subprocess.run([spark_submit(), "--version"], capture_output=True, timeout=allowed(120), check=False)
    assert done.returncode == 0
