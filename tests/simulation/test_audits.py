"""In every world an audit is balanced at any moment, and each number is explained. The exploration has the purges.

Repeat a world with `pytest -k seed7`.
"""

from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

from core.audit.audit import Reading, audit, recount_rows
from core.ledger.explain import explain
from core.ledger.store import read_books
from core.letters.listing import LetterChoice
from core.letters.redrive import LetterOrder
from core.model.events import SequenceNumber, Span
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.fakes.builders import STREAM
from tests.fakes.operator_stores import OperatorStores
from tests.fakes.redriving import redriving, request_redrive
from tests.fakes.store import MemoryStore
from tests.simulation.operators import REFUSED, Instance
from tests.simulation.seeds import seeds
from tests.simulation.watch import WatchedStore
from tests.simulation.world import World


class AuditedWorld(World):
    """A world of one hub, in which an operator audits at any moment."""

    def __init__(self, seed: int, store: MemoryStore) -> None:
        super().__init__(seed, store, store)
        self._lives = 1
        self.desk = OperatorStores(self.site.database, STREAM, (Home, SensorReading, HomeAlert))

    def _all_acts(self) -> list[Any]:
        return [*super()._all_acts(), self._audit, self._audit, lambda: self._as(self._redrive)]

    def _audit(self) -> None:
        assert audit(self.desk.audits, None, Reading(piece=3)).faults == ()

    def _redrive(self, instance: Instance) -> None:
        """Discard or requeue all letters of a status. Operators go on with it."""
        status: Any = self.chance.choice(["exhausted", "waiting"])
        move: Any = self.chance.choice(["requeue", "discard", "discard"])
        ((count,),) = self.sql("SELECT COUNT(*) FROM event_hub_dead_letter WHERE status = ?", status)
        with suppress(*REFUSED):
            request_redrive(LetterOrder(move, LetterChoice(status=status), count), redriving(instance.keeper))
        self.operators.drive(instance)

    def assert_balanced_and_explained(self) -> Counter[str]:
        """Check the books, the rows and each number. Return the outcomes."""
        done, found = audit(self.desk.audits, None), Counter[str]()
        assert done.faults == ()
        for one in done.partitions:
            id = one.ledger.partition.partition_id
            anchors = self.sql("SELECT sequence_number FROM partition_anchor WHERE partition_id = ?", id)
            span = Span(SequenceNumber(anchors[0][0] if anchors else 0), one.ledger.checkpoint)
            assert recount_rows(one, span, self.desk.audits).faults == ()
            for number in map(SequenceNumber, range(span.first, span.last + 1)):
                told = explain(id, number, self.desk.explanations)
                assert told is not None
                assert told.outcome not in ("missing", "not_yet", "before_first"), (id, number)
                assert "Its ledger row was purged" not in told.sentence, (id, number, told.sentence)
                found[told.outcome] += 1
        return found


@pytest.mark.parametrize("seed", seeds(range(20), 3), ids="seed{}".format)
def test_a_world_audits_balanced_at_any_moment_and_explains_every_number(seed: int) -> None:
    world = AuditedWorld(seed, WatchedStore())
    world.run()
    found, books = world.assert_balanced_and_explained(), read_books(world.desk.ledger)
    assert books.balanced
    open_letters = sum(count for status, count in books.letters.counts.items() if status != "resolved")
    ((erased,),) = world.sql(
        "SELECT COUNT(*) FROM event_hub_dead_letter WHERE erased_by IS NOT NULL AND status <> 'resolved'"
        " AND stream_id = (SELECT MAX(stream_id) FROM event_stream)"
    )
    lettered = open_letters - erased
    assert (found["absent"], found["dead_lettered"]) == (sum(one.absent for one in books.partitions), lettered)
