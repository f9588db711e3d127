"""The server store over Microsoft's driver and real TDS, before a server that knows what tests/fakes gives it.

What T-SQL means is not tested here: only how many requests a commit is, what of it arrives, in which words the driver
hands over an error, and what plans the batches cost: each pair of a text and its parameters' types is a plan.
"""

import json
import re
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from core.errors import CheckpointConflict, CommitOutcomeUnknown, DataRefused, SchemaMismatch, StoreUnavailable
from core.ingest.ingest import Ingestion, ingest_batch
from core.letters.listing import FIRST_PAGE, LetterChoice, LetterListing
from core.model.commits import BatchCommit, SequenceGap
from core.model.events import SequenceNumber, Span
from core.model.rows import PlacedRow
from core.store import migrate
from core.store.database import OneStream, write
from core.store.memory import Memory
from core.store.migrations import load_migrations, migrations_of
from core.store.sqlserver.connections import Access, Deadlines, connect, load_driver
from core.store.sqlserver.database import SqlServerDatabase
from core.store.sqlserver.schema import migrate_server
from examples.home_security.transform import Home, SensorReading
from tests.fakes.builders import STREAM, FakeClock, batch, events, reading, stamps
from tests.fakes.odbc_driver import DECLARED, Server, When, fault
from tests.fakes.plain_transform import PLAIN
from tests.fakes.rooms import EXAMPLES
from tests.fakes.store import Store
from tests.fakes.tds_server import PREPARE_AND_EXECUTE, TdsServer
from tests.patience import allowed
from tests.sql.statements import commit_of, commit_with, with_gap
from tests.sql.values import EPOCH, ROW_CLASSES
from tests.sql.wire import Cut, Wire

PARTITION = commit_of((), first=True, letters=False).partition
SOON = Deadlines(timedelta(seconds=10), timedelta(seconds=10))
MANY: list[PlacedRow] = [(number, 0, reading("ß" * 8)) for number in range(2_000)]
WORDS = '"\\ \n\x01\x1f 👩‍👩‍👧 \ufdcf ß'


@pytest.fixture
def server() -> Iterator[TdsServer]:
    serving = TdsServer()
    yield serving
    serving.close()


@pytest.fixture
def wire(server: TdsServer) -> Iterator[Wire]:
    made = Wire("127.0.0.1", server.port)
    yield made
    made.close()


@pytest.fixture
def store(wire: Wire, driver_name: str) -> Iterator[Store]:
    text = f"DRIVER={{{driver_name}}};SERVER=127.0.0.1,{wire.port};UID=app;PWD=secret;Encrypt=no"
    opened = Store(SqlServerDatabase(text, SOON), Memory(timedelta(seconds=60)))
    yield opened
    opened.close()


@pytest.fixture
def state(server: TdsServer) -> Server:
    return server.state


def with_letter(body: bytes) -> BatchCommit:
    commit = commit_of(ROW_CLASSES, first=True, letters=True)
    (letter,) = commit.settled.letters
    changed = replace(letter, event=structs.replace(letter.event, body=body, partition_key=WORDS), error=WORDS)
    return replace(commit, settled=replace(commit.settled, letters=[changed]))


def with_parts(count: int) -> BatchCommit:
    parts = [SequenceGap(SequenceNumber(at), SequenceNumber(at), "absent") for at in range(count)]
    return replace(with_gap(commit_of(ROW_CLASSES, first=True, letters=True)), gaps=parts)


# Each with the bytes that the batch of a commit may have on the wire: with the check that the stream is open, and the
# totals.
COMMITS: dict[str, tuple[Callable[[], BatchCommit], int]] = {
    "nothing but its range": (lambda: commit_of((), first=True, letters=False), 6_724),
    "rows of every class and a letter": (lambda: commit_of(ROW_CLASSES, first=True, letters=True), 22_050),
    "2,000 rows": (lambda: commit_with({SensorReading: MANY}), 346_604),
    "a body of 900 kB": (lambda: with_letter(bytes(range(256)) * 3_600), 3_715_800),
    "many parts of a gap": (lambda: with_parts(500), 42_760),
    "words with quotes and escapes": (lambda: commit_with({Home: [(7, 0, Home(WORDS, WORDS, True))]}), 9_717),
}


@pytest.mark.parametrize("case", COMMITS)
def test_a_commit_is_one_short_request_and_arrives_whole(store: Store, wire: Wire, state: Server, case: str) -> None:
    store.read_partition(PARTITION)
    made, most = COMMITS[case]
    before, sent, commit = wire.requests, wire.sent, made()
    assert store.commit_batch(commit) == 1
    assert wire.requests - before == 1
    assert wire.sent - sent <= most
    assert Store(store.database).read_partition(PARTITION) == commit.state_after(1)
    assert len(state.commits) == 1


def test_batches_with_and_without_values_take_turns(store: Store, state: Server) -> None:
    for _ in range(2):
        assert store.database.ask("read_commit_numbers") == []
        store.read_partition(PARTITION)
        assert store.database.ask("read_commit_numbers") == []
        assert store.commit_batch(commit_of(ROW_CLASSES, first=True, letters=True)) == 1
        state.checkpoints.clear()


def test_a_partition_is_anchored_and_its_gaps_are_noted(store: Store) -> None:
    assert store.read_partition(PARTITION).anchor is None
    state = store.anchor_partition(store.read_partition(PARTITION), SequenceNumber(2**62), EPOCH)
    assert (state.anchor, state.opened_at) == (2**62, EPOCH)
    store.note_gap(state, Span(SequenceNumber(2**62), SequenceNumber(2**62 + 1)), EPOCH)
    store.close_gaps(PARTITION)


def test_the_command_prints_each_migration_when_it_begins_and_when_it_ends(
    server: TdsServer, state: Server, driver_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    state.version = load_migrations("sqlserver")[-1].version - 1
    assert migrate.main(["--store", server.connection_string(driver_name)]) == 0
    titles = [one.title for one in (load_migrations("sqlserver")[-1], *migrations_of(EXAMPLES[0], "sqlserver"))]
    lines = "".join(rf"applying {title}\napplied {title} in \d+\.\d s\n" for title in titles)
    assert re.fullmatch(lines + "the store is up to date\n", capsys.readouterr().out)


def test_a_second_migration_says_that_it_waits_and_why_it_ends(
    server: TdsServer, state: Server, driver_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    state.refused = ("sp_getapplock", fault("?", 51001, "a different migration is running"))
    assert migrate.main(["--store", server.connection_string(driver_name)]) == 1
    said = capsys.readouterr()
    assert said.out == "a different migration of this database is running: waiting for it, 60 s at most\n"
    assert said.err.startswith("migrate: a different migration of this database did not end within 60 s; ")


def test_a_migration_outlasts_the_deadline_of_a_statement(server: TdsServer, state: Server, driver_name: str) -> None:
    slow, driver, opened = "ix_retracted_row_number", load_driver(), list[Any]()

    class Opened:
        """The driver itself, with the connections that it opened."""

        Error = driver.Error

        def connect(self, connection_string: str, /, **options: Any) -> Any:
            opened.append(driver.connect(connection_string, **options))
            return opened[-1]

    missing = list(load_migrations("sqlserver"))
    state.version, server.holds = 0, slow
    assert slow in missing[0].text
    where = server.connection_string(driver_name)
    with ThreadPoolExecutor(1) as pool:
        migrating = pool.submit(migrate_server, where, access=Access(Opened))
        assert server.holding.wait(allowed(10))
        of_the_app = connect(where, Deadlines(statement=timedelta(seconds=1)))
        with pytest.raises(of_the_app.fault, match="HYT00"):
            of_the_app.run(f"SELECT 1 AS {slow};")
        assert (server.attentions, migrating.done(), opened[0].timeout) == (1, False, 0)
        server.release()
        assert migrating.result(allowed(10)) == missing
    of_the_app.close()
    assert server.attentions == 1


def test_the_texts_of_a_commit_arrive_unharmed(store: Store, state: Server) -> None:
    store.read_partition(PARTITION)
    commit = with_letter(b"\x00\xff" * 450_000)
    store.commit_batch(commit)
    ((text, given),) = state.commits
    (letter,) = json.loads(dict(zip(DECLARED.findall(text), given, strict=True))["letters"])
    assert (letter[3], letter[9]) == (WORDS, WORDS)
    assert bytes.fromhex(letter[5]) == b"\x00\xff" * 450_000


TAKEN = "Violation of PRIMARY KEY constraint '{}'. Cannot insert duplicate key in object 'x.y'."
SERVERS_WORDS = {  # each kind of fault; core/store/sqlserver/test_faults.py has all numbers
    "the checkpoint moved": (
        51100,
        "open_checkpoint touched a different number of rows than expected",
        CheckpointConflict,
    ),
    "a trigger that throws the same number": (51100, "The record does not exist.", DataRefused),
    "a first commit that lost the race": (2627, TAKEN.format("pk_event_hub_checkpoint"), CheckpointConflict),
    "a text too long, in two lines": (8152, "String or binary data would be truncated.\nTerminated.", DataRefused),
    "a deadlock": (1205, "Rerun the transaction.", StoreUnavailable),
    "a missing table": (208, "Invalid object name 'hubledger.home'.", SchemaMismatch),
}


@pytest.mark.parametrize("when", [When.AT_ONCE, When.LATE], ids=["at once", "behind a result"])
@pytest.mark.parametrize("case", SERVERS_WORDS)
def test_what_the_server_says_reaches_us_by_its_meaning(store: Store, state: Server, case: str, when: When) -> None:
    number, words, named = SERVERS_WORDS[case]
    store.read_partition(PARTITION)
    state.faults = [(when, fault("?", number, words))]
    commit = with_gap(commit_of(ROW_CLASSES, first=True, letters=True))
    with pytest.raises(named):
        store.commit_batch(commit)
    assert store.commit_batch(commit) == 1


@pytest.mark.parametrize("given", ["", "LANGUAGE=French;"])
def test_a_session_reports_duplicates_in_english(server: TdsServer, driver_name: str, given: str) -> None:
    database = SqlServerDatabase(f"{server.connection_string(driver_name)};{given}", SOON)
    Store(database).read_partition(PARTITION)
    database.close()
    assert ["us_english" in login and "French" not in login for login in server.logins] == [True]


def test_a_port_without_a_listener_is_unavailable(driver_name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    text = f"DRIVER={{{driver_name}}};SERVER=127.0.0.1,{port};UID=a;PWD=b;Encrypt=no"
    store = Store(SqlServerDatabase(text, Deadlines(timedelta(seconds=1), timedelta(seconds=1))))
    with pytest.raises(StoreUnavailable, match=r"^STORE_CONNECTION: "):
        store.read_partition(PARTITION)


def test_a_line_cut_before_or_after_the_commit_has_its_outcome_unknown(store: Store, wire: Wire, state: Server) -> None:
    for where, stands in ((Cut.BEFORE, False), (Cut.AFTER, True)):
        store.read_partition(PARTITION)
        wire.cut(where)
        with pytest.raises(CommitOutcomeUnknown):
            store.commit_batch(commit_of((), first=True, letters=False))
        assert bool(state.checkpoints) == stands


def test_a_parameter_that_the_driver_cannot_write_is_refused_data(store: Store) -> None:
    store.open_stream(PARTITION.stream)
    with pytest.raises(DataRefused):
        store.database.ask("find_stream", event_hub="a\ud800", consumer_group="b")
    with pytest.raises(DataRefused):
        write(store.database, "a test", "close_gaps", stream_id=1, partition_id="\ud800")
    with pytest.raises(DataRefused, match="truncation"):  # not cut unseen by the variable
        store.database.ask("find_stream", event_hub="👩" * 2_001, consumer_group="b")
    assert store.database.ask("find_stream", event_hub="a", consumer_group="b") == [(1,)]


def test_batches_of_all_sizes_have_one_declaration_of_parameters_for_each_text(store: Store, server: TdsServer) -> None:
    """The numbers of the partition outgrow an int on the way."""
    server.state.stream_id, first, own = 1, 2**31 - 400, stamps()
    server.state.anchors["0"] = first
    sizes = (1, 2, 3, 9, 27, 81, 243, 729)
    for size in sizes:
        ingest_batch(batch(events(first, first + size - 1, "double home-1")), Ingestion(store, PLAIN, own))
        first += size
    assert len([text for text, _ in server.prepared if "INSERT INTO hubledger.batch_ledger" in text]) == len(sizes)
    assert len(set(server.prepared)) == len({text for text, _ in server.prepared})


ALL = {"fingerprint": "0123456789abcdef", "status": "waiting", "error_class": "poison"}
FILTERS: list[dict[str, Any]] = [{}, {"status": "waiting"}, {**ALL, "partition_id": "0", "partition_key": "a key"}]


@pytest.mark.parametrize("given", FILTERS)
def test_a_listing_is_one_request(store: Store, server: TdsServer, given: dict[str, Any]) -> None:
    server.state.stream_id = 1
    listing, wanted = LetterListing(OneStream(store.database, STREAM)), LetterChoice(**given)
    listing.list_letters(wanted, FIRST_PAGE, 50)
    before = len(server.calls)
    listing.list_letters(wanted, FIRST_PAGE, 50)
    listing.count_matching(wanted, ["waiting"])
    assert server.calls[before:] == [PREPARE_AND_EXECUTE] * 2
    for text, _ in server.prepared[-2:]:
        fields = (*ALL, "partition_id", "partition_key")
        asked = [name for name in fields if re.search(rf"AND (?:d\.{name}(?: \+ N'\.')? = )?@{name}\b", text)]
        assert asked == list(given)


def test_a_round_of_an_idle_keeper_is_one_request_however_old_the_stream_is(store: Store, server: TdsServer) -> None:
    server.state.stream_id = 1
    server.state.answers["MIN(d.due_at)"], clock = [(None,)], FakeClock()
    keeper = store.remembering(timedelta(seconds=60), clock.monotonic)
    assert keeper.next_due_at(STREAM, EPOCH) is None
    clock.advance(3_600)
    before = len(server.calls)
    assert keeper.next_due_at(STREAM, EPOCH) is None
    assert server.calls[before:] == [PREPARE_AND_EXECUTE]
