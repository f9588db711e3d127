"""A world for tests of erasures: a stream with events of several subjects, its hub, and tasks to drive."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from core.audit.audit import audit, recount_rows, window
from core.audit.faults import LedgerFault
from core.audit.store import AuditStore
from core.erasure.store import Erasures
from core.erasure.task import ErasedRows, ErasureKind, ErasureShape
from core.errors import ErasureWaits
from core.letters.retry import Keeper, claim_due, retry_chunk
from core.model.aggregates import Aggregate
from core.model.events import Event
from core.model.policies import SubjectKey
from core.store.database import OneStream, read_time
from core.tasks.run import open_parts, open_task, work_on
from core.tasks.task import Task, TaskOrder
from core.transforms.loading import load_aggregates
from tests.fakes.builders import STREAM, event
from tests.fakes.plain_transform import ROW_CLASSES
from tests.fakes.replaying import World

KEY = SubjectKey("a key of thirty-two octets or more")


def events_of(*bodies: str, first: int = 0) -> list[Event]:
    """Return events with these bodies. The partition key of each is its last word in which a digit is."""
    return [event(first + place, body, key=_key_of(body)) for place, body in enumerate(bodies)]


def _key_of(body: str) -> str | None:
    return next((word for word in body.split() if "-" in word), None)


@dataclass
class ErasingWorld(World):
    """A stream whose subjects can be erased. `asked_of_lake` are the calls for the lake."""

    numbers: int = 4
    clock_ahead: timedelta = timedelta()  # of the database, before that of the app
    asked_of_lake: list[ErasedRows] = field(default_factory=list)
    waits_of_lake: list[str] = field(default_factory=list)
    aggregates: tuple[Aggregate, ...] = field(default_factory=lambda: load_aggregates(ROW_CLASSES))

    @property
    def stream(self) -> OneStream:
        return OneStream(self.store.database, STREAM)

    @property
    def audits(self) -> AuditStore:
        return AuditStore(self.stream, ROW_CLASSES)

    @property
    def erasing(self) -> ErasureKind:
        erasures = Erasures(self.stream, ROW_CLASSES, self.aggregates)
        return ErasureKind(STREAM, erasures, self.key, self._erase_lake, self.own, self._app_time, self.numbers)

    def __post_init__(self) -> None:
        self.store.erasure_key = KEY
        super().__post_init__()

    @property
    def key(self) -> SubjectKey:
        """The key of the app, which a test may change."""
        return self.store.erasure_key

    @key.setter
    def key(self, key: SubjectKey) -> None:
        self.store.erasure_key = key

    @property
    def keeper(self) -> Keeper:
        store, find = self.store, self.hub.find_event
        return Keeper(STREAM, store, self.transform, find, self.own, self.letters)

    def retry(self) -> None:
        """Let an hour pass, and try each letter that is due."""
        self.clock.advance(3600)
        for chunk in claim_due(self.keeper):
            retry_chunk(chunk, self.keeper, "invocation-2")

    def ask_erasure(self, *subjects: str, dry_run: bool = False, most_rows: int | None = None) -> Task:
        stream_id = self.stream.find()
        assert stream_id is not None
        asked = ErasureShape(subjects=list(subjects), reason="a request came", dry_run=dry_run, most_rows=most_rows)
        order = TaskOrder(self.own.new_id(), stream_id, "officer", asked.reason, self.own.now())
        request = self.erasing.request(order, asked)
        return open_task(request, self.erasing.tasks, self.erasing.opening(request))

    def erase(self, *subjects: str, **more: object) -> Task:
        return self.drive(self.ask_erasure(*subjects, **more))  # type: ignore[arg-type]

    def drive(self, task: Task, rounds: int = 50) -> Task:
        for _ in range(rounds):
            if not open_parts(task.task_id, self.erasing):
                break
            work_on(task.task_id, None, self.erasing, self.clock.now() + timedelta(minutes=1))
        return self.task(task)

    def task(self, task: Task) -> Task:
        found = self.erasing.tasks.find(task.task_id)
        assert found is not None
        return found

    def faults(self) -> list[LedgerFault]:
        """Return all that an audit of everything, rows included, names."""
        found = audit(self.audits, None)
        faults = list(found.faults)
        for one in found.partitions:
            reach = window(one.ledger, None, None, 10_000)
            if reach is not None:
                faults += recount_rows(one, reach, self.audits).faults
        return faults

    def _app_time(self) -> datetime:
        return read_time(self.store.database) - self.clock_ahead

    def _erase_lake(self, erased: ErasedRows) -> tuple[str, ...]:
        self.asked_of_lake.append(erased)
        if self.waits_of_lake:
            raise ErasureWaits(self.waits_of_lake.pop(0))
        return ("the lake was asked",)
