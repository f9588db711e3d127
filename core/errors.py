"""Every error of Hubledger, named for what happened.

    HubledgerError
    ├── SettingsRefused            a setting is missing or wrong (every fault is listed)
    ├── InvalidTransform           the transform's module breaks its contract (every fault is listed)
    ├── PoisonEvent                raised by a transform: this event can never succeed              (data)
    ├── MissingReference           raised by a transform: a row that it needs does not exist (yet)  (data)
    ├── ProcessDied                the process died, or was too slow, each time with it alone       (data)
    ├── EarlierLetterOpen          an earlier event of the same partition key is an open letter      (data)
    ├── RowsRefused                the database refuses the rows of this event                      (data)
    ├── TooManyRows                the transform makes more rows of this event than one may have    (data)
    ├── RequestRefused             a part of a request cannot be fulfilled
    ├── TaskOverlap                an open task keeps the new one out
    ├── AggregationConflict        the aggregation is not in the state that an order needs
    ├── OffsetRefused              the hub does not accept an offset             (in core/model/ports.py)
    ├── TaskDiffers                a different request has opened a task with this id
    ├── TooManyTasks               as many tasks of a kind are open as the limit allows
    ├── StateDiffers               the stream or hub changed since the dry run  (in core/incarnations)
    ├── HubFits                    the hub is still the one that was read  (in core/incarnations)
    └── InfrastructureFault        always leaves the handler, so that the host retries
        ├── BatchRefused           the host's batch is incomplete, or of a different hub (nothing is guessed)
        ├── HubUnreachable         the hub did not answer, or not in time
        ├── HubRefused             the hub does not accept our names or our token: a setting has to change
        ├── GapNotHealed           the time was up before all missing events were read back from the hub
        ├── PartitionStopped       a partition is stopped on purpose until its cause is gone
        │   ├── OutageSuspected        most events of a batch fail: it is held for a while instead of dead-lettered
        │   ├── StreamIncarnationChanged   the hub was recreated, restored or failed over since our checkpoint
        │   ├── HeldLettersFull        the partition holds as many letters as HELD_LIMIT allows
        │   └── ErasureKeyMissing      subjects were erased with a key that the settings do not have
        ├── EventKeyChanged        letters, tasks or erasures need a different key of events than EVENT_KEY
        ├── VersionChanged         the task was opened with a different version of the transform
        ├── ErasureWaits           a run of an aggregate has to end before an erasure does
        ├── ChildNotStarted        no child process starts to try a deadly event (in core/settle/settle.py)
        │   └── ChildNotFree           none is free in time, or the events are tried already (in core/settle/settle.py)
        ├── EngineUnreachable      the Spark engine did not answer: it is unknown whether it carried out the request
        ├── EngineRefused          the Spark engine refused the request: a setting has to change
        │   └── NotFound               the Spark engine does not know the job  (in core/remote/spark/http.py)
        ├── HostStorageUnreachable  the host's storage is not set, or refuses us  (in core/ingest/stalled_partitions.py)
        ├── LakeUnreachable        the lake did not answer, or holds a table that this app did not make
        │   └── LakeDamaged            files of a table of the lake are gone or unreadable: `remake-table` mends it
        └── StoreFault
            ├── CheckpointConflict     another owner committed first, or the stream is closed (nothing was written)
            ├── IncarnationConflict    the stream is not in the expected incarnation (nothing was written)
            ├── LetterConflict         the claim of this retry lost letters (nothing was written)
            ├── TaskConflict           the task has progressed elsewhere, or does not run (nothing was written)
            ├── CommitOutcomeUnknown   the answer to a commit was lost: read the checkpoint or the letters again
            ├── StagingRefused         a staged result is not what its job staged (its slice was not committed)
            ├── DataRefused            the database refuses a row of this commit (nothing was written)
            ├── StoreMisconfigured     the login, database, driver or token is wrong: a setting has to change
            ├── SchemaMismatch         the database's schema is older or newer than this code, or a migration differs
            └── StoreUnavailable       the database did not answer, or not in time (nothing was written)
                └── StoreUnreachable   there is no connection: the next one is opened after a pause

A **data** fault becomes a dead letter in `core/settle/settle.py`. An **infrastructure** fault always reaches the host.
"""

from typing import Literal
from uuid import UUID

StopReason = Literal["incarnation", "outage", "held", "store", "trigger", "erasure_key"]


class HubledgerError(Exception):
    """The root of all errors that we raise."""


class SettingsRefused(HubledgerError):
    """Some settings are missing or wrong."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("settings refused: " + "; ".join(faults))
        self.faults = faults


class InvalidTransform(HubledgerError):
    """A transform module or one of its row classes breaks the contract of `core/transforms`."""

    def __init__(self, *faults: str, module: str | None = None) -> None:
        super().__init__((f"TRANSFORM={module}: " if module else "") + "; ".join(faults))
        self.faults = faults


class PoisonEvent(HubledgerError):
    """Raised by a transform with the reason why this event can never become rows: its letter is exhausted at once."""


class MissingReference(HubledgerError):
    """Raised by a transform for a row that may come later and that this event needs: its letter is tried again."""


class ProcessDied(HubledgerError):
    """The process that ran the transform died, or outlasted its lease, each time that it tried this event alone."""


class EarlierLetterOpen(HubledgerError):
    """An earlier event of the same partition key is an open letter: this event is tried after it (`hold_key`)."""


class RowsRefused(HubledgerError):
    """The database refuses the rows of one event. The message is the database's own."""


class TooManyRows(HubledgerError):
    """The transform made more rows of one event than ROWS_PER_EVENT allows."""

    def __init__(self, limit: int) -> None:
        text = "the transform makes more than {} rows of this event: correct the transform, or raise ROWS_PER_EVENT"
        super().__init__(text.format(limit))


class RequestRefused(HubledgerError):
    """A request cannot be fulfilled. `field` is the part that is wrong, or empty. `problem` names the type of problem,
    and `more` has members of its own."""

    def __init__(self, field: str, why: str, problem: str = "invalid-request", **more: int) -> None:
        super().__init__(f"{field}: {why}")
        self.field, self.why, self.problem, self.more = field, why, problem, more


_HOLDS = {"replay": "working on part of this range", "redrive": "open for the same letters"}


class TaskOverlap(HubledgerError):
    """An open task of the same kind has the same key, or some of the same numbers."""

    def __init__(self, kind: str, task_id: UUID) -> None:
        super().__init__(f"{kind} {task_id} is {_HOLDS.get(kind, 'open')}: wait until it is done, or cancel it")
        self.task_id = task_id


class TaskDiffers(HubledgerError):
    """A different request has opened a task with this id. Nothing was written."""

    def __init__(self, kind: str, task_id: UUID) -> None:
        super().__init__(f"{kind} {task_id} was opened by a different request: send this one with a new id")
        self.task_id = task_id


class TooManyTasks(HubledgerError):
    """The limit of open tasks of a kind is reached. Paused ones and dry runs count."""

    def __init__(self, kind: str, limit: int) -> None:
        super().__init__(f"{limit} {kind}s are open, which is the limit: wait until one is done, or cancel one")
        self.limit = limit


class AggregationConflict(HubledgerError):
    """An order about the aggregation does not fit its state. Nothing was changed."""


class InfrastructureFault(HubledgerError):
    """A fault that no event causes: the invocation fails and the host retries it."""


class BatchRefused(InfrastructureFault):
    """The host delivered a batch that does not identify all its events, or that is of a different hub."""


class HubUnreachable(InfrastructureFault):
    """The hub did not answer."""


class HubRefused(InfrastructureFault):
    """The namespace does not accept the hub, the consumer group or the token."""


class GapNotHealed(InfrastructureFault):
    """A part of a gap was read back and committed. The next delivery of the batch reads the rest."""

    def __init__(self, partition: object, first: int, last: int) -> None:
        super().__init__(
            f"{partition}: events {first} to {last} are missing, and the time to read them back from the hub is up;"
            " the events before them are committed, and the next try continues from there (HEAL_DEADLINE_SECONDS)"
        )
        self.partition, self.first, self.last = partition, first, last


class PartitionStopped(InfrastructureFault):
    """A partition is stopped on purpose. The store records the stop, and pages and alerts show it."""

    reason: StopReason
    failing: tuple[str, int, int] | None = None  # the frequent error, the events that failed, all that were tried


class OutageSuspected(PartitionStopped):
    """Most events of a batch fail with one class: something that they share is broken, so the batch is held."""

    reason: StopReason = "outage"

    def __init__(self, partition: object, failing: tuple[str, int, int], attempt: tuple[int, int], sample: str) -> None:
        error, failed, tried = self.failing = failing
        super().__init__(
            f"{partition}: {failed} of {tried} events fail, most with {error}, so an outage or a faulty deployment is"
            f" suspected; attempt {attempt[0]} of {attempt[1]} wrote nothing, and after the last one events that fail"
            f" become letters. Repair the cause, or deploy a transform that works. One of the errors: {sample}"
        )


class StreamIncarnationChanged(PartitionStopped):
    """The hub is not the one that the stream was read from. `evidence` is a clause that says how it differs."""

    reason: StopReason = "incarnation"

    def __init__(self, partition: object, evidence: str) -> None:
        super().__init__(
            f"{partition}: {evidence}, so the hub was recreated, restored or failed over; nothing was dropped or"
            " written. To continue, open the next incarnation of the stream (docs/operator.md, python -m"
            " handlers.commands next-incarnation)"
        )
        self.partition = partition
        self.evidence = evidence


class HeldLettersFull(PartitionStopped):
    """A partition holds as many letters as HELD_LIMIT allows, and its next event has to be held too."""

    reason: StopReason = "held"

    def __init__(self, partition: object, sequence_number: int, limit: int) -> None:
        super().__init__(
            f"{partition}: event {sequence_number} has to wait for an open letter of its partition key, and"
            f" {limit} letters are held already (HELD_LIMIT); nothing was dropped. Requeue, discard or replay the"
            " letters that the held letters wait for: the partition then continues"
        )


class ErasureKeyMissing(PartitionStopped):
    """Subjects were erased with a key that the settings do not have: nobody can tell which events to forget."""

    reason: StopReason = "erasure_key"

    def __init__(self) -> None:
        super().__init__(
            "subjects were erased with a key that the settings do not have, so an erased event could come back: set"
            " ERASURE_KEY, or ERASURE_KEY_BEFORE, to that key again. Events that reached the hub after the newest"
            " erasure are taken, and older ones wait (docs/erasure.md)"
        )


class EventKeyChanged(InfrastructureFault):
    """The settings name one key of events, and letters, tasks or erasures of the stream need a different one."""

    def __init__(self, former: str, now: str) -> None:
        super().__init__(
            f"the key of events was {former or 'the partition key'}, and is {now or 'the partition key'} now. Set"
            " EVENT_KEY back: letters or tasks are open under the former key, or the events of erased subjects have it"
        )


class VersionChanged(InfrastructureFault):
    """A driver of a different version of the transform leaves a task to the drivers of the task's version."""

    def __init__(self, of_task: str | None, of_app: str | None) -> None:
        super().__init__(
            f"VersionChanged: the task runs with the transform {of_task}, and this app has {of_app}. If no app with"
            f" {of_task} finishes it, cancel it, or resume it with the transform_version {of_app}"
        )


class ErasureWaits(InfrastructureFault):
    """An erasure ends after a run of an aggregate. `why` names the run, and what holds it up."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the rows are erased, and the erasure ends after the aggregates: {why}")


class EngineUnreachable(InfrastructureFault):
    """The Spark engine sent no valid answer: it is unknown whether it carried out the request."""


class EngineRefused(InfrastructureFault):
    """The Spark engine refused a request: nothing was started."""


class LakeUnreachable(InfrastructureFault):
    """The lake could not be read or written, or a table in it belongs to somebody else."""


class LakeDamaged(LakeUnreachable):
    """The log or the files of a table of the lake are unreadable, emptied or gone."""


class StoreFault(InfrastructureFault):
    """The store could not carry out a request."""


class CheckpointConflict(StoreFault):
    """The compare-and-set of the checkpoint touched no row."""

    def __init__(self, partition: object, expected: int | None) -> None:
        where = "absent" if expected is None else f"at {expected}"
        super().__init__(
            f"checkpoint of {partition} is no longer {where}: another owner committed first; nothing was written"
        )
        self.expected = expected


class IncarnationConflict(StoreFault):
    """The compare-and-set of the stream's incarnation touched no row."""

    def __init__(self, stream: object, expected: int) -> None:
        super().__init__(f"{stream} left incarnation {expected}: another one was opened first; nothing was written")


class TaskConflict(StoreFault):
    """The compare-and-set of a task touched no row."""

    def __init__(self, kind: str, task_id: UUID) -> None:
        super().__init__(
            f"{kind} {task_id} has progressed in another worker, was paused or cancelled, its stream was closed, or the"
            " rows that it was about to change have changed; nothing was written"
        )


class LetterConflict(StoreFault):
    """The claim of a retry no longer holds all its letters."""

    def __init__(self, partition: object, claimed_by: str) -> None:
        super().__init__(
            f"letters of {partition} are no longer held by claim {claimed_by}: they were discarded, or claimed again"
            " after the lease; nothing was written"
        )


class CommitOutcomeUnknown(StoreFault):
    """The connection failed during the commit: it is unknown whether the commit was made."""


class StagingRefused(StoreFault):
    """A staged result differs from the facts of its job: rows were changed, deleted or added since."""


class DataRefused(StoreFault):
    """The database refuses this commit: a value does not fit its column, or breaks a constraint."""


class StoreMisconfigured(StoreFault):
    """The settings of the store cannot work."""


class SchemaMismatch(StoreFault):
    """The schema of the database does not match this code."""


class StoreUnavailable(StoreFault):
    """The database could not be reached, or did not answer in time."""


class StoreUnreachable(StoreUnavailable):
    """The connection to the database failed, or none was opened. `pause` is the time until the next one, in seconds."""

    def __init__(self, text: str, pause: float) -> None:
        super().__init__(text)
        self.pause = pause
