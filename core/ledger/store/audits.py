"""Audits as jobs in SQL."""

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

from core.ledger.audit_job import AuditJob, AuditRequest
from core.model.events import PartitionId
from core.model.spans import SequenceNumber
from core.store.columns import cut, instant_of, instant_or_none, instant_text
from core.store.database import write
from core.store.jobs import FAULT_LENGTH
from core.store.script import Script, Step
from core.store.stream import OneStream, StreamClosed, lock_step

PERSON_LENGTH = 200  # characters that are stored


class Audits:
    """The audits of one stream that run as jobs."""

    def __init__(self, stream: OneStream) -> None:
        self.stream = self._stream = stream

    def open_audit(self, request: AuditRequest) -> bool:
        """Store a job; return False, with nothing stored, while another one is open, or the stream is unknown."""
        stream_id = self._stream.find()
        if stream_id is None:
            return False
        with suppress(StreamClosed):
            self._stream.database.run(open_script(stream_id, request))
        return self.find_audit(request.audit_id) is not None  # also if the statement was sent again

    def find_open_audit(self) -> UUID | None:
        """Return the job that is open, or None."""
        found = self._stream.ask("find_open_audit")
        return UUID(found[0][0]) if found else None

    def find_audit(self, audit_id: UUID) -> AuditJob | None:
        """Return a job, or None."""
        found = self._stream.database.ask("find_audit", audit_id=str(audit_id))
        return _job(found[0]) if found else None

    def claim_audit(self, now: datetime, until: datetime) -> AuditJob | None:
        """Claim the open job until a time; None when there is none, or another process has claimed it."""
        stream_id = self._stream.find()
        if stream_id is None or not self._stream.ask("find_open_audit"):
            return None
        times = {"now_at": instant_text(now), "claimed_until": instant_text(until)}
        found = self._write("claim_audit", stream_id=stream_id, **times)
        return self.find_audit(UUID(found[0][0])) if found else None

    def record_audit(self, job: AuditJob, now: datetime, until: datetime) -> bool:
        """Store the next step of a claimed job, claimed until a time; False when another process has claimed it."""
        return bool(
            self._write(
                "record_audit",
                audit_id=str(job.request.audit_id),
                status=job.status,
                partitions=json.dumps(job.partitions),
                findings=json.dumps(dict(job.findings)),
                fault=cut(job.fault or "", FAULT_LENGTH),
                updated_at=instant_text(now),
                claimed_until=instant_text(until),
                expected=job.step,
            )
        )

    def _write(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        return write(self._stream.database, f"audit of {self._stream.stream}", statement, **values)


def open_script(stream_id: int, request: AuditRequest) -> Script:
    """Return the transaction of a new job. It locks the stream, as each piece of a purge does: none is under way."""
    values = {
        "stream_id": stream_id,
        "audit_id": str(request.audit_id),
        "asked": _asked(request),
        "requested_by": cut(request.requested_by, PERSON_LENGTH),
        "requested_at": instant_text(request.requested_at),
    }
    steps = (lock_step(stream_id, StreamClosed), Step("open_audit", values))
    return Script(f"audit {request.audit_id}", steps, may_repeat=True)


def _asked(request: AuditRequest) -> str:
    names = ("partition_id", "whole", "rows", "hub", "first", "last")
    return json.dumps({name: getattr(request, name) for name in names})


def _job(row: tuple[Any, ...]) -> AuditJob:
    audit_id, requested_by, requested_at, asked, status, step, partitions, findings, fault, ended_at = row
    request = AuditRequest(UUID(audit_id), requested_by, instant_of(requested_at), **_given(json.loads(asked)))
    ids = json.loads(partitions)
    found = None if ids is None else tuple(map(PartitionId, ids))
    return AuditJob(request, status, step, found, json.loads(findings), fault, instant_or_none(ended_at))


def _given(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a request as the job has them."""
    numbers = {name: None if asked[name] is None else SequenceNumber(asked[name]) for name in ("first", "last")}
    return {**asked, **numbers}
