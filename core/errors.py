"""Every error of Hubledger, by what happened.

    HubledgerError
    ├── SettingsRefused            a setting is missing or wrong; every fault is listed
    ├── InvalidTransform           the transform's module, or a row class of it, breaks its contract
    ├── PoisonEvent                raised by a transform: this event can never succeed       (data)
    ├── MissingReference           raised by a transform: a row it needs is not there (yet)   (data)
    ├── ProcessDied                the process died each time while it tried this event alone   (data)
    ├── RowsRefused                the database refuses the rows of this very event            (data)
    ├── ReplayRefused              a request for a replay names what cannot be replayed
    ├── ReplayOverlap              another replay is working on part of the range
    └── InfrastructureFault        always escapes the handler, so that the host retries
        ├── BatchRefused           the host's batch is incomplete; nothing is guessed
        ├── HubUnreachable         the hub did not answer, or not in time
        ├── HubRefused             the hub does not know our names or our token: a setting has to change
        ├── GapNotHealed           missing events are being read back from the hub, and the time is up
        ├── StreamIncarnationChanged   the hub was recreated or failed over behind our checkpoint
        ├── EngineUnreachable      the Spark engine did not answer: what was asked of it may have been done
        ├── EngineRefused          the Spark engine does not take what we ask: a setting has to change
        ├── LakeUnreachable        the lake did not answer, or holds a pointer that cannot be read
        └── StoreFault
            ├── CheckpointConflict     another owner committed first; nothing was written
            ├── LetterConflict         letters of this retry were taken from its claim; nothing was written
            ├── ReplayConflict         the replay moved on, or does not run any more; nothing was written
            ├── CommitOutcomeUnknown   the answer to a commit was lost; read the checkpoint or the letters again
            ├── DataRefused            the database refuses a row of this commit; nothing was written
            ├── StoreMisconfigured     login, database, driver or token: the setting has to change
            ├── SchemaMismatch         the database's schema is older or newer than this code
            └── StoreUnavailable       the database cannot be reached, or not in time; nothing was written

A **data** fault becomes a dead letter in `core/settle/settle.py`. An **infrastructure** fault is never caught for good.
"""

from uuid import UUID


class HubledgerError(Exception):
    """The root: nothing else of ours is raised."""


class SettingsRefused(HubledgerError):
    """Some settings are missing or wrong."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("settings refused: " + "; ".join(faults))
        self.faults = faults


class InvalidTransform(HubledgerError):
    """A transform module or one of its row classes breaks the contract of `core/transforms`."""


class PoisonEvent(HubledgerError):
    """This event can never become rows: it is set aside at once."""


class MissingReference(HubledgerError):
    """The row that this event refers to is not there, and may come later."""


class ProcessDied(HubledgerError):
    """The process that ran the transform died, time and again, while it tried this event alone."""


class RowsRefused(HubledgerError):
    """The database refuses the rows of one event that stands alone; the message is the database's own."""


class ReplayRefused(HubledgerError):
    """What was asked for cannot be replayed; `field` is the part of the request that says it."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}")
        self.field = field
        self.why = why


class ReplayOverlap(HubledgerError):
    """Another replay holds part of the range until it is done or cancelled."""

    def __init__(self, job_id: UUID) -> None:
        super().__init__(f"replay {job_id} is working on part of this range: wait until it is done, or cancel it")
        self.job_id = job_id


class InfrastructureFault(HubledgerError):
    """Not the fault of any event: the invocation fails and the host retries it."""


class BatchRefused(InfrastructureFault):
    """The host handed over a batch without all that identifies its events."""


class HubUnreachable(InfrastructureFault):
    """The hub could not be asked."""


class HubRefused(InfrastructureFault):
    """The hub, the consumer group or the token is not one that the namespace accepts."""


class GapNotHealed(InfrastructureFault):
    """Some of a gap was read back and committed; the rest is for the next delivery, before which nothing is lost."""

    def __init__(self, partition: object, first: int, last: int) -> None:
        super().__init__(
            f"{partition}: events {first} to {last} are missing and not all read back from the hub yet; what"
            " was is committed, and the next try goes on behind it (HEAL_DEADLINE_SECONDS)"
        )
        self.partition = partition
        self.first = first
        self.last = last


class StreamIncarnationChanged(InfrastructureFault):
    """An event at or before the checkpoint was enqueued after it, or the hub ends before it: not the hub we knew."""

    def __init__(self, partition: object, sequence_number: int, checkpoint: int, *, is_end: bool = False) -> None:
        seen = f"the hub ends at {sequence_number}, before" if is_end else f"event {sequence_number} was enqueued after"
        super().__init__(
            f"{partition}: {seen} the checkpoint at {checkpoint}, so the hub was"
            " recreated, restored or failed over; nothing was dropped or written. Open the next incarnation of the"
            " stream (docs/glossary.md: incarnation) before going on"
        )
        self.partition = partition
        self.sequence_number = sequence_number
        self.checkpoint = checkpoint


class EngineUnreachable(InfrastructureFault):
    """The Spark engine did not answer, or not with an answer: a submit may have come through or not."""


class EngineRefused(InfrastructureFault):
    """The Spark engine refuses a request: nothing was started."""


class LakeUnreachable(InfrastructureFault):
    """The lake could not be read or written."""


class StoreFault(InfrastructureFault):
    """The store did not do what it was asked."""


class CheckpointConflict(StoreFault):
    """The compare-and-set of the checkpoint touched no row."""

    def __init__(self, partition: object, expected: int | None) -> None:
        where = "absent" if expected is None else f"at {expected}"
        super().__init__(
            f"checkpoint of {partition} is no longer {where}: another owner committed first; nothing was written"
        )
        self.partition = partition
        self.expected = expected


class ReplayConflict(StoreFault):
    """The compare-and-set of a replay's progress touched no row."""

    def __init__(self, partition: object, job_id: UUID) -> None:
        super().__init__(
            f"replay {job_id} of {partition} was taken further by another, paused or cancelled; nothing was written"
        )
        self.partition = partition
        self.job_id = job_id


class LetterConflict(StoreFault):
    """Fewer letters than a retry settles are still held by its claim."""

    def __init__(self, partition: object, claimed_by: str) -> None:
        super().__init__(
            f"letters of {partition} are no longer held by claim {claimed_by}: discarded, or claimed again after the"
            " lease; nothing was written"
        )
        self.partition = partition
        self.claimed_by = claimed_by


class CommitOutcomeUnknown(StoreFault):
    """The connection failed while the commit was on its way: it may stand or not."""


class DataRefused(StoreFault):
    """The database refuses a value or a constraint of this commit."""


class StoreMisconfigured(StoreFault):
    """The store's setting cannot work as it stands."""


class SchemaMismatch(StoreFault):
    """The database's schema and this code do not belong together."""


class StoreUnavailable(StoreFault):
    """The database could not be reached or did not answer in time."""
