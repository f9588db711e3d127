"""Drive the jobs of persons: one orchestration of each open job. SQL is the truth, so two starts do no harm."""

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

import azure.durable_functions as df

log = logging.getLogger("hubledger.jobs")
DRIVEN = (df.OrchestrationRuntimeStatus.Running, df.OrchestrationRuntimeStatus.Pending)


class JobDriver(NamedTuple):
    """The jobs of an orchestration: their name, and the name of their id in answers."""

    job: str
    id_name: str


DRIVEN_BY: Mapping[str, JobDriver] = {
    "drive_replay": JobDriver("replay", "job_id"),
    "drive_redrive": JobDriver("redrive", "redrive_id"),
}


async def drive(client: Any, orchestration: str, job_id: str) -> None:
    """Start the orchestration of a job unless it runs; if that fails, the timer starts it."""
    job = DRIVEN_BY[orchestration].job
    instance = f"{job}-{job_id}"
    try:
        status = await client.get_status(instance)
        if status is None or status.runtime_status not in DRIVEN:
            await client.start_new(orchestration, instance, job_id)
    except Exception as error:  # noqa: BLE001 - the client raises plain Exceptions
        log.warning(
            "job not driven; the timer will drive it",
            extra={"action": "drive", "job": job, "job_id": job_id, "error": str(error)},
        )
