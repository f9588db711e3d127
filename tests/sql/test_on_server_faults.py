"""Events that a trigger, XML or a clash of types refuses become letters, on the T-SQL server of MSSQL_CONNECTION."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from core.ingest.ingest import Ingestion, ingest_batch
from core.model.events import Event
from core.model.rows import References, Row, appended_to
from core.model.transforms import Transform
from core.store.sqlserver.connections import Session
from tests.fakes.builders import batch, event, stamps
from tests.fakes.server_engine import shared_schema
from tests.fakes.store import Store

pytestmark = pytest.mark.server

EVENTS, PLACE = 20, 13
LINEAGE = """
    stream_id int NOT NULL, partition_id varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number bigint NOT NULL, ordinal smallint NOT NULL, commit_number bigint NOT NULL"""


@appended_to("guarded")
@dataclass(frozen=True, slots=True)
class Guarded:
    """A row of a table that a trigger guards."""

    note: str


@appended_to("document")
@dataclass(frozen=True, slots=True)
class Document:
    """A row of a table with XML."""

    text: str


@appended_to("clashing")
@dataclass(frozen=True, slots=True)
class Clashing:
    """A row of a table whose column takes no number."""

    day: int


TABLES = {
    "guarded": f"CREATE TABLE {{schema}}.guarded ({LINEAGE}, note nvarchar(20) NOT NULL);",
    "document": f"CREATE TABLE {{schema}}.document ({LINEAGE}, text xml NOT NULL);",
    "clashing": f"CREATE TABLE {{schema}}.clashing ({LINEAGE}, day date NOT NULL);",
}
TRIGGER = """CREATE TRIGGER {schema}.tr_guarded ON {schema}.guarded AFTER INSERT AS
BEGIN
    SET NOCOUNT ON;
    IF EXISTS (SELECT 1 FROM inserted AS i WHERE i.note = N'throw') THROW 51100, 'this note is not admitted', 1;
    IF EXISTS (SELECT 1 FROM inserted AS i WHERE i.note = N'roll back')
    BEGIN
        RAISERROR('this note is not admitted', 16, 1);
        ROLLBACK TRANSACTION;
    END;
    IF EXISTS (SELECT 1 FROM inserted AS i WHERE i.note = N'raise') RAISERROR('this note is not admitted', 16, 1);
END;"""


@pytest.fixture
def schema(server_session: Session) -> Iterator[str]:
    """The process's own schema, with these tables."""
    name = shared_schema()
    for text in TABLES.values():
        server_session.run(f"SET NOCOUNT ON; {text.format(schema=name)}")
    trigger = TRIGGER.format(schema=name).replace("'", "''")
    server_session.run(f"SET NOCOUNT ON; EXEC(N'{trigger}');")
    yield name
    for table in TABLES:
        server_session.run(f"SET NOCOUNT ON; DROP TABLE {name}.{table};")


def ingest(store: Store, row_of: Callable[[int], Row], events: int = EVENTS) -> None:
    def rows_of(given: Event, references: References) -> list[Row]:
        return [row_of(given.sequence_number)]

    means = Ingestion(store, Transform("test/1", rows_of), stamps())
    ingest_batch(batch(event(number) for number in range(events)), means)


def written(session: Session, schema: str, table: str) -> list[int]:
    found = session.run(f"SELECT t.sequence_number FROM {schema}.{table} AS t ORDER BY t.sequence_number;")[-1]
    return [number for (number,) in found]


def refused(session: Session, schema: str) -> list[tuple[int, str]]:
    found = session.run(
        f"SELECT d.sequence_number, d.error_class FROM {schema}.event_hub_dead_letter AS d ORDER BY d.sequence_number;"
    )[-1]
    return [(number, error_class) for number, error_class in found]


@pytest.mark.parametrize("how", ["throw", "roll back"])
def test_an_event_that_a_trigger_refuses_is_a_letter_and_no_other(
    server_store: Store, server_session: Session, schema: str, how: str
) -> None:
    ingest(server_store, lambda number: Guarded(how if number == PLACE else "fine"))
    assert refused(server_session, schema) == [(PLACE, "refused")]
    assert written(server_session, schema, "guarded") == [number for number in range(EVENTS) if number != PLACE]
    assert [books.balanced for books in server_store.read_ledgers()] == [True]


def test_an_error_that_a_trigger_raises_without_a_rollback_leaves_each_event_accounted_for_once(
    server_store: Store, server_session: Session, schema: str
) -> None:
    """RAISERROR does not honor XACT_ABORT: the commit stands, unless the driver cancels the batch before its end."""
    ingest(server_store, lambda number: Guarded("raise" if number == PLACE else "fine"))
    letters = [number for number, _ in refused(server_session, schema)]
    assert sorted([*letters, *written(server_session, schema, "guarded")]) == list(range(EVENTS))
    assert letters in ([], [PLACE])
    assert [books.balanced for books in server_store.read_ledgers()] == [True]


def test_a_text_that_is_no_xml_is_a_letter(server_store: Store, server_session: Session, schema: str) -> None:
    texts = {3: "<a", 7: "<a></b>", 11: "<\x01/>", PLACE: "<a>&nbsp;</a>"}
    ingest(server_store, lambda number: Document(texts.get(number, "<a/>")))
    assert refused(server_session, schema) == [(number, "refused") for number in texts]
    assert written(server_session, schema, "document") == [number for number in range(EVENTS) if number not in texts]


def test_a_type_that_the_column_does_not_take_refuses_the_events_and_holds_no_partition(
    server_store: Store, server_session: Session, schema: str
) -> None:
    ingest(server_store, Clashing, events=3)
    assert refused(server_session, schema) == [(number, "refused") for number in range(3)]
    assert [books.balanced for books in server_store.read_ledgers()] == [True]
