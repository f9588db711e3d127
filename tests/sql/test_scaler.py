"""The query with which the worker is scaled: T-SQL that its role may run, and the lag that the watch stored last."""

from datetime import timedelta

import pytest

from core.ledger.minutes import Minute
from core.ledger.store.minutes import minute_script
from core.model.events import stream_of
from core.store.columns import instant_text
from core.store.sqlserver.odbc import Session
from core.store.sqlserver.schema import in_schema
from local.rights import uses_of
from tests.fakes.builders import NOON
from tests.fakes.memory_store import MemoryStore
from tests.fakes.server_schema import shared_schema
from tests.fakes.store import Store
from tests.repo.product import ROOT
from tests.sql.gates import gates
from tests.sql.test_on_server import CONNECTION
from tests.sql.test_rights import granted

QUERY = (ROOT / "infra" / "app" / "worker-lag.sql").read_text(encoding="utf-8")
RECENT = "DATEADD(MINUTE, -5, SYSUTCDATETIME())"


@pytest.mark.parametrize("gate", list(gates()) or [pytest.param("", marks=pytest.mark.skip("no T-SQL parser"))])
def test_the_query_passes_the_syntax_gate_and_a_broken_one_does_not(gate: str) -> None:
    broken = QUERY.replace("SUM(m.lag)", "SUM(m.lag")
    assert set(gates()[gate]({"query": QUERY, "broken": broken})) == {"broken"}


def test_the_role_of_the_scaler_may_run_the_query_and_do_nothing_else() -> None:
    assert granted("hubledger_scaler") == set(uses_of(QUERY)) != set()


def lag(*stored: tuple[str, float, int], now: float = 0) -> int:
    """Return the lag that the query reads at a minute, in the words of SQLite, from the minutes of streams."""
    store = MemoryStore()
    for group, minute, waiting in stored:
        stream_id = store.open_stream(stream_of("ns", "telemetry", group))
        store.database.run(minute_script(stream_id, Minute(NOON + timedelta(minutes=minute), waiting, 0)))
    since = instant_text(NOON + timedelta(minutes=now - 5))
    assert RECENT in QUERY
    text = QUERY.replace(RECENT, f"'{since}'").replace("hubledger.", "")
    return int(store.sql(text)[0][0])


def test_the_newest_minute_counts() -> None:
    assert lag(("a", -3, 700), ("a", -2, 40), ("a", -4, 900)) == 40


def test_the_streams_of_the_newest_minute_are_added() -> None:
    assert lag(("a", -2, 40), ("b", -2, 2), ("b", -3, 100)) == 42


def test_a_watch_that_is_silent_asks_for_no_replica() -> None:
    assert lag() == 0
    assert lag(("a", -6, 900)) == 0


@pytest.mark.skipif(not CONNECTION, reason="MSSQL_CONNECTION names no T-SQL server")
def test_the_server_runs_the_query(server_session: Session, server_store: Store) -> None:
    query = in_schema(f"SET NOCOUNT ON;\n{QUERY}", shared_schema(CONNECTION))
    assert server_session.run(query) == [[(0,)]]
