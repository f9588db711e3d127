"""The table of tamperings: changes by hand to a finished store, and the faults to be named."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tampering:
    """A change by hand, and the kinds of all faults that the audit then has; the first fault has `words` in its detail.

    `pick` finds the place; the words have its values in braces.
    """

    kinds: str
    words: str
    pick: str
    statements: tuple[str, ...] = ()


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
    " dead_lettered, held, absent, rows_written, transform_version, invocation_id, committed_at, rows_appended,"
    " total_commits, total_written, total_filtered, total_dead_lettered, total_held,"
    " total_absent"
)
BATCH_4 = COMMIT.format("kind = 'batch' AND commit_number = 4")
RETRY = COMMIT.format("kind = 'retry'")
REPLAY = COMMIT.format("kind = 'replay'")
BATCH = COMMIT.format("kind = 'batch'")
OF_COMMIT = "WHERE partition_id = :partition_id AND commit_number = :c"
NEWEST = "SELECT partition_id, MAX(commit_number) AS c FROM batch_ledger WHERE partition_id = '1'"
NEWEST_BATCH = f"{NEWEST} AND kind = 'batch'"
CHECKPOINT = "SELECT partition_id, commit_number AS c FROM event_hub_checkpoint WHERE partition_id = '1'"
LETTER = "SELECT partition_id, sequence_number AS number FROM event_hub_dead_letter WHERE {} LIMIT 1"
OF_LETTER = "WHERE partition_id = :partition_id AND sequence_number = :number"
EXHAUSTED = LETTER.format("status = 'exhausted'")
ATTEMPT = (
    "SELECT partition_id, sequence_number AS number, attempt, commit_number AS c FROM dead_letter_attempt"
    " WHERE {} LIMIT 1"
)
OF_ATTEMPT = f"{OF_LETTER} AND attempt = :attempt"
RESOLVING = ATTEMPT.format("status = 'resolved' AND kind = 'retry'")
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
RECORDS = ("dead_letter_attempt", "retracted_row", "sensor_reading", "home_alert", "home")
WIDER = "last_sequence_number = last_sequence_number + 1, filtered = filtered + 1"


def delete(table: str, where: str) -> str:
    return f"DELETE FROM {table} {where}"


def update(table: str, changes: str, where: str) -> str:
    return f"UPDATE {table} SET {changes} {where}"


def everything_of(*tables: str) -> tuple[str, ...]:
    return tuple(delete(table, "WHERE partition_id = :partition_id") for table in tables)


def copied_row(number: str, ordinal: int, where: str = OF_READING) -> str:
    return (
        f"INSERT INTO sensor_reading SELECT stream_id, partition_id, {number}, {ordinal}, commit_number, home_id,"
        f" sensor_id, kind, state, ppm, observed_at FROM sensor_reading {where}"
    )


def copied_commit(values: str) -> str:
    return (
        f"INSERT INTO batch_ledger ({COLUMNS}) SELECT stream_id, partition_id, 100000, kind, {values},"
        f" transform_version, invocation_id, committed_at, 0, total_commits, total_written, total_filtered,"
        f" total_dead_lettered, total_held, total_absent FROM batch_ledger {OF_COMMIT}"
    )


def row(kinds: str, *statements: str, of: str = "batch") -> Tampering:
    """The first row of a commit of a kind."""
    return Tampering(kinds, f"commit {{c}} ({of})", READING.format(of), statements)


def changed_row(changes: str, kinds: str) -> Tampering:
    return row(kinds, update("sensor_reading", changes, OF_READING))


def retracted(kinds: str, words: str, which: str, changes: str | None = None) -> Tampering:
    """A copy of a row that a replay took away: deleted, or changed."""
    done = update("retracted_row", changes, OF_RETRACTED) if changes else delete("retracted_row", OF_RETRACTED)
    return Tampering(kinds, words, RETRACTED.format(which), (done,))


def counted(more: str, less: str, kinds: str = "", of: str = "batch") -> Tampering:
    """One event of a commit, counted with a different outcome."""
    kinds = f"{kinds} totals totals" if of == "batch" else kinds  # its own totals, and those of the checkpoint
    changes = f"{more} = {more} + 1, {less} = {less} - 1"
    pick = COMMIT.format(f"kind = '{of}' AND {less} > 0")
    return Tampering(
        kinds, "" if of == "replay" else "commit {c} ", pick, (update("batch_ledger", changes, OF_COMMIT),)
    )


def commit(kinds: str, words: str, pick: str, changes: str | None = None) -> Tampering:
    """A row of the ledger: deleted, or changed."""
    done = update("batch_ledger", changes, OF_COMMIT) if changes else delete("batch_ledger", OF_COMMIT)
    return Tampering(kinds, words, pick, (done,))


def checkpoint(kinds: str, words: str, changes: str, table: str = "event_hub_checkpoint") -> Tampering:
    return Tampering(kinds, words, CHECKPOINT, (update(table, changes, "WHERE partition_id = '1'"),))


def letter(kinds: str, words: str, pick: str, changes: str | None = None) -> Tampering:
    """A letter: deleted, or changed."""
    table = "event_hub_dead_letter"
    done = update(table, changes, OF_LETTER) if changes else delete(table, OF_LETTER)
    return Tampering(kinds, words, pick, (done,))


def attempt(kinds: str, words: str, pick: str, changes: str | None = None) -> Tampering:
    """An attempt of a letter: deleted, or changed."""
    table = "dead_letter_attempt"
    done = update(table, changes, OF_ATTEMPT) if changes else delete(table, OF_ATTEMPT)
    return Tampering(kinds, words, pick, (done,))


def gap(which: str, changes: str | None = None, kinds: str = "absent") -> Tampering:
    """A gap: deleted, or changed."""
    done = update("sequence_gap", changes, OF_GAP) if changes else delete("sequence_gap", OF_GAP)
    return Tampering(kinds, "", GAP.format(which), (done,))


ROWS = {
    "a row deleted": row("rows_missing", delete("sensor_reading", OF_READING)),
    "a row of a replay deleted": row("rows_missing", delete("sensor_reading", OF_READING), of="replay"),
    "a row added": row("rows_added", copied_row("sequence_number", 99)),
    "a row of no commit added": Tampering(
        "rows rows_added", "in sensor_reading", READING.format("batch"), (copied_row("100000", 0),)
    ),
    "a row moved to a different commit": changed_row(
        "commit_number = commit_number + 1", "rows_missing rows rows_added"
    ),
    "a row moved to a different partition": changed_row("partition_id = '9'", "rows_missing partition"),
    "a retracted row deleted": retracted(
        "rows_missing replays", "commit {written_by} (", "table_name = 'sensor_reading'"
    ),
    "a retracted state deleted": retracted("replays", "retracted rows exist", "table_name = 'home'"),
    "a row written for a number whose letter is open": Tampering(
        "letters rows_added",
        "letter {number} is exhausted",
        EXHAUSTED,
        (copied_row(":number", 0, "WHERE partition_id = :partition_id LIMIT 1"),),
    ),
}

LEDGER = {
    "a written event counted as filtered": counted("filtered", "written"),
    "a filtered event counted as written": counted("written", "filtered"),
    "a letter too many in the ledger": counted("dead_lettered", "written", "letters"),
    "a letter too few in the ledger": counted("written", "dead_lettered", "letters"),
    "an absent number counted as filtered": counted("filtered", "absent", "absent"),
    "a written event counted as absent": counted("absent", "written", "absent"),
    "a written event counted as held": counted("held", "written", "letters"),
    "the counts of a replay changed": counted("filtered", "written", "replays", "replay"),
    "a batch called a retry": commit("hole totals totals attempts", "", BATCH_4, "kind = 'retry'"),
    "the job of a replay's commit changed": commit("replays", "", REPLAY, "invocation_id = 'none'"),
    "the rows that a commit appended counted up": commit(
        "rows_missing", "commit {c} (batch)", BATCH, "rows_appended = rows_appended + 1"
    ),
    "the first range deleted": commit("commits hole letters_outside rows totals", "commit {c}", BATCH),
    "a range in the middle deleted": commit("hole commits totals", "", BATCH_4),
    "the last range deleted": commit("short commits letters_outside totals", "", NEWEST_BATCH),
    "a retry deleted from the ledger": commit("commits", "no row for commit {c}", RETRY),
    "the newest commit deleted, which is a replay": commit(
        "commits replays rows rows", "no row for commit {c}", NEWEST
    ),
    "a range twice": Tampering(
        "overlap commits commits",
        "",
        COMMIT.format("kind = 'batch' AND written > 2"),
        (
            copied_commit(
                "first_sequence_number + 1, last_sequence_number, 0, last_sequence_number - first_sequence_number, 0,"
                " 0, 0, 0"
            ),
        ),
    ),
    "a replay twice": Tampering(
        "commits commits",
        "commit 100000",
        REPLAY,
        (copied_commit("first_sequence_number, last_sequence_number, 0, 0, 0, 0, 0, 0"),),
    ),
    "a range widened": commit("overlap totals totals", "", BATCH_4, WIDER),
    "the last range widened": commit("beyond totals totals", "", NEWEST_BATCH, WIDER),
    "a commit number skipped": commit(
        "commits commits commits attempts rows_missing", "commit {c}", RETRY, "commit_number = 100000"
    ),
}

OF_TOTALS = "the checkpoint counts"
OLDER = (
    "SELECT l.partition_id, l.commit_number AS c, l.last_sequence_number AS last, l.total_commits AS commits,"
    " l.total_written AS written, l.total_filtered AS filtered, l.total_dead_lettered AS dead_lettered,"
    " l.total_held AS held, l.total_absent AS absent FROM batch_ledger AS l"
    " WHERE l.partition_id = '1' AND l.kind = 'batch' AND l.commit_number > 2 ORDER BY l.commit_number LIMIT 1"
)
OUTCOMES = ("written", "filtered", "dead_lettered", "held", "absent")
TOTALS = {
    "a total of a checkpoint raised": checkpoint("totals", OF_TOTALS, "written = written + 1"),
    "a range too many in the totals of a checkpoint": checkpoint("totals", OF_TOTALS, "commits = commits + 1"),
    "two totals of a checkpoint exchanged": checkpoint(
        "totals", OF_TOTALS, "written = written - 1, filtered = filtered + 1"
    ),
    "the beginning of the totals of a checkpoint moved": checkpoint(
        "totals", OF_TOTALS, "first_sequence_number = first_sequence_number + 1"
    ),
    "a letter too many in the totals of a checkpoint": checkpoint("totals", OF_TOTALS, "letters = letters + 1"),
    "the totals of a commit raised": commit(
        "totals totals", "the totals of commit {c} ", BATCH_4, "total_written = total_written + 1"
    ),
    "the totals of a retry raised": commit(
        "totals totals", "the totals of commit {c} ", RETRY, "total_held = total_held + 1"
    ),
    **{
        f"the {total} events in the totals of a commit raised": commit(
            "totals totals", "the totals of commit {c} ", BATCH_4, f"total_{total} = total_{total} + 1"
        )
        for total in ("filtered", "dead_lettered", "absent")
    },
    "the totals of the newest commit raised": commit(
        "totals", "the totals of commit {c} ", NEWEST, "total_commits = total_commits + 1"
    ),
    "the totals of a checkpoint and of all its commits raised": Tampering(
        "totals totals",
        OF_TOTALS,
        CHECKPOINT,
        (
            update("batch_ledger", "total_written = total_written + 1", "WHERE partition_id = :partition_id"),
            update("event_hub_checkpoint", "written = written + 1", "WHERE partition_id = :partition_id"),
        ),
    ),
    "a checkpoint replaced by an older copy of itself": Tampering(
        "beyond commits",
        "after the checkpoint at {last}",
        OLDER,
        (
            update(
                "event_hub_checkpoint",
                "sequence_number = :last, commit_number = :c, commits = :commits,"
                " letters = letters - dead_lettered - held + :dead_lettered + :held, "
                + ", ".join(f"{name} = :{name}" for name in OUTCOMES),
                "WHERE partition_id = :partition_id",
            ),
        ),
    ),
    "the last range deleted together with its totals": Tampering(
        "short commits letters_outside",
        "before the checkpoint",
        NEWEST_BATCH,
        (
            update(
                "event_hub_checkpoint",
                "commits = commits - 1, letters = letters - (SELECT l.dead_lettered + l.held FROM batch_ledger AS l"
                " WHERE l.partition_id = :partition_id AND l.commit_number = :c), "
                + ", ".join(
                    f"{name} = {name} - (SELECT l.{name} FROM batch_ledger AS l"
                    " WHERE l.partition_id = :partition_id AND l.commit_number = :c)"
                    for name in OUTCOMES
                ),
                "WHERE partition_id = :partition_id",
            ),
            delete("batch_ledger", OF_COMMIT),
        ),
    ),
}

PARTITIONS = {
    "a checkpoint deleted": Tampering("checkpoint", "no checkpoint", CHECKPOINT, everything_of("event_hub_checkpoint")),
    "a checkpoint moved on": checkpoint("short", "", "sequence_number = sequence_number + 3"),
    "a checkpoint moved back": checkpoint("beyond", "", "sequence_number = sequence_number - 3"),
    "the commits of a checkpoint counted up": checkpoint("commits", "", "commit_number = commit_number + 1"),
    "the commits of a checkpoint counted down": checkpoint(
        "commits", "commit {c}", "commit_number = commit_number - 1"
    ),
    "a checkpoint purged up to a commit that the ledger has": checkpoint(
        "purged", "but it has commit 1", "purged_commit = 1, purged_to = 2"
    ),
    "the number up to which a checkpoint is purged raised": checkpoint("overlap", "", "purged_to = purged_to + 1"),
    "the purged letters of a checkpoint counted up": checkpoint(
        "letters_outside", "", "purged_letters = purged_letters + 1"
    ),
    "the purged letters of replays counted up": checkpoint(
        "replay_letters", "", "purged_replay_letters = purged_replay_letters + 1"
    ),
    "an anchor deleted": Tampering("anchor", "no anchor", CHECKPOINT, everything_of("partition_anchor")),
    "an anchor moved on": checkpoint("beyond", "", "sequence_number = 2", "partition_anchor"),
    "the ledger of a partition deleted": Tampering(
        "short commits letters_outside absent absent replays replays rows rows rows totals",
        "",
        CHECKPOINT,
        everything_of("batch_ledger"),
    ),
    "the books of a partition deleted": Tampering("partition", "", PARTITION, everything_of(*TABLES)),
    "the incarnation of a stream raised": Tampering(
        "stream", "incarnation", "SELECT '' AS partition_id", (update("event_stream", "incarnation = 2", ""),)
    ),
}

LETTERS = {
    "a letter deleted": letter("letters", "", LETTER.format("replay_commit_number IS NULL")),
    "a letter of a replay deleted": letter("replay_letters", "", LETTER.format("replay_commit_number IS NOT NULL")),
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
    "a letter resolved without an attempt": letter(
        "attempts", "letter {number} is resolved", EXHAUSTED, "status = 'resolved'"
    ),
    "a resolved letter opened again": letter(
        "attempts letters", "letter {number} is waiting", LETTER.format("status = 'resolved'"), "status = 'waiting'"
    ),
    "a letter discarded without an attempt": letter(
        "attempts", "letter {number} is discarded", EXHAUSTED, "status = 'discarded'"
    ),
    "a letter held that no commit held": letter("held", "", EXHAUSTED, "status = 'held'"),
    "the attempt that resolved a letter deleted": attempt("attempts attempts", "letter {number}", RESOLVING),
    "the first attempt of a letter deleted": attempt(
        "attempts",
        "letter {number}",
        "SELECT partition_id, sequence_number AS number, 1 AS attempt FROM dead_letter_attempt"
        " WHERE attempt = 2 LIMIT 1",
    ),
    "an attempt of a retry moved to a different commit": attempt(
        "attempts", "commit {c} (retry)", ATTEMPT.format("kind = 'retry'"), "commit_number = 100000"
    ),
    "the outcome of an attempt changed": attempt(
        "attempts attempts", "letter {number}", RESOLVING, "status = 'waiting'"
    ),
}

GAPS = {
    "a gap with absent numbers deleted": gap("status = 'absent'"),
    "an absent gap called healed": gap("status = 'absent'", "status = 'healed'"),
    "a healed gap called absent": gap("status = 'healed'", "status = 'absent'"),
    "an absent gap widened": gap(
        "status = 'absent' AND first_sequence_number > 60", "last_sequence_number = last_sequence_number + 2"
    ),
    "an absent gap added": Tampering(
        "absent",
        "",
        "SELECT '1' AS partition_id, 3 AS number",
        ("INSERT INTO sequence_gap SELECT stream_id, '1', 3, 4, found_at, 'absent', 1 FROM sequence_gap LIMIT 1",),
    ),
    "the gaps of a partition deleted": Tampering("absent", "", CHECKPOINT, everything_of("sequence_gap")),
    "the counts of a replay's job changed": Tampering(
        "replays replays",
        "",
        "SELECT p.part AS partition_id FROM task_part AS p INNER JOIN task AS t ON t.task_id = p.task_id"
        " WHERE t.kind = 'replay' AND t.is_dry_run = 0 AND p.report ->> 'written' > 0 AND p.part = '1' LIMIT 1",
        (
            update(
                "task_part",
                "report = json_set(report, '$.rows_written', report ->> 'rows_written' + 1)",
                "WHERE part = :partition_id AND report ->> 'written' > 0",
            ),
        ),
    ),
}


TAMPERINGS = ROWS | LEDGER | TOTALS | PARTITIONS | LETTERS | GAPS
