"""jobs/session.py: a job stops the session that it opened, and leaves alone one that was there."""

import os
import subprocess
import sys
from typing import Any

import pytest

from jobs.session import SETTINGS, close_session, open_session
from tests.patience import allowed
from tests.spark.here import ROOT, environment

SCRIPT = """
from pyspark import SparkContext
from jobs.session import close_session, open_session
spark = open_session("ours")
assert spark.range(3).count() == 3
close_session(spark)
assert SparkContext._active_spark_context is None
print("stopped")
"""


def test_a_session_that_was_there_gets_the_settings_and_is_not_stopped(spark: Any) -> None:
    found = open_session("a job in somebody else's session")
    close_session(found)
    assert spark.range(3).count() == 3
    assert found.conf.get("spark.sql.session.timeZone") == SETTINGS["spark.sql.session.timeZone"]


@pytest.mark.slow
def test_a_session_of_our_own_is_stopped() -> None:
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment()},
        capture_output=True,
        text=True,
        timeout=allowed(120),
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "stopped"), done.stderr
