"""Whatever is asked of letters in whatever order: only moves of the table happen, and both stores do the same."""

import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import LetterConflict
from core.model.commits import LetterStatus
from core.model.letters import MOVES, LetterMove, LetterOutcome, Move, RetryCommit
from core.model.spans import SequenceNumber
from tests.fakes.builders import NOON, claim, hold, keep_letters, partition, settled
from tests.fakes.engines import SqliteEngine
from tests.fakes.kept import Engine
from tests.fakes.memory_store import MemoryStore
from tests.fakes.store import Store

NUMBERS = st.sets(st.integers(0, 3), min_size=1).map(sorted)
CLAIMS = st.sampled_from(["claim-1", "claim-2"])
MINUTES = st.integers(-60, 60)
STATUSES: st.SearchStrategy[LetterStatus] = st.sampled_from(["resolved", "waiting", "exhausted"])
SENT: st.SearchStrategy[Move] = st.sampled_from(["release", "exhaust", "requeue", "discard", "free"])
ACTS = st.one_of(
    st.tuples(st.just("claim"), CLAIMS, MINUTES, st.integers(1, 4)),
    st.tuples(st.just("begin"), CLAIMS, NUMBERS, MINUTES),
    st.tuples(st.just("retry"), CLAIMS, NUMBERS, STATUSES),
    st.tuples(st.just("move"), SENT, NUMBERS, st.one_of(st.none(), CLAIMS)),
)
EDGES = {(source, allowed.target) for allowed in MOVES.values() for source in allowed.sources}


def act(store: Store, number: int, what: tuple) -> object:
    """Do it, and answer what can be compared."""
    verb, one, two, three = what
    if verb == "claim":
        at = NOON + timedelta(minutes=two)
        got = store.claim_letters(claim(f"{one}", at=at, most=4))
        return sorted((each.position.sequence_number, each.lost_claims) for each in got)
    if verb == "begin":
        at = NOON + timedelta(minutes=three)
        store.begin_lone_try(hold(store, two, one), at, at + timedelta(minutes=5))
        return None
    if verb == "retry":
        outcomes = tuple(LetterOutcome(SequenceNumber(at), three, due_at=_due(three, number), why=None) for at in two)
        done = settled({}, filtered=len(two) if three == "resolved" else 0)
        state = store.read_partition(partition())
        try:
            return store.commit_retry(RetryCommit(state, one, outcomes, done, "test/1", f"act-{number}", NOON))
        except LetterConflict:
            return "conflict"
    numbers = tuple(map(SequenceNumber, two))
    asked = LetterMove(one, partition(), numbers, f"move-{number}", NOON, NOON, "somebody", "because", three)
    return store.move_letters(asked)


def _due(status: LetterStatus, number: int) -> datetime | None:
    return NOON + timedelta(minutes=number) if status == "waiting" else None


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(ACTS, max_size=12), st.sampled_from(["waiting", "held", "exhausted"]))
def test_only_moves_of_the_table_happen_and_both_stores_agree(acts: list, status: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        engines: list[Engine] = [MemoryStore(), SqliteEngine(Path(folder) / "store.db")]
        stores = [engine.open() for engine in engines]
        for store in stores:
            keep_letters(store, dict.fromkeys(range(3), "a"))
            keep_letters(store, {3: "a"}, status=status)
        for number, what in enumerate(acts):
            before = {kept.sequence_number: kept.status for kept in engines[0].letters()}
            answers = [act(store, number, what) for store in stores]
            assert answers[0] == answers[1]
            assert engines[0].letters() == engines[1].letters()
            for kept in engines[0].letters():
                changed = (before[kept.sequence_number], kept.status)
                assert changed[0] == changed[1] or changed in EDGES
        assert engines[0].attempts() == engines[1].attempts()
        assert engines[0].retries() == engines[1].retries()
        assert stores[0].read_ledgers() == stores[1].read_ledgers()
        for store in stores:
            store.close()
