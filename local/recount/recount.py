"""The independent recount: compare a store with the record of a feed, row by row, without code of the app."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from local.feed.businesses import Domain, find_domain

# The properties of malformed events in a dangerous chaos, as the trigger's JSON names them: JSON has no such numbers.
PUBLISHED_PROPERTIES = {"gain": "NaN", "peak": "Infinity", "floor": "-Infinity", "level": 0.5}
SHOWN = 5  # the limit of examples for each kind of difference

Recounted = Callable[[sqlite3.Connection], Iterator[str]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Compare two multisets: the record holds the limits of each count, the store holds the count. A letter with the
# fingerprint "held" has never failed: it waited for an earlier letter of its key, and its event followed.
_LETTERS = """
SELECT error_class, partition_key, body, SUM(at_least), SUM(at_most), SUM(found) FROM (
    SELECT outcome AS error_class, partition_key, body, at_least, at_most, 0 AS found
    FROM record.event WHERE outcome IN ('poison', 'reference', 'crash', 'refused')
    UNION ALL
    SELECT error_class, partition_key, body, 0, 0, 1 FROM event_hub_dead_letter
    WHERE fingerprint NOT IN ('held', 'erased')
) GROUP BY error_class, partition_key, body
HAVING SUM(found) NOT BETWEEN SUM(at_least) AND SUM(at_most)
"""
_RANGES = """
SELECT stream_id, partition_id, first_sequence_number, last_sequence_number,
    written, filtered, dead_lettered, held, absent
FROM batch_ledger WHERE kind = 'batch' ORDER BY stream_id, partition_id, first_sequence_number
"""
_CHECKPOINTS = """
SELECT c.stream_id, c.partition_id, c.sequence_number, MAX(l.last_sequence_number)
FROM event_hub_checkpoint AS c LEFT JOIN batch_ledger AS l
    ON l.stream_id = c.stream_id AND l.partition_id = c.partition_id AND l.kind = 'batch'
GROUP BY c.stream_id, c.partition_id HAVING MAX(l.last_sequence_number) IS NOT c.sequence_number
"""
_PROPERTIES = """
SELECT partition_id, sequence_number, properties FROM event_hub_dead_letter
WHERE fingerprint <> 'held' AND error_class IN ('poison', 'crash', 'refused')
"""
_PUBLISHED = "SELECT COALESCE(SUM(at_least), 0), COALESCE(SUM(at_most), 0) FROM record.event"
# The class of a letter decides its statuses: a reference letter resolves when its home registers, poison never does.
# The operator of a chaos discards letters that block later events.
_STATUSES = """
SELECT error_class, status, COUNT(*) FROM event_hub_dead_letter
WHERE (error_class, status) NOT IN (VALUES ('poison', 'exhausted'), ('reference', 'waiting'), ('reference', 'retrying'),
    ('reference', 'resolved'), ('crash', 'exhausted'))
    AND NOT (fingerprint = 'held' AND status = 'resolved')
    AND NOT (status = 'discarded' AND error_class IN ('poison', 'crash', 'refused') AND settled_why LIKE 'the demo%')
GROUP BY error_class, status
"""
_STREAMS = """
SELECT (SELECT COUNT(DISTINCT stream_id) FROM batch_ledger), COUNT(*),
    COUNT(DISTINCT event_hub || ' ' || consumer_group)
FROM event_stream
"""
_RESOLVED = "SELECT COUNT(*) FROM event_hub_dead_letter WHERE status = 'resolved'"
_RETRIED = "SELECT COALESCE(SUM(written + filtered), 0) FROM batch_ledger WHERE kind = 'retry'"
_ACCOUNTED = """
SELECT COALESCE(SUM(last_sequence_number - first_sequence_number + 1), 0) FROM batch_ledger WHERE kind = 'batch'
"""
_OUTCOMES = """
SELECT outcome, SUM(at_least), SUM(at_most), SUM(found) FROM (
    SELECT CASE WHEN outcome IN ('poison', 'reference', 'crash', 'refused') THEN 'dead_lettered' ELSE outcome END
        AS outcome, at_least, at_most, 0 AS found FROM record.event
    UNION ALL SELECT 'written', 0, 0, written FROM batch_ledger WHERE kind = 'batch'
    UNION ALL SELECT 'filtered', 0, 0, filtered FROM batch_ledger WHERE kind = 'batch'
    UNION ALL SELECT 'dead_lettered', 0, 0, dead_lettered FROM batch_ledger WHERE kind = 'batch'
    UNION ALL SELECT CASE settled_why WHEN 'its rows were written' THEN 'written' ELSE 'filtered' END, 0, 0, 1
        FROM event_hub_dead_letter WHERE fingerprint = 'held' AND status = 'resolved'
    UNION ALL SELECT 'dead_lettered', 0, 0, held FROM batch_ledger WHERE kind = 'batch'
    UNION ALL SELECT 'dead_lettered', 0, 0, -1 FROM event_hub_dead_letter
        WHERE fingerprint = 'held' AND status = 'resolved'
    UNION ALL SELECT 'absent', 0, 0, absent FROM batch_ledger WHERE kind = 'batch'
) GROUP BY outcome HAVING SUM(found) NOT BETWEEN SUM(at_least) AND SUM(at_most)
"""
# The expected rows: an event with an open letter may have none yet.
_EXPECTED = """
CREATE TEMP VIEW expected AS
SELECT *, CASE WHEN outcome = 'reference' AND (partition_key, body) IN (
    SELECT partition_key, body FROM event_hub_dead_letter WHERE status <> 'resolved'
) THEN 0 ELSE at_least END AS surely
FROM record.event
"""
# A position has one outcome: a letter that is not resolved has no row.
_LETTERS_WITH_ROWS = """
SELECT l.partition_id, l.sequence_number FROM event_hub_dead_letter AS l
JOIN {table} AS r USING (stream_id, partition_id, sequence_number) WHERE l.status <> 'resolved'
"""


def recount(store: Path, record: Path, domain: Domain | None = None) -> list[str]:
    """Return the differences between a store and the record of the one feed that filled it.

    Every published event must be accounted for once, from number 0 of each partition on. The letters and the rows of
    the domain must be equal multisets. Without a `domain`, it is the record's.
    """
    with recounting(store, record) as connection:
        checks = [*ACCOUNTING, _settled, _multiset("outcomes", _OUTCOMES), *_contents(connection, domain)]
        return _differences(connection, checks)


def recount_others(store: Path, record: Path, erased: str) -> list[str]:
    """Return the differences after an erasure: the ledger has all events, and the other senders have their rows and
    letters."""
    with recounting(store, record) as connection:
        found = _differences(connection, ACCOUNTING)
    others = record.with_name("record-of-others.db")
    with closing(sqlite3.connect(_read_only(record), uri=True)) as whole, closing(sqlite3.connect(others)) as copied:
        whole.backup(copied)
        copied.execute("DELETE FROM event WHERE partition_key = ?", (erased,))
        copied.commit()
    with recounting(store, others) as connection:
        return found + _differences(connection, _contents(connection, None))


def _contents(connection: sqlite3.Connection, domain: Domain | None) -> list[Recounted]:
    """Return the checks of rows and letters. Without a `domain`, the record names it."""
    own = domain or find_domain(connection.execute("SELECT transform FROM record.feed").fetchone()[0])
    multisets = {**own.multisets, "letters": _LETTERS}
    return [*(_multiset(name, query) for name, query in multisets.items()), *map(_letters_with_rows, own.row_tables)]


def _differences(connection: sqlite3.Connection, checks: Iterable[Recounted]) -> list[str]:
    return [difference for check in checks for difference in bounded(check)(connection)]


@contextmanager
def recounting(store: Path, record: Path) -> Iterator[sqlite3.Connection]:
    """Open a store with its `record`, a view of the `expected` rows, and a function instant() of a time as a number."""
    with closing(sqlite3.connect(_read_only(store), uri=True)) as connection:
        connection.execute("ATTACH ? AS record", (_read_only(record),))
        connection.execute(_EXPECTED)
        connection.create_function("instant", 1, _microseconds, deterministic=True)
        yield connection


def _read_only(path: Path) -> str:
    return f"{path.resolve().as_uri()}?mode=ro"


def _microseconds(text: str) -> int | str:
    """Return microseconds since 1970. A text that is no instant stays as it is, and matches no instant."""
    try:
        return (datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1)
    except (TypeError, ValueError):
        return text


def _totals(connection: sqlite3.Connection) -> Iterator[str]:
    """Check that the record is whole, and that the ledger accounts for its events and for the letters of retries."""
    if connection.execute("SELECT complete FROM record.feed").fetchall() != [(1,)]:
        yield "record: it is not complete, because the feed did not end in order"
    least, most = connection.execute(_PUBLISHED).fetchone()
    accounted = connection.execute(_ACCOUNTED).fetchone()[0]
    if not least <= accounted <= most:
        yield f"ledger: {accounted} events are accounted for, {_count(least, most)} were published"
    resolved = connection.execute(_RESOLVED).fetchone()[0]
    retried = connection.execute(_RETRIED).fetchone()[0]
    if resolved != retried:
        yield f"ledger: {retried} letters were resolved by retries, {resolved} letters are resolved"


def _tiles(connection: sqlite3.Connection) -> Iterator[str]:
    """Check that the ranges of a partition follow each other from 0, and that each is the sum of its outcomes."""
    partition, wanted = None, 0
    for stream_id, partition_id, first, last, *outcomes in connection.execute(_RANGES):
        if (stream_id, partition_id) != partition:
            partition, wanted = (stream_id, partition_id), 0
        if first != wanted:
            kind = "hole" if first > wanted else "overlap"
            yield f"ledger: {kind} in partition {partition_id}: {wanted} is wanted, the next range begins at {first}"
        if sum(outcomes) != last - first + 1:
            yield f"ledger: {partition_id}/{first} to {last} has {sum(outcomes)} outcomes for {last - first + 1} events"
        wanted = last + 1


def _checkpoints(connection: sqlite3.Connection) -> Iterator[str]:
    for _, partition_id, checkpoint, last in connection.execute(_CHECKPOINTS):
        yield f"checkpoint: partition {partition_id} is at {checkpoint}, its ledger ends at {last}"


def _settled(connection: sqlite3.Connection) -> Iterator[str]:
    for error_class, status, count in connection.execute(_STATUSES):
        yield f"letters: {count} of class {error_class} are {status}"


def recount_properties(store: Path) -> list[str]:
    """Return the letters of a dangerous chaos whose properties are not those that its feed has published."""
    with closing(sqlite3.connect(_read_only(store), uri=True)) as connection:
        found = connection.execute(_PROPERTIES).fetchall()
    return [
        f"letter: {partition_id}/{number} has the properties {properties}"
        for partition_id, number, properties in found
        if json.loads(properties) != PUBLISHED_PROPERTIES
    ][:SHOWN]


def _letters_with_rows(table: str) -> Recounted:
    def check(connection: sqlite3.Connection) -> Iterator[str]:
        for partition_id, number in connection.execute(_LETTERS_WITH_ROWS.format(table=table)):
            yield f"letter: {partition_id}/{number} is a letter and also has a row in {table}"

    return check


def _one_stream(connection: sqlite3.Connection) -> Iterator[str]:
    """Check that the ledger is of one stream, in one or more incarnations of its hub."""
    streams, incarnations, hubs = connection.execute(_STREAMS).fetchone()
    if hubs > 1 or streams > incarnations:
        streams_of = f"{streams} streams of {hubs} hubs in {incarnations} incarnations"
        yield f"ledger: it holds {streams_of}, but the record is of one hub"


def _multiset(name: str, query: str) -> Recounted:
    def check(connection: sqlite3.Connection) -> Iterator[str]:
        for *values, least, most, found in connection.execute(query):
            kind = "missing" if found < least else "too many"
            named = ", ".join(map(shown, values))
            yield f"{name}: {kind}: {found} instead of {_count(least, most)}: {named}"

    return check


def bounded(check: Recounted) -> Recounted:
    """Return a check that shows its first differences, and the number of all others."""

    def shown_first(connection: sqlite3.Connection) -> Iterator[str]:
        found = check(connection)
        shown = list(islice(found, SHOWN))
        yield from shown
        more = sum(1 for _ in found)
        if more:
            yield f"{shown[0].partition(':')[0]}: and {more} more differences like these"

    return shown_first


# The checks that hold for any domain.
ACCOUNTING: tuple[Recounted, ...] = (
    _totals,
    _one_stream,
    _tiles,
    _checkpoints,
)


def shown(value: object) -> str:
    """Return a value as a difference names it."""
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _count(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"
