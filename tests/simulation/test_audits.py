"""An audit with rows names every change by hand to a finished store, but those that a page lists.

In every world an audit is balanced at any moment, and each number is explained. The exploration has the purges. Repeat
a world with `pytest -k seed7`.
"""

import re
from collections import Counter
from contextlib import suppress
from functools import cache
from typing import Any

import pytest

from core.audit.audit import MOST_NUMBERS, Reading, audit, recount_rows, window
from core.audit.faults import LedgerFault
from core.ledger.explain import explain
from core.ledger.store import read_books
from core.letters.listing import LetterChoice
from core.letters.redrive import LetterOrder
from core.model.events import SequenceNumber, Span
from examples.home_security.transform import Home, HomeAlert, SensorReading
from hubledger.cli.scaffold.room import taken_tables
from tests.fakes.builders import STREAM
from tests.fakes.replaying import redriving, request_redrive
from tests.fakes.store import MemoryStore, OperatorStores
from tests.repo.product import ROOT
from tests.simulation.histories import history
from tests.simulation.operators import REFUSED, Instance
from tests.simulation.seeds import seeds
from tests.simulation.tamperings import ELSEWHERE, PLACE, PURGED, PURGED_REPLAY, TAMPERINGS, UNNAMED, Tampering
from tests.simulation.watch import WatchedStore
from tests.simulation.world import World

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (.+?) \| .+ \|$", re.MULTILINE)
_, *LISTED, UNREAD = ROW.findall(PAGE.partition("### Changes that no audit names")[2].partition("\n## ")[0])
TABLES = set(re.findall(r"`(\w+)`", UNREAD))  # that no audit reads
STATEMENTS = [
    statement
    for change in (*TAMPERINGS.values(), *(each for some in UNNAMED.values() for each in some))
    for statement in change.statements
]
SET = re.compile(r"UPDATE (?P<table>\w+) SET (?P<changes>.+?)(?: WHERE |$)")
LEFT_OUT = TABLES | ELSEWHERE | {name for name, owner in taken_tables().items() if owner != "Hubledger"}


@cache
def image() -> bytes:
    return history().image()


@pytest.fixture
def store() -> WatchedStore:
    return WatchedStore(image())


def audited(store: WatchedStore) -> list[LedgerFault]:
    audits = OperatorStores(store.database, STREAM, (Home, SensorReading, HomeAlert)).audits
    done = audit(audits, None)
    spans = [(one, window(one.ledger, None, None, MOST_NUMBERS)) for one in done.partitions]
    return [*done.faults, *(fault for one, span in spans if span for fault in recount_rows(one, span, audits).faults)]


def tamper(store: WatchedStore, with_it: Tampering) -> dict[str, Any]:
    """Change the store by hand. Return the picked values."""
    store.sql("PRAGMA foreign_keys = OFF")
    found = store._connection.execute(with_it.pick)
    target = dict(zip([name for name, *_ in found.description], found.fetchone(), strict=True))
    touched = sum(store._connection.execute(statement, target).rowcount for statement in with_it.statements)
    assert touched, "the tampering changed nothing"
    return target


@pytest.mark.parametrize("name", TAMPERINGS)
def test_a_tampering_is_named_with_its_place(name: str, store: WatchedStore) -> None:
    given = TAMPERINGS[name]
    target = tamper(store, given)
    found, kinds = audited(store), given.kinds.split()
    named = [
        one
        for one in found
        if (one.kind, one.partition_id) == (kinds[0], target["partition_id"])
        and given.words.format(**target) in one.detail
        and one.first <= target.get("number", one.first) <= one.last
    ]
    assert named, [f"{one.partition_id} {one.kind} {one.first}..{one.last}: {one.detail}" for one in found]
    assert sorted(one.kind for one in found) == sorted(kinds)


@pytest.mark.parametrize("sentence", UNNAMED)
def test_no_audit_names_what_the_page_lists(sentence: str) -> None:
    assert sentence in LISTED
    for given in UNNAMED[sentence]:
        store = WatchedStore(image())
        tamper(store, given)
        assert audited(store) == []


def test_an_untouched_store_is_clean_and_no_audit_reads_the_tables_that_the_page_lists(store: WatchedStore) -> None:
    assert audited(store) == []
    for table in TABLES:
        store.sql(f"DELETE FROM {table}")
    assert audited(store) == []


def test_every_change_on_the_page_every_table_and_every_column_is_tampered_with(store: WatchedStore) -> None:
    """A new column is a tampering that an audit names, or a change that the page lists."""
    assert set(LISTED) == {*UNNAMED, PURGED, PURGED_REPLAY, PLACE}
    columns = store.sql(
        "SELECT m.name, c.name, c.pk FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c"
        " WHERE m.type = 'table' AND m.name NOT LIKE 'sim_%'"
    )
    tampered = set(re.findall(r"(?:FROM|INTO|UPDATE) (\w+)", " ".join(STATEMENTS)))
    assert {table for table, *_ in columns} - tampered - LEFT_OUT == set()
    made = [SET.match(statement) for statement in STATEMENTS]
    changed = {(one["table"], column) for one in made if one for column in re.findall(r"(\w+) = ", one["changes"])}
    assert {(table, name) for table, name, key in columns if not key and table not in LEFT_OUT} - changed == set()


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
