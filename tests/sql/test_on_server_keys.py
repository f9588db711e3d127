"""Keys of states on the T-SQL server of MSSQL_CONNECTION: keys that a collation takes for one, and true races."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from threading import Barrier
from typing import Annotated

import pytest

from core.ingest.ingest import Ingestion, ingest_batch
from core.model.events import Event
from core.model.rows import References, Row, Text, row_table, state_of
from core.model.transforms import Transform
from core.store.script import of_rows
from core.store.sqlserver.connections import Session
from core.store.sqlserver.database import SqlServerDatabase
from tests.fakes.builders import PATIENCE, batch, event, partition, stamps
from tests.fakes.server_engine import CONNECTION, shared_schema
from tests.fakes.store import Store

pytestmark = pytest.mark.server

EVENTS = 20
LINEAGE = """
    stream_id int NOT NULL, partition_id varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number bigint NOT NULL, commit_number bigint NOT NULL"""


@state_of("folding", key=("name",))
@dataclass(frozen=True, slots=True)
class Folding:
    """A state whose key's collation folds case, and whose constraint has a name of its own."""

    name: str
    note: int


@state_of("telling", key=("name",))
@dataclass(frozen=True, slots=True)
class Telling:
    """A state whose key folds nothing but spaces at the end."""

    name: str
    note: int


@state_of("narrow", key=("name",))
@dataclass(frozen=True, slots=True)
class Narrow:
    """A state whose key has a byte for each letter."""

    name: Annotated[str, Text(40, ascii=True)]
    note: int


TABLES = {
    "narrow": "name varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT pk_narrow PRIMARY KEY",
    "folding": "name nvarchar(40) COLLATE Latin1_General_100_CI_AS NOT NULL CONSTRAINT key_of_folding PRIMARY KEY",
    "telling": "name nvarchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT pk_telling PRIMARY KEY",
}


@pytest.fixture
def schema(server_session: Session) -> Iterator[str]:
    """The process's own schema, with these tables."""
    name = shared_schema()
    for table, key in TABLES.items():
        server_session.run(f"SET NOCOUNT ON; CREATE TABLE {name}.{table} ({key}, note int NOT NULL, {LINEAGE});")
    yield name
    for table in TABLES:
        server_session.run(f"SET NOCOUNT ON; DROP TABLE {name}.{table};")


def ingest(store: Store, row_of: Callable[[int], Row], first: int, place: str = "0", seed: int = 0) -> None:
    def rows_of(given: Event, references: References) -> list[Row]:
        return [row_of(given.sequence_number)]

    means = Ingestion(store, Transform("test/1", rows_of), stamps(seed))
    ingest_batch(batch((event(first + number) for number in range(EVENTS)), partition(place)), means)


def states(session: Session, schema: str, table: str) -> dict[str, int]:
    found = session.run(f"SELECT t.name, t.note FROM {schema}.{table} AS t;")[-1]
    return dict(found)


def refused(session: Session, schema: str) -> list[tuple[int, str]]:
    found = session.run(
        f"SELECT d.sequence_number, d.error_class FROM {schema}.event_hub_dead_letter AS d ORDER BY d.sequence_number;"
    )[-1]
    return [(number, error_class) for number, error_class in found]


def test_keys_that_a_collation_takes_for_one_end_as_letters_and_stop_no_partition(
    server_store: Store, server_session: Session, schema: str
) -> None:
    """Within one batch, and against a key that stands since the batch before."""
    ingest(server_store, lambda number: Folding("A" if number == 7 else "a", number), first=0)
    assert refused(server_session, schema) == [(7, "refused")]
    ingest(server_store, lambda number: Folding("A" if number == 33 else f"b{number}", number), first=EVENTS)
    assert refused(server_session, schema) == [(7, "refused"), (33, "refused")]
    kept = states(server_session, schema, "folding")
    assert kept == {"a": 19, **{f"b{number}": number for number in range(20, 40) if number != 33}}
    assert [books.balanced for books in server_store.read_ledgers()] == [True]


def test_a_key_that_ends_with_a_space_is_a_letter_before_the_server_sees_it(
    server_store: Store, server_session: Session, schema: str
) -> None:
    ingest(server_store, lambda number: Telling("a " if number == 7 else "a", number), first=0)
    assert refused(server_session, schema) == [(7, "refused")]
    assert states(server_session, schema, "telling") == {"a": 19}


def test_a_key_that_is_not_of_ascii_finds_no_state_of_similar_letters(server_store: Store, schema: str) -> None:
    """A varchar takes the wide letter for the plain one."""
    ingest(server_store, lambda number: Narrow("a", number), first=0)
    with closing(SqlServerDatabase(CONNECTION, schema=schema)) as database:
        for keys, found in (('[["a"]]', [("a", 19)]), ('[["\uff41"], ["\u00e4"]]', [])):
            assert [tuple(row) for row in database.ask(of_rows("select_states", Narrow), keys=keys)] == found


def _state_of_number(row_class: type[Folding | Telling], start: int, sign: int, number: int) -> Row:
    return row_class(str(start + sign * number), number)


@pytest.mark.parametrize("row_class", [Folding, Telling])
def test_partitions_that_make_the_same_states_at_once_commit_all_of_them_without_a_letter(
    server_session: Session,
    server_store: Store,
    schema: str,
    row_class: type[Folding | Telling],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Every second partition has them in the opposite order: locks are taken by the keys, so none of them cross."""
    stores, ready = (
        [Store(SqlServerDatabase(CONNECTION, schema=schema)).patient(PATIENCE) for _ in range(4)],
        Barrier(4),
    )
    server_store.read_partition(partition())

    def make(at: int) -> None:
        for turn in range(5):
            ready.wait()
            first = turn * EVENTS
            sign, start = (1, 0) if at % 2 else (-1, 2 * first + EVENTS - 1)
            made = partial(_state_of_number, row_class, start, sign)
            ingest(stores[at], made, first, str(at), at * 10 + turn)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(make, range(4)))
    assert refused(server_session, schema) == []
    assert len(states(server_session, schema, row_table(row_class).name)) == 5 * EVENTS
    assert [books.balanced for books in server_store.read_ledgers()] == [True] * 4
    assert "locks crossed" not in caplog.text
    for store in stores:
        store.close()
