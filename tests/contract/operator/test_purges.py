"""Purges: old rows go in pieces, and the books, the audit and the explanation of a partition still account for them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from core.ledger.audit import Audit, audit
from core.ledger.audit_job import AuditRequest
from core.ledger.books import read_books
from core.ledger.explain import Outcome, explain
from core.ledger.recount import recount_rows
from core.ledger.sums import WHOLE, Reading
from core.model.events import PartitionId
from core.model.letters import LetterMove
from core.model.spans import SequenceNumber, Span
from core.retention.purge import DEFAULT_DAYS, Found, PurgeJob, PurgeRequest
from core.retention.work import PurgeMeans, work_on_purge
from core.store.replays import Replays
from tests.contract.operator.conftest import Office
from tests.fakes.builders import NOON, commit, event, letter, partition, settled
from tests.fakes.plain_transform import PLAIN
from tests.fakes.replaying import World, changed, log_of, order
from tests.sql.values import ROW_CLASSES

P = PartitionId("0")
LATER = NOON + timedelta(days=1_000)
FRESH = Reading(whole=False, is_over=lambda: False)
LOG = log_of(*["reading a", "double a", "quiet", "poison", "reading b", "home h 1", "poison"] * 3)


@dataclass
class Keeper:
    """The means of purges over a desk: an hour passes with each look at the clock once it goes."""

    office: Office
    jobs: tuple[str, ...] = ()
    now: datetime = LATER
    each: timedelta = timedelta()
    meanwhile: Callable[[], object] = field(default=lambda: None)

    def purge(self, days: int = 400, dry_run: bool = False, hours: float = 1, **own: int) -> PurgeJob:
        """Request a purge and work on it."""
        asked = PurgeRequest(uuid4(), "ann", "room", self.now, {**dict.fromkeys(DEFAULT_DAYS, days), **own}, dry_run)
        assert self.office.desk.purges.open_purge(asked)
        self.work(hours)
        return self.find(asked.purge_id)

    def work(self, hours: float = 1) -> PurgeJob | None:
        means = PurgeMeans(self.office.desk.purges, self.verify, self.jobs, self.tick)
        return work_on_purge(means, self.now + timedelta(hours=hours))

    def tick(self) -> datetime:
        self.now += self.each
        return self.now

    def verify(self, id: PartitionId, until: datetime) -> int:
        self.office.desk.ledger.remember_books()
        found = len(audit(self.office.desk.ledger, id, FRESH).faults)
        happens, self.meanwhile = self.meanwhile, lambda: None
        happens()
        return found

    def find(self, purge_id: UUID) -> PurgeJob:
        found = self.office.desk.purges.find_purge(purge_id)
        assert found is not None
        return found


def sound(office: Office) -> bool:
    """The books and both audits balance, and a recount finds no fault."""
    ledger = office.desk.ledger
    done = audit(ledger, None, WHOLE)
    assert [*done.faults, *audit(ledger, None, FRESH).faults] == []
    for one in done.partitions:
        assert recount_rows(one, Span(SequenceNumber(0), one.ledger.checkpoint), ledger).faults == ()
    return read_books(ledger).balanced


def discard(office: Office, *numbers: int) -> None:
    given = tuple(map(SequenceNumber, numbers))
    move = LetterMove("discard", partition(), given, str(uuid4()), NOON, NOON, "somebody", "because")
    office.store.move_letters(move)


def kinds(done: Audit) -> list[str]:
    return sorted({fault.kind for fault in done.faults})


@pytest.fixture
def world(office: Office) -> World:
    """A partition of 21 events in three batches, with 6 letters, of which 4 are discarded."""
    made = World(Replays(office.store.database), {"0": LOG})
    discard(office, 3, 6, 10, 13)
    return made


@pytest.fixture
def keeper(office: Office, world: World) -> Keeper:
    return Keeper(office)


def counts(job: PurgeJob) -> dict[str, int]:
    return {table: found.rows for table, found in job.found.items() if found.rows}


class TestWhatGoes:
    def test_old_ledger_rows_and_settled_letters_go_but_the_newest_batch_and_open_letters_stay(
        self, office: Office, keeper: Keeper
    ) -> None:
        job = keeper.purge()
        assert (job.status, job.fault, counts(job)) == ("done", None, {"batch_ledger": 2, "event_hub_dead_letter": 4})
        assert [one.first for one in office.engine.ledger()] == [14]
        assert [(one.sequence_number, one.status) for one in office.engine.letters()] == [
            (17, "waiting"),
            (20, "waiting"),
        ]
        assert sound(office)

    def test_a_dry_run_counts_the_same_and_deletes_nothing(self, office: Office, keeper: Keeper) -> None:
        counted = keeper.purge(dry_run=True)
        assert len(office.engine.ledger()) == 3
        done = keeper.purge()
        assert counts(counted) == counts(done)
        assert counted.found["batch_ledger"].oldest == done.found["batch_ledger"].oldest

    def test_nothing_goes_that_is_not_old(self, office: Office, keeper: Keeper) -> None:
        assert counts(keeper.purge(days=1_002)) == {}
        assert counts(keeper.purge(days=400, event_hub_dead_letter=1_002)) == {"batch_ledger": 2}
        assert sound(office)
