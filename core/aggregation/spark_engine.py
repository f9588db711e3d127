"""The port to a Spark engine: submit a job under a name that we choose, find it by that name, and read its state."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A program of `jobs/` ("aggregate.py"), its arguments, and the name under which `find` finds it."""

    name: str
    program: str
    arguments: tuple[str, ...]


class JobState(Enum):
    """The state of a job. LOST: the engine answers, but does not know the job."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class JobReport:
    """The engine's words about a job: its reason, the end of its log, and the place where a person reads more."""

    reason: str | None = None
    log: str | None = None
    link: str | None = None


NO_REPORT = JobReport()


class SparkEngine(Protocol):
    """Runs Spark jobs. The id of a job is an opaque text. Every method may raise EngineUnreachable or EngineRefused."""

    @property
    def name(self) -> str:
        """The name in the setting SPARK_ENGINE."""

    def submit(self, request: JobRequest) -> str:
        """Start a job and return its id.

        Raises EngineUnreachable when it is unknown whether the job was started, EngineRefused when it was not.
        """

    def find(self, name: str) -> str | None:
        """Return the id of a running or ended job that was submitted under this name, or None."""

    def state(self, job_id: str) -> JobState:
        """Return the state of a job."""

    def cancel(self, job_id: str) -> None:
        """Ask the engine to end a job. A job that has ended or is lost is ignored."""

    def report(self, job_id: str) -> JobReport:
        """Return the engine's words about a job, or an empty report for a job that it does not know."""
