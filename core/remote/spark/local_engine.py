"""Spark on this machine: spark-submit in a separate process that outlives us, with a folder named like the job."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from core.aggregation.spark_engine import JobReport, JobRequest, JobState
from core.errors import EngineRefused, EngineUnreachable
from core.remote.spark.job_package import APP

TAIL = 8_000  # octets of a log that a report holds
ERROR_LENGTH = 1_000
_TRACEBACK = "Traceback (most recent call last):\n"
_ERROR = re.compile(
    r"^(?P<python>[A-Za-z_][\w.]*(?::.*)?$)(?:(?<=\.)\n: (?P<java>.*))?", re.M
)  # the frames are indented
CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
# A shell in a new process group writes the number of the group, starts the job and ends: the job is not our child, and
# its exit code is written even when this process has ended.
_LEAVING = """
( "$@" > "$0/out" 2> "$0/err"; echo $? > "$0/ended.new"; mv "$0/ended.new" "$0/ended" ) &
echo $$ > "$0/group.new" && mv "$0/group.new" "$0/group"
"""


@dataclass(frozen=True, slots=True)
class LocalSpark:
    """The command, the folder of the programs, the folder of the jobs, and Spark settings in addition to ours."""

    submit: str
    jobs: Path
    memory: Path
    conf: Mapping[str, str] = field(default_factory=dict)
    master: str = "local[2]"


class LocalEngine:
    """A SparkEngine. The id of a job is its name, so that each job is submitted once."""

    name = "local"

    def __init__(self, spark: LocalSpark) -> None:
        self._spark = spark

    def submit(self, request: JobRequest) -> str:
        command = shutil.which(self._spark.submit)
        if command is None:
            raise EngineRefused(
                f"SPARK_SUBMIT: {self._spark.submit} is missing: pip install -r jobs/requirements.txt, and Java 17"
            )
        folder = self._spark.memory / request.name
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            return request.name
        except OSError as error:
            raise EngineRefused(f"the job's folder {folder} cannot be created: {error}") from error
        self._start(command, folder, request)
        return request.name

    def find(self, name: str) -> str | None:
        return name if (self._spark.memory / name / "group").exists() else None

    def state(self, job_id: str) -> JobState:
        """Return the state of a job. A job whose processes are gone without an exit code was killed."""
        folder = self._spark.memory / job_id
        group = _number_in(folder / "group")
        if group is None:
            return JobState.LOST
        alive = _is_alive(group)  # before the exit code: a job that ends between these reads has written its code
        code = _number_in(folder / "ended")
        if code is not None:
            return JobState.FAILED if code else JobState.SUCCEEDED
        return JobState.RUNNING if alive else JobState.FAILED

    def cancel(self, job_id: str) -> None:
        group = _number_in(self._spark.memory / job_id / "group")
        if group is not None and self.state(job_id) is JobState.RUNNING:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)

    def report(self, job_id: str) -> JobReport:
        """Return the exit code of a job with the error that ended it, the end of its log, and its folder. Spark writes
        the traceback of a job to its standard output, and what it does itself to its standard error."""
        folder = self._spark.memory / job_id
        if not folder.exists():
            return JobReport()
        code, out, err = _number_in(folder / "ended"), _tail(folder / "out"), _tail(folder / "err")
        reason = "its processes were killed" if code is None else f"spark-submit ended with {code}"
        for log in (out, err):
            if error := error_in(log):
                return JobReport(f"{reason}: {error}", log, str(folder.resolve()))
        return JobReport(reason, err or out, str(folder.resolve()))

    def _start(self, command: str, folder: Path, request: JobRequest) -> None:
        conf = [word for name, value in {**CONF, **self._spark.conf}.items() for word in ("--conf", f"{name}={value}")]
        program = str(self._spark.jobs.resolve() / request.program)
        python = Path(command).parent / "python"  # of this spark-submit
        own = {"PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)} if python.exists() else {}
        path = os.pathsep.join(filter(None, [str(APP), os.environ.get("PYTHONPATH", "")]))
        words = [command, "--name", request.name, "--master", self._spark.master, *conf, program, *request.arguments]
        try:
            subprocess.run(
                ["/bin/sh", "-c", _LEAVING, str(folder.resolve()), *words],
                env={"SPARK_LOCAL_IP": "127.0.0.1", **own, **os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                check=True,
            )
        except (OSError, subprocess.CalledProcessError) as error:
            raise EngineUnreachable(f"{request.name} could not be started: {error}") from error


def error_in(log: str) -> str | None:
    """Return the error of the last traceback in a log: its name, and the first line of what it says. Py4J's own words
    are left out: the line after them has the error of the JVM."""
    *_, last = log.rpartition(_TRACEBACK)
    found = _ERROR.search(last) if _TRACEBACK in log else None
    return None if found is None else (found["java"] or found["python"]).strip()[:ERROR_LENGTH]


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL))
            return file.read().decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _number_in(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
