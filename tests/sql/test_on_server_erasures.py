"""Erasures on the T-SQL server of MSSQL_CONNECTION: locks, times, and the search for texts in bytes."""

import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from core.erasure.erasure import forms_of
from core.erasure.store import Erasures
from core.erasure.task import ErasureKind, ErasureShape
from core.errors import CheckpointConflict, StoreUnavailable
from core.model.ports import Clock
from core.settle.partition_store import batch_script
from core.store.database import OneStream, read_time, write
from core.store.sqlserver.connections import Session, load_driver
from core.tasks.run import open_task
from core.tasks.statuses import TaskMove
from core.tasks.task import TaskOrder
from tests.fakes.builders import commit, event, partition
from tests.fakes.engines import CONNECTION, SqlServerEngine, shared_schema
from tests.fakes.erasing import KEY, ErasingWorld, events_of
from tests.fakes.plain_transform import ROW_CLASSES
from tests.fakes.store import Store
from tests.sql.test_on_server_locks import running

pytestmark = pytest.mark.server


def refuse_former_plans(store: Store) -> None:
    write(store.database, "an erasure", "refuse_former_plans")


def test_an_erasure_waits_for_the_commit_under_way_and_a_former_plan_conflicts_after_it(hasty: Store) -> None:
    hasty.commit_batch(commit(hasty.read_partition(partition()), 0, 4))
    state = hasty.read_partition(partition())
    with running(batch_script(commit(state, 5, 9))), pytest.raises(StoreUnavailable):
        refuse_former_plans(hasty)
    refuse_former_plans(hasty)
    with pytest.raises(CheckpointConflict):
        hasty.commit_batch(commit(state, 5, 9))
    hasty.commit_batch(commit(hasty.read_partition(partition()), 5, 9))


@pytest.fixture
def stores() -> Iterator[list[Store]]:
    """The stores of four processes. None repeats a transaction that a deadlock has ended."""
    engine = SqlServerEngine.on(CONNECTION)
    with ExitStack() as opened:
        yield [opened.enter_context(closing(engine.open())) for _ in range(4)]


def test_erasures_open_amid_commits_of_several_partitions_without_a_deadlock(stores: list[Store]) -> None:
    erasing, *committing = stores
    erasing.open_stream(partition().stream)

    def commit_some(store: Store, id: str) -> int:
        conflicts = 0
        while (state := store.read_partition(partition(id))).next_number < 100:
            try:
                store.commit_batch(commit(state, state.next_number, state.next_number + 4))
            except CheckpointConflict:
                conflicts += 1
        return conflicts

    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(commit_some, store, id) for store, id in zip(committing, "012", strict=True)]
        for _ in range(20):
            refuse_former_plans(erasing)
        assert all(one.result() <= 20 for one in done)


def test_an_event_of_the_time_of_an_erasure_is_forgotten_to_the_microsecond(
    server_store: Store, server_session: Session
) -> None:
    world = ErasingWorld(server_store, {"0": events_of("reading home-7")})
    world.erase("home-7")
    at = "CONVERT(datetime2(6), '2026-01-01T00:00:00.123456', 126)"
    server_session.run(f"UPDATE {shared_schema()}.erased_subject SET erased_at = {at};")
    state, then = server_store.read_partition(partition()), datetime(2026, 1, 1, 0, 0, 0, 123_456, tzinfo=UTC)
    erased = server_store.read_erased(state, then)
    assert state.erased_at == then
    assert [erased.names(event(0, at=one), ["home-7"]) for one in (then, then + timedelta(microseconds=1))] == [
        True,
        False,
    ]
    assert erased.key == KEY


BODIES = {"C3A9686F6D652D37": 3, "FF686F6D65": 2, "E2686F6D65": 2, "00686F6D65": 2, "C368006F006D": 0, "484F4D45": 0}
SEARCH = "SELECT CHARINDEX('home', CONVERT(varchar(max), 0x{}) COLLATE Latin1_General_100_BIN2);"
BLANKS = (
    "SELECT COUNT(*) FROM (VALUES (N'home-7'), (N'home-7 ')) AS t (name) WHERE t.name IN ("
    "SELECT s.subject COLLATE Latin1_General_100_BIN2 FROM OPENJSON(N'[[\"home-7 \"]]')"
    " WITH (subject nvarchar(200) '$[0]') AS s WHERE DATALENGTH(s.subject) = DATALENGTH(t.name));"
)


@pytest.mark.parametrize("collation", ["Latin1_General_100_CI_AS_SC_UTF8", "SQL_Latin1_General_CP1_CI_AS"])
def test_bytes_are_searched_and_blanks_counted_alike_in_databases_of_each_collation(collation: str) -> None:
    """Every search finds a needle, whatever bytes stand before it. The position of the needle may differ."""
    name, connection = f"hubledger_{secrets.token_hex(4)}", load_driver().connect(CONNECTION, autocommit=True)
    with closing(connection):
        connection.execute(f"CREATE DATABASE {name} COLLATE {collation};")
        try:
            connection.execute(f"USE {name};")
            found = {body: connection.execute(SEARCH.format(body)).fetchone()[0] > 0 for body in BODIES}
            assert found == {body: place > 0 for body, place in BODIES.items()}
            assert connection.execute(BLANKS).fetchone()[0] == 1
        finally:
            connection.execute(f"USE master; DROP DATABASE {name};")


def test_a_subject_with_a_blank_at_its_end_is_a_different_subject(server_store: Store) -> None:
    world = ErasingWorld(server_store, {"0": events_of("reading home-7")})
    assert forms_of("home-7 ", ROW_CLASSES) == ("home-7 ",)
    world.erase("home-7 ")
    assert world.faults() == []


def test_two_rooms_of_one_database_open_erasures_at_once_without_a_deadlock(stores: list[Store]) -> None:
    """Each opening locks the rows of all streams, and its own is one of them."""

    def open_some(store: Store, group: str) -> int:
        own = partition(group=group).stream
        store.commit_batch(commit(store.read_partition(partition(group=group)), 0, 4))
        store.erasure_key, opened = KEY, 0
        kind = ErasureKind(
            own,
            Erasures(OneStream(store.database, own), ROW_CLASSES),
            KEY,
            lambda _: (),
            Clock(lambda: read_time(store.database), uuid4),
            lambda: read_time(store.database),
        )
        for _ in range(20):
            asked = ErasureShape(subjects=["home-7"], reason="a request came", dry_run=False)
            order = TaskOrder(uuid4(), store.open_stream(own), "ann", asked.reason, kind.clock.now())
            request = kind.request(order, asked)
            task = open_task(request, kind.tasks, kind.opening(request))
            opened += kind.tasks.move(TaskMove(task.task_id, "cancel", "ann", "", kind.clock.now()))
        return opened

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(open_some, stores, ("hubledger", "other"))) == [20, 20]
