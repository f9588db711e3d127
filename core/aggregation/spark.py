"""What an aggregation asks of a Spark engine: take a job under a name of ours, find it again, say how it goes."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A program of `jobs/` ("aggregate_home_activity.py"), its arguments, and the name that finds it again."""

    name: str
    program: str
    arguments: tuple[str, ...]


class JobState(Enum):
    """How a job goes. LOST: the engine answers, and knows no such job."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LOST = "lost"


class SparkEngine(Protocol):
    """Any engine; ids of its jobs are opaque texts. Every method may raise EngineUnreachable or EngineRefused."""

    @property
    def name(self) -> str:
        """As the setting SPARK_ENGINE has it."""
        ...

    def submit(self, request: JobRequest) -> str:
        """Start a job and return its id.

        Raises EngineUnreachable when it may have been started or not, EngineRefused when it was not.
        """
        ...

    def find(self, name: str) -> str | None:
        """The id of a job that was submitted under this name, whether it still runs or not; None where none is seen."""
        ...

    def state(self, job_id: str) -> JobState:
        """How a job goes."""
        ...

    def cancel(self, job_id: str) -> None:
        """Ask the engine to end a job; one that has ended or is lost is none to complain of."""
        ...
