"""A watch inside the database: triggers note each forbidden change, whoever makes it.

A violation is a row of `sim_violation`. It is rolled back with the change, so only a committed one is seen. `sim_row`
remembers every appended row that was ever committed.
"""

from collections.abc import Callable
from functools import cache
from itertools import groupby
from typing import Any

from core.store.database import Database
from core.store.script import OfRows, Outcome, Script
from tests.fakes.store import MemoryStore

LEASE = 300  # seconds of a claim
FINAL = ("batch_ledger", "partition_anchor")  # rows that never change
BLANKED = {  # rows of which an erasure blanks some columns; the others never change
    "dead_letter_attempt": (("error", "why"), "kind, status, commit_number, touched_by, done_by, done_at"),
    "retracted_row": (("row",), "table_name, ordinal, commit_number, row_commit_number"),
}
KEPT = ("event_hub_checkpoint", "event_hub_dead_letter", "sequence_gap", "task", "event_stream")
NOTE = "INSERT INTO sim_violation VALUES"
APPENDED = ("sensor_reading", "home_alert")
PLACE = "NEW.stream_id || '/' || NEW.partition_id"
LETTER = f"{PLACE} || '/' || NEW.sequence_number || ' by ' || COALESCE(NEW.claimed_by, '')"
MOVES = {  # of letters: from a status to those that may follow; a replay may resolve and reopen all but discarded ones
    "waiting": "waiting retrying exhausted discarded resolved held",
    "retrying": "waiting retrying held exhausted discarded resolved",
    "exhausted": "waiting held exhausted discarded resolved",
    "resolved": "waiting held exhausted resolved",
    "discarded": "resolved",
    "held": "waiting held exhausted discarded resolved",
}
VOLATILE = ("_at", "_until", "_id", "_by")  # ends of columns that no two runs share
STEADY = ("stream_id", "partition_id", "home_id", "sensor_id")
OWN_TO_A_TRY = {"submits of aggregation_run", "aggregation_failure", "history of task", "task_key of task"}


def _never(table: str, change: str) -> str:
    return (
        f"CREATE TRIGGER sim_{table}_{change} AFTER {change} ON {table} BEGIN {NOTE} ('{change} of {table}', ''); END;"
    )


def _when(change: str, name: str, condition: str, detail: str) -> str:
    table = change.split()[-1]
    return (
        f"CREATE TRIGGER sim_{table}_{name} AFTER {change} WHEN {condition} BEGIN"
        f" {NOTE} ('{name} of {table}', {detail}); END;"
    )


def _blanked(table: str, columns: tuple[str, ...], others: str) -> str:
    is_blank = " AND ".join(f"(NEW.{one} IS OLD.{one} OR NEW.{one} IN ('erased', '{{}}'))" for one in columns)
    return _when(f"UPDATE ON {table}", "changed", f"NOT ({is_blank})", PLACE) + (
        f"\nCREATE TRIGGER sim_{table}_kept AFTER UPDATE OF {others} ON {table} BEGIN {NOTE} ('UPDATE of {table}', '');"
        " END;"
    )


def _remembered(table: str) -> str:
    row = "stream_id, {0}.partition_id, {0}.sequence_number, {0}.ordinal, {0}.commit_number"
    values, place = f"'{table}', NEW.{row.format('NEW')}", "stream_id, partition_id, sequence_number, ordinal"
    return (
        f"CREATE TRIGGER sim_{table} AFTER INSERT ON {table} BEGIN INSERT INTO sim_row VALUES ({values}); END;"
        f"\nCREATE TRIGGER sim_{table}_change AFTER UPDATE ON {table} BEGIN {NOTE} ('update of {table}', ''); END;"
        f"\nCREATE TRIGGER sim_{table}_gone AFTER DELETE ON {table} WHEN NOT EXISTS (SELECT 1 FROM retracted_row AS r"
        f" WHERE r.table_name = '{table}' AND ({', '.join('r.' + one for one in place.split(', '))})"
        f" = ({', '.join('OLD.' + one for one in place.split(', '))}) AND r.row_commit_number = OLD.commit_number)"
        f" BEGIN {NOTE} ('delete of {table} without a copy', ''); END;"
    )


SCRIPT = "\n".join(
    [
        "CREATE TABLE sim_violation (kind TEXT, detail TEXT);",
        "CREATE TABLE sim_row (table_name TEXT, stream_id INTEGER, partition_id TEXT, sequence_number INTEGER,"
        " ordinal INTEGER, commit_number INTEGER);",
        *(_never(table, change) for table in FINAL for change in ("UPDATE", "DELETE")),
        *(_never(table, "DELETE") for table in (*KEPT, *BLANKED)),
        *(_blanked(table, *columns) for table, columns in BLANKED.items()),
        *(_remembered(table) for table in APPENDED),
        "CREATE TABLE sim_tombstone (place INTEGER PRIMARY KEY, subject_hash TEXT, erased_at TEXT, erased_by TEXT);",
        *(
            f"CREATE TRIGGER sim_erased_{change} AFTER {change} ON erased_subject BEGIN INSERT INTO sim_tombstone"
            " (subject_hash, erased_at, erased_by) VALUES (NEW.subject_hash, NEW.erased_at, NEW.erased_by); END;"
            for change in ("INSERT", "UPDATE")
        ),
        "CREATE TABLE sim_commit (stream_id INTEGER, partition_id TEXT, commit_number INTEGER, tombstones INTEGER);",
        "CREATE TRIGGER sim_committed AFTER INSERT ON batch_ledger BEGIN INSERT INTO sim_commit SELECT NEW.stream_id,"
        " NEW.partition_id, NEW.commit_number, COUNT(*) FROM sim_tombstone; END;",
        "CREATE TABLE sim_replay (task_id TEXT, keys TEXT);",
        "CREATE TRIGGER sim_asked AFTER INSERT ON task WHEN NEW.kind = 'replay' BEGIN"
        " INSERT INTO sim_replay VALUES (NEW.task_id, NEW.asked ->> 'keys'); END;",
        "CREATE TABLE sim_attempt (stream_id INTEGER, partition_id TEXT, sequence_number INTEGER, attempt INTEGER,"
        " why TEXT, kind TEXT, had_body INTEGER);",
        "CREATE TRIGGER sim_tried AFTER INSERT ON dead_letter_attempt BEGIN INSERT INTO sim_attempt VALUES"
        " (NEW.stream_id, NEW.partition_id, NEW.sequence_number, NEW.attempt, NEW.why, NEW.kind, (SELECT d.body_kept"
        " FROM event_hub_dead_letter AS d WHERE (d.stream_id, d.partition_id, d.sequence_number)"
        " = (NEW.stream_id, NEW.partition_id, NEW.sequence_number))); END;",
        _when(
            "UPDATE ON event_hub_checkpoint",
            "step_back",
            "NEW.sequence_number < OLD.sequence_number OR NEW.commit_number NOT IN (OLD.commit_number,"
            " OLD.commit_number + 1) OR (NEW.sequence_number > OLD.sequence_number"
            " AND NEW.commit_number = OLD.commit_number)",
            f"{PLACE} || ' from ' || OLD.sequence_number || ' to ' || NEW.sequence_number",
        ),
        _when(
            "INSERT ON batch_ledger",
            "commit_after_the_close",
            "EXISTS (SELECT 1 FROM event_stream AS e WHERE e.stream_id = NEW.stream_id AND e.closed_at IS NOT NULL)",
            f"{PLACE} || ' ' || NEW.kind",
        ),
        _when(
            "INSERT ON batch_ledger",
            "foreign_commit",
            "NEW.commit_number <> (SELECT c.commit_number FROM event_hub_checkpoint AS c"
            " WHERE c.stream_id = NEW.stream_id AND c.partition_id = NEW.partition_id)",
            PLACE,
        ),
        _when(
            "UPDATE ON event_hub_dead_letter",
            "wrong_move",
            "NOT ("
            + " OR ".join(f"OLD.status = '{one}' AND INSTR('{targets}', NEW.status)" for one, targets in MOVES.items())
            + " OR OLD.status = NEW.status AND 'erased' IN (NEW.error, NEW.settled_why))",
            f"{LETTER} || ': ' || OLD.status || ' to ' || NEW.status",
        ),
        _when(
            "UPDATE ON event_hub_dead_letter",
            "held_twice",
            "OLD.status = 'retrying' AND NEW.status = 'retrying' AND OLD.claimed_by <> NEW.claimed_by"
            " AND OLD.claimed_until <> NEW.claimed_until"
            f" AND julianday(OLD.claimed_until) > julianday(NEW.claimed_until, '-{LEASE} seconds') + 1e-8",
            f"{LETTER} || ' taken from ' || OLD.claimed_by",
        ),
        "CREATE TABLE sim_run (run TEXT);",
        "CREATE TRIGGER sim_letter_begun AFTER UPDATE ON event_hub_dead_letter WHEN OLD.status = 'retrying'"
        " AND NEW.status = 'retrying' AND OLD.claimed_by <> NEW.claimed_by AND OLD.claimed_until = NEW.claimed_until"
        f" BEGIN INSERT INTO sim_violation SELECT 'begun twice', {LETTER} FROM sim_run WHERE run = OLD.claimed_by;"
        " INSERT INTO sim_run VALUES (NEW.claimed_by); END;",
        _when(
            "UPDATE ON event_hub_dead_letter",
            "settled_by_another",
            "OLD.status = 'retrying' AND NEW.status IN ('resolved', 'waiting', 'exhausted')"
            " AND NEW.claimed_by = OLD.claimed_by AND NEW.attempts NOT IN (OLD.attempts, OLD.attempts + 1)",
            LETTER,
        ),
        _when(
            "UPDATE ON task_part",
            "step_of_a_task_that_stands",
            "NEW.position <> OLD.position AND (NEW.step <> OLD.step + 1"
            " OR (SELECT t.status FROM task AS t WHERE t.task_id = NEW.task_id) <> 'running'"
            " OR NEW.position < OLD.position"  # a discard walks down
            " AND (SELECT t.kind FROM task AS t WHERE t.task_id = NEW.task_id) <> 'redrive')",
            "NEW.task_id",
        ),
        _when(
            "UPDATE ON sequence_gap",
            "absent_again",
            "OLD.status = 'absent' AND NEW.status <> 'absent'",
            f"{PLACE} || ' from ' || OLD.first_sequence_number",
        ),
    ]
)


class WatchedStore(MemoryStore):
    """A database in memory under watch: an empty one, or one from an image."""

    def __init__(self, image: bytes | None = None) -> None:
        super().__init__()
        self._connection.deserialize(image or watched_image())


OPEN_LETTERS = """
    SELECT stream_id, partition_id, partition_key, sequence_number, status, held_behind
      FROM event_hub_dead_letter JOIN event_stream USING (stream_id)
     WHERE closed_at IS NULL AND partition_key IS NOT NULL AND status IN ('waiting', 'retrying', 'held', 'exhausted')
     ORDER BY stream_id, partition_id, partition_key, sequence_number
"""


class KeyOrderWatch:
    """A database that checks at each commit that the events of a partition key go in order.

    Each open letter of a key except the first is held after the one before it, and no row is written after an open one.
    """

    def __init__(self, database: Database, sql: Callable[..., list[Any]], key_of: Callable[..., Any]) -> None:
        self._database, self._sql, self._key_of = database, sql, key_of
        self.ask, self.close = database.ask, database.close

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        done = self._database.run(script, rehearse)
        if rehearse:
            return done
        first: dict[tuple[object, ...], int] = {}
        for place, chain in groupby(self._sql(OPEN_LETTERS), lambda row: tuple(row[:3])):
            before = None
            for *_, number, status, behind in chain:
                assert (status == "held") == (before is not None), (place, number, status, "after", before)
                assert before is None or behind == before, (place, number, "held behind", behind, "not", before)
                before = number
                first.setdefault(place, number)
        for step in script.steps:
            if isinstance(step.statement, OfRows) and step.statement.verb == "append":
                stream_id, id = step.values["stream_id"], step.values["partition_id"]
                for number, *_ in step.many or ():
                    waiting = first.get((stream_id, id, self._key_of(stream_id, id, number)), number)
                    assert waiting >= number, (stream_id, id, number, "was written, but an earlier letter is", waiting)
        return done


@cache
def watched_image() -> bytes:
    """Return a migrated database with the watch: it is made once, because that takes as long as a small world."""
    store = MemoryStore()
    for statement in SCRIPT.split("\n"):
        store.sql(statement)
    return store.image()


@cache
def steady_columns() -> list[tuple[str, str]]:
    """Return for each table a statement that reads it without the columns in which any two runs differ."""
    store, found = WatchedStore(), []
    for (table,) in store.sql("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sim_%'"):
        names = [name for (name,) in store.sql(f"SELECT name FROM pragma_table_info('{table}')")]
        kept = [
            f"[{name}]"
            for name in names
            if not {table, f"{name} of {table}"} & OWN_TO_A_TRY and (name in STEADY or not name.endswith(VOLATILE))
        ]
        found += [(table, f"SELECT {', '.join(kept)} FROM {table}")] * bool(kept)
    return found


def steady_tables(store: WatchedStore) -> dict[str, list[str]]:
    """Return the rows of all tables, without times, ids and authors."""
    return {table: sorted(map(repr, store.sql(statement))) for table, statement in steady_columns()}
