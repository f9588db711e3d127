"""The table of tamperings: changes by hand to a finished store or its hub, and the faults to be named."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from core.model.spans import SequenceNumber
from tests.fakes.builders import event
from tests.fakes.memory_hub import MemoryHub

Target = Mapping[str, object]


@dataclass(frozen=True)
class Tampering:
    """A change by hand: the fault's kind, and the words that its detail has, with the picked values in braces."""

    kind: str
    words: str
    pick: str
    statements: tuple[str, ...] = ()
    hub: Callable[[MemoryHub, Target], None] | None = None


READING = (
    "SELECT r.partition_id, r.sequence_number AS number, r.commit_number AS c, r.ordinal FROM sensor_reading AS r"
    " INNER JOIN batch_ledger AS l ON l.partition_id = r.partition_id AND l.commit_number = r.commit_number"
    " WHERE l.kind = '{}' ORDER BY r.partition_id, r.sequence_number LIMIT 1"
)
OF_READING = "WHERE partition_id = :partition_id AND sequence_number = :number AND ordinal = :ordinal"
COMMIT = (
    "SELECT partition_id, commit_number AS c, first_sequence_number AS first, last_sequence_number AS last"
    " FROM batch_ledger WHERE {} ORDER BY partition_id, commit_number LIMIT 1"
)
COLUMNS = (
    "stream_id, partition_id, commit_number, kind, first_sequence_number, last_sequence_number, written, filtered,"
    " dead_lettered, held, absent, rows_written, transform_version, invocation_id, committed_at, rows_appended"
)
OF_COMMIT = "WHERE partition_id = :partition_id AND commit_number = :c"
CHECKPOINT = "SELECT partition_id, commit_number AS c FROM event_hub_checkpoint WHERE partition_id = '1'"
LETTER = "SELECT partition_id, sequence_number AS number FROM event_hub_dead_letter WHERE {} LIMIT 1"
OF_LETTER = "WHERE partition_id = :partition_id AND sequence_number = :number"
ATTEMPT = (
    "SELECT partition_id, sequence_number AS number, attempt, commit_number AS c FROM dead_letter_attempt"
    " WHERE {} LIMIT 1"
)
OF_ATTEMPT = f"{OF_LETTER} AND attempt = :attempt"
GAP = (
    "SELECT partition_id, first_sequence_number AS number FROM sequence_gap WHERE {} ORDER BY partition_id,"
    " first_sequence_number LIMIT 1"
)
OF_GAP = "WHERE partition_id = :partition_id AND first_sequence_number = :number"
RETRACTED = (
    "SELECT partition_id, commit_number AS c, row_commit_number AS written_by, table_name, sequence_number AS number,"
    " ordinal FROM retracted_row WHERE {} LIMIT 1"
)
OF_RETRACTED = (
    "WHERE partition_id = :partition_id AND commit_number = :c AND table_name = :table_name"
    " AND sequence_number = :number AND ordinal = :ordinal"
)
PARTITION = "SELECT '1' AS partition_id"
TABLES = ("event_hub_checkpoint", "partition_anchor", "batch_ledger", "event_hub_dead_letter", "sequence_gap")
RECORDS = ("dead_letter_attempt", "retracted_row", "sensor_reading", "home_alert", "home", "replay_progress")


def delete(table: str, where: str) -> str:
    return f"DELETE FROM {table} {where}"


def update(table: str, changes: str, where: str) -> str:
    return f"UPDATE {table} SET {changes} {where}"


def everything_of(*tables: str) -> tuple[str, ...]:
    return tuple(delete(table, "WHERE partition_id = :partition_id") for table in tables)


def pair(more: str, less: str) -> tuple[str, ...]:
    return (update("batch_ledger", f"{more} = {more} + 1, {less} = {less} - 1", OF_COMMIT),)


ROWS = {
    "a row deleted": Tampering(
        "rows_missing", "commit {c} (batch)", READING.format("batch"), (delete("sensor_reading", OF_READING),)
    ),
    "a row of a replay deleted": Tampering(
        "rows_missing", "commit {c} (replay)", READING.format("replay"), (delete("sensor_reading", OF_READING),)
    ),
    "a row added": Tampering(
        "rows_added",
        "commit {c} (batch)",
        READING.format("batch"),
        (
            "INSERT INTO sensor_reading SELECT stream_id, partition_id, sequence_number, 99, commit_number, home_id,"
            f" sensor_id, kind, state, ppm, observed_at FROM sensor_reading {OF_READING}",
        ),
    ),
    "a row of no commit added": Tampering(
        "rows",
        "in sensor_reading",
        READING.format("batch"),
        (
            "INSERT INTO sensor_reading SELECT stream_id, partition_id, 100000, 0, commit_number, home_id,"
            f" sensor_id, kind, state, ppm, observed_at FROM sensor_reading {OF_READING}",
        ),
    ),
    "a number in a row changed": Tampering(
        "rows_changed",
        "commit {c} (batch)",
        READING.format("batch"),
        (update("sensor_reading", "ppm = ppm + 1", OF_READING),),
    ),
    "a number in a row of a retry changed, which a replay took away": Tampering(
        "rows_changed",
        "commit {written_by} (retry)",
        RETRACTED.format(
            "table_name = 'sensor_reading' AND row_commit_number IN (SELECT l.commit_number"
            " FROM batch_ledger AS l WHERE l.partition_id = retracted_row.partition_id AND l.kind = 'retry')"
        ),
        (update("retracted_row", "row = json_set(row, '$.ppm', 31337)", OF_RETRACTED),),
    ),
    "a number in a row of a replay changed": Tampering(
        "rows_changed",
        "commit {c} (replay)",
        READING.format("replay"),
        (update("sensor_reading", "ppm = ppm + 1", OF_READING),),
    ),
    "a text in a row emptied": Tampering(
        "rows_changed",
        "commit {c} (batch)",
        READING.format("batch"),
        (update("sensor_reading", "state = ''", OF_READING),),
    ),
    "an instant in a row moved by a microsecond": Tampering(
        "rows_changed",
        "commit {c} (batch)",
        READING.format("batch"),
        (update("sensor_reading", "observed_at = replace(observed_at, '000Z', '001Z')", OF_READING),),
    ),
    "a value of a row taken away": Tampering(
        "rows_changed",
        "commit {c} (batch)",
        READING.format("batch"),
        (update("sensor_reading", "ppm = NULL", OF_READING),),
    ),
    "a row moved to a different number of its commit": Tampering(
        "rows_changed",
        "commit {c} (batch)",
        READING.format("batch"),
        (update("sensor_reading", "ordinal = 77", OF_READING),),
    ),
    "a row moved to a different commit": Tampering(
        "rows_missing",
        "commit {c} (batch)",
        READING.format("batch"),
        (update("sensor_reading", "commit_number = commit_number + 1", OF_READING),),
    ),
    "a row moved to a different partition": Tampering(
        "rows_missing",
        "commit {c} (batch)",
        READING.format("batch"),
        (update("sensor_reading", "partition_id = '9'", OF_READING),),
    ),
    "two rows of two commits exchanged": Tampering(
        "rows_changed",
        "commit {c} (batch)",
        "SELECT a.partition_id, a.sequence_number AS number, a.commit_number AS c, a.ppm AS one, b.ppm AS other,"
        " b.sequence_number AS other_number FROM sensor_reading AS a INNER JOIN sensor_reading AS b"
        " ON b.partition_id = a.partition_id AND b.commit_number > a.commit_number AND b.ordinal = a.ordinal"
        " INNER JOIN batch_ledger AS l ON l.partition_id = a.partition_id AND l.commit_number = a.commit_number"
        " WHERE l.kind = 'batch' AND a.ordinal = 0 AND a.ppm <> b.ppm LIMIT 1",
        (
            update("sensor_reading", "ppm = :other", f"{OF_LETTER} AND ordinal = 0"),
            update(
                "sensor_reading",
                "ppm = :one",
                "WHERE partition_id = :partition_id AND sequence_number = :other_number AND ordinal = 0",
            ),
        ),
    ),
    "a retracted row deleted": Tampering(
        "rows_missing",
        "commit {written_by} (",
        RETRACTED.format("table_name = 'sensor_reading'"),
        (delete("retracted_row", OF_RETRACTED),),
    ),
    "a retracted row changed": Tampering(
        "rows_changed",
        "commit {written_by} (",
        RETRACTED.format("table_name = 'sensor_reading'"),
        (update("retracted_row", "row = json_set(row, '$.ppm', 31337)", OF_RETRACTED),),
    ),
    "a retracted state deleted": Tampering(
        "replays",
        "retracted rows exist",
        RETRACTED.format("table_name = 'home'"),
        (delete("retracted_row", OF_RETRACTED),),
    ),
    "a row written for a number whose letter is open": Tampering(
        "letters",
        "letter {number} is exhausted",
        LETTER.format("status = 'exhausted'"),
        (
            "INSERT INTO sensor_reading SELECT stream_id, partition_id, :number, 0, commit_number, home_id, sensor_id,"
            " kind, state, ppm, observed_at FROM sensor_reading WHERE partition_id = :partition_id LIMIT 1",
        ),
    ),
}

LEDGER = {
    "a written event counted as filtered": Tampering(
        "ledger_changed",
        "commit {c} (batch)",
        COMMIT.format("kind = 'batch' AND written > 0"),
        pair("filtered", "written"),
    ),
    "a filtered event counted as written": Tampering(
        "ledger_changed",
        "commit {c} (batch)",
        COMMIT.format("kind = 'batch' AND filtered > 0"),
        pair("written", "filtered"),
    ),
    "a letter too many in the ledger": Tampering(
        "letters", "commit {c} ", COMMIT.format("kind = 'batch' AND written > 0"), pair("dead_lettered", "written")
    ),
    "a letter too few in the ledger": Tampering(
        "letters",
        "commit {c} ",
        COMMIT.format("kind = 'batch' AND dead_lettered > 0"),
        pair("written", "dead_lettered"),
    ),
    "an absent number counted as filtered": Tampering(
        "absent", "commit {c} ", COMMIT.format("kind = 'batch' AND absent > 0"), pair("filtered", "absent")
    ),
    "a written event counted as absent": Tampering(
        "absent", "commit {c} ", COMMIT.format("kind = 'batch' AND written > 0"), pair("absent", "written")
    ),
    "a written event counted as held": Tampering(
        "letters", "commit {c} ", COMMIT.format("kind = 'batch' AND written > 0"), pair("held", "written")
    ),
    "the counts of a retry changed": Tampering(
        "ledger_changed", "commit {c} (retry)", COMMIT.format("kind = 'retry'"), pair("filtered", "written")
    ),
    "the counts of a replay changed": Tampering(
        "ledger_changed",
        "commit {c} (replay)",
        COMMIT.format("kind = 'replay' AND written > 0"),
        pair("filtered", "written"),
    ),
    "the time of a commit changed": Tampering(
        "ledger_changed",
        "commit {c} (batch)",
        COMMIT.format("kind = 'batch'"),
        (update("batch_ledger", "committed_at = '2026-01-01T00:00:00.000000Z'", OF_COMMIT),),
    ),
    "the version of a commit changed": Tampering(
        "ledger_changed",
        "commit {c} (batch)",
        COMMIT.format("kind = 'batch'"),
        (update("batch_ledger", "transform_version = 'other/1'", OF_COMMIT),),
    ),
    "the first range deleted": Tampering(
        "commits", "commit {c}", COMMIT.format("kind = 'batch'"), (delete("batch_ledger", OF_COMMIT),)
    ),
    "a range in the middle deleted": Tampering(
        "hole", "", COMMIT.format("kind = 'batch' AND commit_number = 4"), (delete("batch_ledger", OF_COMMIT),)
    ),
    "the last range deleted": Tampering(
        "short",
        "",
        "SELECT partition_id, MAX(commit_number) AS c FROM batch_ledger WHERE kind = 'batch' AND partition_id = '1'",
        (delete("batch_ledger", OF_COMMIT),),
    ),
    "a retry deleted from the ledger": Tampering(
        "commits", "no row for commit {c}", COMMIT.format("kind = 'retry'"), (delete("batch_ledger", OF_COMMIT),)
    ),
    "the newest commit deleted, which is a replay": Tampering(
        "commits",
        "no row for commit {c}",
        "SELECT partition_id, MAX(commit_number) AS c FROM batch_ledger WHERE partition_id = '1'",
        (delete("batch_ledger", OF_COMMIT),),
    ),
    "a range twice": Tampering(
        "overlap",
        "",
        COMMIT.format("kind = 'batch' AND written > 2"),
        (
            f"INSERT INTO batch_ledger ({COLUMNS}) SELECT stream_id, partition_id, 100000, kind,"
            " first_sequence_number + 1, last_sequence_number, 0, last_sequence_number - first_sequence_number, 0, 0,"
            f" 0, 0, transform_version, invocation_id, committed_at, 0 FROM batch_ledger {OF_COMMIT}",
        ),
    ),
    "a replay twice": Tampering(
        "commits",
        "commit 100000",
        COMMIT.format("kind = 'replay'"),
        (
            f"INSERT INTO batch_ledger ({COLUMNS}) SELECT stream_id, partition_id, 100000, kind, first_sequence_number,"
            " last_sequence_number, 0, 0, 0, 0, 0, 0, transform_version, invocation_id, committed_at, 0"
            f" FROM batch_ledger {OF_COMMIT}",
        ),
    ),
    "a range widened": Tampering(
        "overlap",
        "",
        COMMIT.format("kind = 'batch' AND commit_number = 4"),
        (
            update(
                "batch_ledger", "last_sequence_number = last_sequence_number + 1, filtered = filtered + 1", OF_COMMIT
            ),
        ),
    ),
    "the last range widened": Tampering(
        "beyond",
        "",
        "SELECT partition_id, MAX(commit_number) AS c FROM batch_ledger WHERE kind = 'batch' AND partition_id = '1'",
        (
            update(
                "batch_ledger", "last_sequence_number = last_sequence_number + 1, filtered = filtered + 1", OF_COMMIT
            ),
        ),
    ),
    "the range of a retry widened": Tampering(
        "ledger_changed",
        "commit {c} (retry)",
        COMMIT.format("kind = 'retry'"),
        (update("batch_ledger", "first_sequence_number = first_sequence_number - 1", OF_COMMIT),),
    ),
    "a commit number skipped": Tampering(
        "commits",
        "commit {c}",
        COMMIT.format("kind = 'retry'"),
        (update("batch_ledger", "commit_number = 100000", OF_COMMIT),),
    ),
    "two outcomes of a remembered sum exchanged": Tampering(
        "remembered_sum",
        "up to commit 1",
        COMMIT.format("kind = 'batch' AND commit_number = 1 AND written > 0"),
        (
            "INSERT INTO ledger_sum SELECT stream_id, partition_id, 1, first_sequence_number, last_sequence_number, 1,"
            f" 0, written - 1, filtered + 1, dead_lettered, held, absent FROM batch_ledger {OF_COMMIT}",
        ),
    ),
    "a remembered sum raised": Tampering(
        "remembered_sum",
        "up to commit 1",
        "SELECT partition_id, 1 AS c FROM batch_ledger WHERE commit_number = 1 AND kind = 'batch' LIMIT 1",
        (
            "INSERT INTO ledger_sum SELECT stream_id, partition_id, 1, first_sequence_number, last_sequence_number, 1,"
            f" 0, written + 1, filtered, dead_lettered, held, absent FROM batch_ledger {OF_COMMIT}",
        ),
    ),
}

PARTITIONS = {
    "a checkpoint deleted": Tampering("checkpoint", "no checkpoint", CHECKPOINT, everything_of("event_hub_checkpoint")),
    "a checkpoint moved on": Tampering(
        "short",
        "",
        CHECKPOINT,
        (update("event_hub_checkpoint", "sequence_number = sequence_number + 3", "WHERE partition_id = '1'"),),
    ),
    "a checkpoint moved back": Tampering(
        "beyond",
        "",
        CHECKPOINT,
        (update("event_hub_checkpoint", "sequence_number = sequence_number - 3", "WHERE partition_id = '1'"),),
    ),
    "the commits of a checkpoint counted up": Tampering(
        "commits",
        "",
        CHECKPOINT,
        (update("event_hub_checkpoint", "commit_number = commit_number + 1", "WHERE partition_id = '1'"),),
    ),
    "the commits of a checkpoint counted down": Tampering(
        "commits",
        "commit {c}",
        CHECKPOINT,
        (update("event_hub_checkpoint", "commit_number = commit_number - 1", "WHERE partition_id = '1'"),),
    ),
    "an anchor deleted": Tampering("anchor", "no anchor", CHECKPOINT, everything_of("partition_anchor")),
    "an anchor moved on": Tampering(
        "beyond", "", CHECKPOINT, (update("partition_anchor", "sequence_number = 2", "WHERE partition_id = '1'"),)
    ),
    "the ledger of a partition deleted": Tampering("short", "", CHECKPOINT, everything_of("batch_ledger")),
    "the books of a partition deleted": Tampering("partition", "", PARTITION, everything_of(*TABLES)),
    "a whole partition deleted": Tampering("partition", "the hub", PARTITION, everything_of(*TABLES, *RECORDS)),
    "the incarnation of a stream raised": Tampering(
        "stream", "incarnation", "SELECT '' AS partition_id", (update("event_stream", "incarnation = 2", ""),)
    ),
    "the name of a stream changed": Tampering(
        "partition", "the hub", PARTITION, (update("event_stream", "consumer_group = 'other'", ""),)
    ),
}

LETTERS = {
    "a letter deleted": Tampering(
        "letters", "", LETTER.format("replay_commit_number IS NULL"), (delete("event_hub_dead_letter", OF_LETTER),)
    ),
    "a letter of a replay deleted": Tampering(
        "replay_letters",
        "",
        LETTER.format("replay_commit_number IS NOT NULL"),
        (delete("event_hub_dead_letter", OF_LETTER),),
    ),
    "a letter moved to a different number": Tampering(
        "letters",
        "letter {next} is",
        "SELECT d.partition_id, d.sequence_number AS old, r.sequence_number AS next FROM event_hub_dead_letter AS d"
        " INNER JOIN batch_ledger AS l ON l.partition_id = d.partition_id AND l.kind = 'batch'"
        " AND d.sequence_number BETWEEN l.first_sequence_number AND l.last_sequence_number"
        " INNER JOIN sensor_reading AS r ON r.partition_id = d.partition_id AND r.ordinal = 0"
        " AND r.sequence_number BETWEEN l.first_sequence_number AND l.last_sequence_number"
        " WHERE d.status = 'exhausted' AND NOT EXISTS (SELECT 1 FROM event_hub_dead_letter AS o"
        " WHERE o.partition_id = r.partition_id AND o.sequence_number = r.sequence_number) LIMIT 1",
        (update("event_hub_dead_letter", "sequence_number = :next", OF_LETTER.replace(":number", ":old")),),
    ),
    "a letter resolved without an attempt": Tampering(
        "attempts",
        "letter {number} is resolved",
        LETTER.format("status = 'exhausted'"),
        (update("event_hub_dead_letter", "status = 'resolved'", OF_LETTER),),
    ),
    "a resolved letter opened again": Tampering(
        "attempts",
        "letter {number} is waiting",
        LETTER.format("status = 'resolved'"),
        (update("event_hub_dead_letter", "status = 'waiting'", OF_LETTER),),
    ),
    "a letter discarded without an attempt": Tampering(
        "attempts",
        "letter {number} is discarded",
        LETTER.format("status = 'exhausted'"),
        (update("event_hub_dead_letter", "status = 'discarded'", OF_LETTER),),
    ),
    "a letter held that no commit held": Tampering(
        "held",
        "",
        LETTER.format("status = 'exhausted'"),
        (update("event_hub_dead_letter", "status = 'held'", OF_LETTER),),
    ),
    "the attempt that resolved a letter deleted": Tampering(
        "attempts",
        "letter {number}",
        ATTEMPT.format("status = 'resolved' AND kind = 'retry'"),
        (delete("dead_letter_attempt", OF_ATTEMPT),),
    ),
    "the first attempt of a letter deleted": Tampering(
        "attempts",
        "letter {number}",
        "SELECT partition_id, sequence_number AS number, 1 AS attempt FROM dead_letter_attempt"
        " WHERE attempt = 2 LIMIT 1",
        (delete("dead_letter_attempt", OF_ATTEMPT),),
    ),
    "an attempt of a retry moved to a different commit": Tampering(
        "attempts",
        "commit {c} (retry)",
        ATTEMPT.format("kind = 'retry'"),
        (update("dead_letter_attempt", "commit_number = 100000", OF_ATTEMPT),),
    ),
    "the outcome of an attempt changed": Tampering(
        "attempts",
        "letter {number}",
        ATTEMPT.format("status = 'resolved' AND kind = 'retry'"),
        (update("dead_letter_attempt", "status = 'waiting'", OF_ATTEMPT),),
    ),
    "the body of a letter changed": Tampering(
        "letter_changed",
        "letter {number} has a different body",
        LETTER.format("body = CAST('poison' AS BLOB) AND sequence_number > 60 AND partition_id = '0'"),
        (update("event_hub_dead_letter", "body = CAST('poisoN' AS BLOB)", OF_LETTER),),
    ),
    "the time of a letter's event changed": Tampering(
        "letter_changed",
        "letter {number} has a different enqueued time",
        LETTER.format("sequence_number > 65 AND partition_id = '0'"),
        (update("event_hub_dead_letter", "enqueued_at = '2026-01-01T00:00:00.000000Z'", OF_LETTER),),
    ),
    "the properties of a letter's event changed": Tampering(
        "letter_changed",
        "letter {number} has different properties",
        LETTER.format("sequence_number > 65 AND partition_id = '0'"),
        (update("event_hub_dead_letter", "properties = '{\"a\": 1}'", OF_LETTER),),
    ),
    "the key of a letter's event changed": Tampering(
        "letter_changed",
        "letter {number} has a different partition key",
        LETTER.format("sequence_number > 65 AND partition_id = '0'"),
        (update("event_hub_dead_letter", "partition_key = 'other'", OF_LETTER),),
    ),
}

GAPS = {
    "a gap with absent numbers deleted": Tampering(
        "absent", "", GAP.format("status = 'absent'"), (delete("sequence_gap", OF_GAP),)
    ),
    "an absent gap called healed": Tampering(
        "absent", "", GAP.format("status = 'absent'"), (update("sequence_gap", "status = 'healed'", OF_GAP),)
    ),
    "a healed gap called absent": Tampering(
        "absent", "", GAP.format("status = 'healed'"), (update("sequence_gap", "status = 'absent'", OF_GAP),)
    ),
    "an absent gap widened": Tampering(
        "absent",
        "",
        GAP.format("status = 'absent' AND first_sequence_number > 60"),
        (update("sequence_gap", "last_sequence_number = last_sequence_number + 2", OF_GAP),),
    ),
    "an absent gap added": Tampering(
        "absent",
        "",
        "SELECT '1' AS partition_id, 3 AS number",
        ("INSERT INTO sequence_gap SELECT stream_id, '1', 3, 4, found_at, 'absent', 1 FROM sequence_gap LIMIT 1",),
    ),
    "the gaps of a partition deleted": Tampering("absent", "", CHECKPOINT, everything_of("sequence_gap")),
    "the counts of a replay's job changed": Tampering(
        "replays",
        "",
        "SELECT p.partition_id FROM replay_progress AS p INNER JOIN replay_job AS j ON j.job_id = p.job_id"
        " WHERE j.is_dry_run = 0 AND p.written > 0 AND p.partition_id = '1' LIMIT 1",
        (
            update(
                "replay_progress",
                "rows_written = rows_written + 1",
                "WHERE partition_id = :partition_id AND written > 0",
            ),
        ),
    ),
}


def recreate(hub: MemoryHub, target: Target) -> None:
    id = str(target["partition_id"])
    hub.recreate(id)
    hub.publish(id, [event(0)])


def publish(hub: MemoryHub, target: Target) -> None:
    hub.recreate(str(target["partition_id"]))
    hub.publish(str(target["partition_id"]), [event(0), event(1)])


def change(hub: MemoryHub, target: Target) -> None:
    held, number = hub.held[str(target["partition_id"])], SequenceNumber(int(str(target["number"])))
    held[number] = replace(held[number], body=b"changed")


def restore(hub: MemoryHub, target: Target) -> None:
    held, number = hub.held[str(target["partition_id"])], SequenceNumber(int(str(target["number"])))
    held[number] = event(number)


HUB = {
    "the hub recreated with fewer events": Tampering("hub", "the hub ends at", PARTITION, hub=recreate),
    "the hub given events of a partition without books": Tampering(
        "partition", "the hub", "SELECT '7' AS partition_id", hub=publish
    ),
    "the event of a letter changed in the hub": Tampering(
        "letter_changed",
        "letter {number} has a different body",
        LETTER.format("sequence_number > 65 AND partition_id = '0'"),
        hub=change,
    ),
    "an absent number found in the hub": Tampering(
        "hub", "recorded as absent", GAP.format("status = 'absent' AND first_sequence_number > 70"), hub=restore
    ),
}


TAMPERINGS = ROWS | LEDGER | PARTITIONS | LETTERS | GAPS | HUB
