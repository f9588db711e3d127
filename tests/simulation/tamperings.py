"""Changes by hand to a finished store: those that an audit names, with its faults, and those that docs/api.md lists."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tampering:
    """A change by hand, and the kinds of all faults that the audit then has. The first fault has `words` in its detail.

    `pick` finds the place. The words have its values in braces.
    """

    kinds: str
    words: str
    pick: str
    statements: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table, how one row of it is picked by a condition, and where that row is."""

    name: str
    pick: str
    where: str

    def by_hand(self, which: str, changes: str, kinds: str, words: str = "") -> Tampering:
        """Change the first row for which a condition holds, or delete it when there are no changes."""
        pick = which if which.startswith("SELECT") else self.pick.format(which)
        return Tampering(kinds, words, pick, (update(self.name, changes, self.where) if changes else self.deleted,))

    @property
    def deleted(self) -> str:
        return f"DELETE FROM {self.name} {self.where}"


def update(table: str, changes: str, where: str = "") -> str:
    return f"UPDATE {table} SET {changes} {where}"


def everything_of(*tables: str) -> tuple[str, ...]:
    return tuple(f"DELETE FROM {table} WHERE partition_id = :partition_id" for table in tables)


OF_NUMBER = "WHERE partition_id = :partition_id AND sequence_number = :number"
READING = Table(
    "sensor_reading",
    "SELECT r.partition_id, r.sequence_number AS number, r.commit_number AS c, r.ordinal FROM sensor_reading AS r"
    " INNER JOIN batch_ledger AS l ON l.partition_id = r.partition_id AND l.commit_number = r.commit_number"
    " WHERE l.kind = '{}' ORDER BY r.partition_id, r.sequence_number LIMIT 1",
    f"{OF_NUMBER} AND ordinal = :ordinal",
)
COMMIT = Table(
    "batch_ledger",
    "SELECT partition_id, commit_number AS c, first_sequence_number AS first, last_sequence_number AS last"
    " FROM batch_ledger WHERE {} ORDER BY partition_id, commit_number LIMIT 1",
    "WHERE partition_id = :partition_id AND commit_number = :c",
)
CHECKPOINT = Table(
    "event_hub_checkpoint",
    "SELECT partition_id, commit_number AS c FROM event_hub_checkpoint WHERE partition_id = '{}'",
    "WHERE partition_id = :partition_id",
)
LETTER = Table(
    "event_hub_dead_letter",
    "SELECT partition_id, sequence_number AS number FROM event_hub_dead_letter WHERE {} LIMIT 1",
    OF_NUMBER,
)
ATTEMPT = Table(
    "dead_letter_attempt",
    "SELECT partition_id, sequence_number AS number, attempt, commit_number AS c FROM dead_letter_attempt"
    " WHERE {} LIMIT 1",
    f"{OF_NUMBER} AND attempt = :attempt",
)
GAP = Table(
    "sequence_gap",
    "SELECT partition_id, first_sequence_number AS number FROM sequence_gap WHERE {} ORDER BY partition_id,"
    " first_sequence_number LIMIT 1",
    "WHERE partition_id = :partition_id AND first_sequence_number = :number",
)
RETRACTED = Table(
    "retracted_row",
    "SELECT partition_id, commit_number AS c, row_commit_number AS written_by, table_name, sequence_number AS number,"
    " ordinal FROM retracted_row WHERE {} LIMIT 1",
    f"{OF_NUMBER} AND commit_number = :c AND table_name = :table_name AND ordinal = :ordinal",
)
PARTITION = "SELECT '1' AS partition_id"
BATCH, BATCH_4, RETRY, REPLAY = "kind = 'batch'", "kind = 'batch' AND commit_number = 4", "kind = 'retry'", "'replay'"
NEWEST = "SELECT partition_id, MAX(commit_number) AS c FROM batch_ledger WHERE partition_id = '1'"
NEWEST_BATCH = f"{NEWEST} AND kind = 'batch'"
EXHAUSTED, RESOLVED = "status = 'exhausted'", "status = 'resolved'"
RESOLVING = f"{RESOLVED} AND {RETRY}"
TABLES = ("event_hub_checkpoint", "partition_anchor", "batch_ledger", "event_hub_dead_letter", "sequence_gap")
RECORDS = ("dead_letter_attempt", "retracted_row", "sensor_reading", "home_alert", "home")
WIDER = "last_sequence_number = last_sequence_number + 1, filtered = filtered + 1"
OUTCOMES = ("written", "filtered", "dead_lettered", "held", "absent")
OF_BATCH, OF_TOTALS = "commit {c} (batch)", "the checkpoint counts"
OLDER = (
    "SELECT l.partition_id, l.commit_number AS c, l.last_sequence_number AS last, l.total_commits AS commits, "
    + ", ".join(f"l.total_{one} AS {one}" for one in OUTCOMES)
    + " FROM batch_ledger AS l WHERE l.partition_id = '1' AND l.kind = 'batch' AND l.commit_number > 2"
    " ORDER BY l.commit_number LIMIT 1"
)
MOVED = (
    "SELECT d.partition_id, d.sequence_number AS old, r.sequence_number AS next FROM event_hub_dead_letter AS d"
    " INNER JOIN batch_ledger AS l ON l.partition_id = d.partition_id AND l.kind = 'batch'"
    " AND d.sequence_number BETWEEN l.first_sequence_number AND l.last_sequence_number"
    " INNER JOIN sensor_reading AS r ON r.partition_id = d.partition_id AND r.ordinal = 0"
    " AND r.sequence_number BETWEEN l.first_sequence_number AND l.last_sequence_number"
    " WHERE d.status = 'exhausted' AND NOT EXISTS (SELECT 1 FROM event_hub_dead_letter AS o"
    " WHERE o.partition_id = r.partition_id AND o.sequence_number = r.sequence_number) LIMIT 1"
)
COUNTING = (
    "SELECT p.part AS partition_id FROM task_part AS p INNER JOIN task AS t ON t.task_id = p.task_id"
    " WHERE t.kind = 'replay' AND t.is_dry_run = 0 AND p.report ->> 'written' > 0 AND p.part = '1' LIMIT 1"
)
COLUMNS = (
    "stream_id, partition_id, commit_number, kind, first_sequence_number, last_sequence_number, written, filtered,"
    " dead_lettered, held, absent, rows_written, transform_version, invocation_id, committed_at, rows_appended,"
    " total_commits, total_written, total_filtered, total_dead_lettered, total_held, total_absent"
)
TWICE = (
    f"INSERT INTO batch_ledger ({COLUMNS}) SELECT stream_id, partition_id, 100000, kind, first_sequence_number + 1,"
    " last_sequence_number, 0, last_sequence_number - first_sequence_number, 0, 0, 0, 0, transform_version,"
    " invocation_id, committed_at, 0, total_commits, total_written, total_filtered, total_dead_lettered, total_held,"
    f" total_absent FROM batch_ledger {COMMIT.where}"
)


def copied_row(number: str, ordinal: int, where: str = READING.where) -> str:
    return (
        f"INSERT INTO sensor_reading SELECT stream_id, partition_id, {number}, {ordinal}, commit_number, home_id,"
        f" sensor_id, kind, state, ppm, observed_at FROM sensor_reading {where}"
    )


def counted(more: str, less: str, kinds: str = "") -> Tampering:
    changes, kinds = f"{more} = {more} + 1, {less} = {less} - 1", f"{kinds} totals totals"
    return COMMIT.by_hand(f"{BATCH} AND {less} > 0", changes, kinds, "commit {c} ")


def raised(table: Table, which: str, column: str, kinds: str, words: str = "", by: int = 1) -> Tampering:
    return table.by_hand(which, f"{column} = {column} + {by}", kinds, words)


def of_newest(column: str) -> str:
    return f"(SELECT l.{column} FROM batch_ledger AS l WHERE l.partition_id = :partition_id AND l.commit_number = :c)"


TAMPERINGS = {
    "a row deleted": READING.by_hand("batch", "", "rows_missing", OF_BATCH),
    "a row of a replay deleted": READING.by_hand("replay", "", "rows_missing", "commit {c} (replay)"),
    "a row added": Tampering(
        "rows_added", OF_BATCH, READING.pick.format("batch"), (copied_row("sequence_number", 99),)
    ),
    "a row of no commit added": Tampering(
        "rows rows_added", "in sensor_reading", READING.pick.format("batch"), (copied_row("100000", 0),)
    ),
    "a row moved to a different commit": raised(
        READING, "batch", "commit_number", "rows_missing rows rows_added", OF_BATCH
    ),
    "a row moved to a different partition": READING.by_hand(
        "batch", "partition_id = '9'", "rows_missing partition", OF_BATCH
    ),
    "a retracted row deleted": RETRACTED.by_hand(
        "table_name = 'sensor_reading'", "", "rows_missing replays", "commit {written_by} ("
    ),
    "a retracted state deleted": RETRACTED.by_hand("table_name = 'home'", "", "replays", "retracted rows exist"),
    "a row written for a number whose letter is open": Tampering(
        "letters rows_added",
        "letter {number} is exhausted",
        LETTER.pick.format(EXHAUSTED),
        (copied_row(":number", 0, "WHERE partition_id = :partition_id LIMIT 1"),),
    ),
    "a written event counted as filtered": counted("filtered", "written"),
    "a letter too many in the ledger": counted("dead_lettered", "written", "letters"),
    "a letter too few in the ledger": counted("written", "dead_lettered", "letters"),
    "an absent number counted as filtered": counted("filtered", "absent", "absent"),
    "a written event counted as held": counted("held", "written", "letters"),
    "the counts of a replay changed": COMMIT.by_hand(
        f"kind = {REPLAY} AND written > 0", "filtered = filtered + 1, written = written - 1", "replays"
    ),
    "a batch called a retry": COMMIT.by_hand(BATCH_4, "kind = 'retry'", "hole letters_outside totals totals attempts"),
    "the job of a replay's commit changed": COMMIT.by_hand(f"kind = {REPLAY}", "invocation_id = 'none'", "replays"),
    "the rows that a commit appended counted up": raised(COMMIT, BATCH, "rows_appended", "rows_missing", OF_BATCH),
    "the first range deleted": COMMIT.by_hand(BATCH, "", "commits hole letters_outside rows rows totals", "commit {c}"),
    "a range in the middle deleted": COMMIT.by_hand(BATCH_4, "", "hole commits letters_outside totals"),
    "the last range deleted": COMMIT.by_hand(NEWEST_BATCH, "", "short commits letters_outside totals"),
    "a retry deleted from the ledger": COMMIT.by_hand(RETRY, "", "commits", "no row for commit {c}"),
    "the newest commit deleted, which is a replay": COMMIT.by_hand(
        NEWEST, "", "commits replays rows rows", "no row for commit {c}"
    ),
    "a range twice": Tampering("overlap commits commits", "", COMMIT.pick.format(f"{BATCH} AND written > 2"), (TWICE,)),
    "a range widened": COMMIT.by_hand(f"{BATCH} AND commit_number = 3", WIDER, "overlap totals totals"),
    "the last range widened": COMMIT.by_hand(NEWEST_BATCH, WIDER, "beyond totals totals"),
    "a commit number skipped": COMMIT.by_hand(
        RETRY, "commit_number = 100000", "commits commits commits attempts rows_missing", "commit {c}"
    ),
    **{
        f"the {column} in the totals of a checkpoint raised": raised(CHECKPOINT, "1", column, "totals", OF_TOTALS)
        for column in ("written", "commits", "first_sequence_number", "letters")
    },
    **{
        f"the {column} of a commit raised": raised(
            COMMIT, BATCH_4, column, "totals totals", "the totals of commit {c} "
        )
        for column in ("total_written", "total_filtered", "total_dead_lettered", "total_absent", "total_held")
    },
    "the totals of the newest commit raised": raised(
        COMMIT, NEWEST, "total_commits", "totals", "the totals of commit {c} "
    ),
    "the totals of a checkpoint and of all its commits raised": Tampering(
        "totals totals",
        OF_TOTALS,
        PARTITION,
        (
            update("batch_ledger", "total_written = total_written + 1", CHECKPOINT.where),
            update("event_hub_checkpoint", "written = written + 1", CHECKPOINT.where),
        ),
    ),
    "a checkpoint replaced by an older copy of itself": CHECKPOINT.by_hand(
        OLDER,
        "sequence_number = :last, commit_number = :c, commits = :commits,"
        " letters = letters - dead_lettered - held + :dead_lettered + :held, "
        + ", ".join(f"{name} = :{name}" for name in OUTCOMES),
        "beyond commits",
        "after the checkpoint at {last}",
    ),
    "the last range deleted together with its totals": Tampering(
        "short commits letters_outside",
        "before the checkpoint",
        NEWEST_BATCH,
        (
            update(
                "event_hub_checkpoint",
                f"commits = commits - 1, letters = letters - {of_newest('dead_lettered + l.held')}, "
                + ", ".join(f"{name} = {name} - {of_newest(name)}" for name in OUTCOMES),
                CHECKPOINT.where,
            ),
            COMMIT.deleted,
        ),
    ),
    "a checkpoint deleted": CHECKPOINT.by_hand("1", "", "checkpoint", "no checkpoint"),
    "a checkpoint moved on": raised(CHECKPOINT, "1", "sequence_number", "short", by=3),
    "a checkpoint moved back": raised(CHECKPOINT, "1", "sequence_number", "beyond", by=-3),
    "the commits of a checkpoint counted up": raised(CHECKPOINT, "1", "commit_number", "commits"),
    "the commits of a checkpoint counted down": raised(CHECKPOINT, "1", "commit_number", "commits", "commit {c}", -1),
    "a checkpoint purged up to a commit that the ledger has": CHECKPOINT.by_hand(
        "1",
        "purged_commit = 1, purged_to = (SELECT last_sequence_number FROM batch_ledger"
        " WHERE partition_id = '1' AND commit_number = 1)",
        "purged",
        "but it has commit 1",
    ),
    **{
        f"the {column} of a checkpoint raised": raised(CHECKPOINT, "1", column, kind)
        for column, kind in {
            "purged_to": "overlap",
            "purged_letters": "letters_outside",
            "purged_replay_letters": "replay_letters",
        }.items()
    },
    "an anchor deleted": Tampering("anchor", "no anchor", PARTITION, everything_of("partition_anchor")),
    "an anchor moved on": Tampering(
        "beyond", "", PARTITION, (update("partition_anchor", "sequence_number = 2", CHECKPOINT.where),)
    ),
    "the ledger of a partition deleted": Tampering(
        "short commits letters_outside absent absent replays replays rows rows rows totals",
        "",
        PARTITION,
        everything_of("batch_ledger"),
    ),
    "the books of a partition deleted": Tampering("partition", "", PARTITION, everything_of(*TABLES)),
    "the incarnation of a stream raised": Tampering(
        "stream", "incarnation", "SELECT '' AS partition_id", (update("event_stream", "incarnation = 2"),)
    ),
    "a letter deleted": LETTER.by_hand("replay_commit_number IS NULL", "", "letters"),
    "a letter of a replay deleted": LETTER.by_hand("replay_commit_number IS NOT NULL", "", "replay_letters"),
    "a letter moved to a different number": Tampering(
        "letters",
        "letter {next} is",
        MOVED,
        (update("event_hub_dead_letter", "sequence_number = :next", LETTER.where.replace(":number", ":old")),),
    ),
    **{
        f"a letter {status} without an attempt": LETTER.by_hand(
            EXHAUSTED, f"status = '{status}'", "attempts", f"letter {{number}} is {status}"
        )
        for status in ("resolved", "discarded")
    },
    "a resolved letter opened again": LETTER.by_hand(
        RESOLVED, "status = 'waiting'", "attempts letters", "letter {number} is waiting"
    ),
    "a letter held that no commit held": LETTER.by_hand(EXHAUSTED, "status = 'held'", "held"),
    "the attempt that resolved a letter deleted": ATTEMPT.by_hand(
        RESOLVING, "", "attempts attempts", "letter {number}"
    ),
    "the first attempt of a letter deleted": ATTEMPT.by_hand(
        ATTEMPT.pick.format("attempt = 2").replace("attempt,", "1 AS attempt,", 1),
        "",
        "attempts",
        "letter {number}",
    ),
    "an attempt of a retry moved to a different commit": ATTEMPT.by_hand(
        RETRY, "commit_number = 100000", "attempts", "commit {c} (retry)"
    ),
    "the outcome of an attempt changed": ATTEMPT.by_hand(
        RESOLVING, "status = 'waiting'", "attempts attempts", "letter {number}"
    ),
    "a gap with absent numbers deleted": GAP.by_hand("status = 'absent'", "", "absent"),
    "an absent gap called healed": GAP.by_hand("status = 'absent'", "status = 'healed'", "absent"),
    "a healed gap called absent": GAP.by_hand("status = 'healed'", "status = 'absent'", "absent"),
    "an absent gap widened": raised(
        GAP, "status = 'absent' AND first_sequence_number > 60", "last_sequence_number", "absent", by=2
    ),
    "an absent gap added": Tampering(
        "absent",
        "",
        "SELECT '1' AS partition_id, 3 AS number",
        ("INSERT INTO sequence_gap SELECT stream_id, '1', 3, 4, found_at, 'absent', 1 FROM sequence_gap LIMIT 1",),
    ),
    "the counts of a replay's job changed": Tampering(
        "replays replays",
        "",
        COUNTING,
        (
            update(
                "task_part",
                "report = json_set(report, '$.rows_written', report ->> 'rows_written' + 1)",
                "WHERE part = :partition_id AND report ->> 'written' > 0",
            ),
        ),
    ),
}


def unnamed(pick: str, *statements: str) -> Tampering:
    return Tampering("", "", pick, statements)


def every(table: str, changes: str, where: str = "") -> Tampering:
    return unnamed(PARTITION, update(table, changes, where))


def one(table: Table, which: str, changes: str = "") -> Tampering:
    return table.by_hand(which, changes, "")


LATER = "'2027-01-01T00:00:00.000000Z'"
STATE = "SELECT partition_id, home_id FROM home ORDER BY home_id LIMIT 1"
NO_RETRY = (
    "SELECT d.partition_id, d.sequence_number AS number, 1 AS attempt FROM event_hub_dead_letter AS d"
    " WHERE d.status = 'exhausted' AND (SELECT GROUP_CONCAT(a.kind) FROM dead_letter_attempt AS a"
    " WHERE a.partition_id = d.partition_id AND a.sequence_number = d.sequence_number) = 'replay' LIMIT 1"
)
SAME_REPLAY = (
    "commit_number = (SELECT MAX(l.commit_number) FROM batch_ledger AS l WHERE l.partition_id = :partition_id"
    " AND l.invocation_id = (SELECT r.invocation_id FROM batch_ledger AS r"
    " WHERE r.partition_id = :partition_id AND r.commit_number = :c))"
)
NO_LETTERS = "NOT IN (SELECT task_id FROM task_part WHERE report ->> 'letters_added' > 0)"
UNNAMED = {  # by their sentences in docs/api.md
    "a state (a row of a `state_of` table) is changed, deleted, or added under a commit that exists": (
        every("home", "time_zone = 'Mars/Olympus', armed = 1 - armed"),
        unnamed(STATE, "DELETE FROM home WHERE home_id = :home_id"),
        unnamed(
            STATE,
            "INSERT INTO home SELECT 'new', time_zone, armed, stream_id, partition_id, sequence_number, commit_number"
            " FROM home WHERE home_id = :home_id",
        ),
    ),
    "a value or the ordinal of an appended row is changed": (
        every("sensor_reading", "state = '', ppm = NULL, kind = 'x', sensor_id = 'x', home_id = 'x'"),
        every("sensor_reading", f"ordinal = ordinal + 77, observed_at = {LATER}"),
    ),
    "the copy of a row in `retracted_row` is changed": (
        every("retracted_row", "row = json_set(row, '$.ppm', 31337)"),
        every("retracted_row", "row_commit_number = 1, row = '{}'", "WHERE table_name = 'home'"),
    ),
    "the time or the version of a commit is changed; of a batch or a retry, the rows written or the invocation": (
        every("batch_ledger", f"committed_at = {LATER}, transform_version = 'other/1'"),
        every("batch_ledger", "rows_written = rows_written + 1, invocation_id = 'x'", "WHERE kind <> 'replay'"),
    ),
    "the range of a retry is changed, or its events are counted as filtered and not as written": (
        every(
            "batch_ledger",
            "first_sequence_number = first_sequence_number - 1, filtered = filtered + written, written = 0",
            "WHERE kind = 'retry'",
        ),
    ),
    "the error, the class, the cause, the transform version, the offset, the attempts, the claim, `held_behind`, the"
    " settling reason, the erasure or a time of a letter is changed": (
        every("event_hub_dead_letter", "error = 'none', error_class = 'crash', error_type = 'none', error_at = 'none'"),
        every("event_hub_dead_letter", "fingerprint = 'none', cause = 'none', transform_version = 'none'"),
        every("event_hub_dead_letter", "offset_token = 'none', attempts = attempts + 1, held_behind = 1"),
        every("event_hub_dead_letter", f"claimed_by = 'me', claimed_until = {LATER}, lost_claims = 2"),
        every("event_hub_dead_letter", f"due_at = {LATER}, began_at = {LATER}, failed_at = {LATER}"),
        every("event_hub_dead_letter", f"settled_at = {LATER}, settled_why = 'none'"),
        every("event_hub_dead_letter", "erased_by = 'somebody'"),
    ),
    "the status of an open letter without an attempt is changed to a different open one": (
        unnamed(
            NO_RETRY,
            f"DELETE FROM dead_letter_attempt {OF_NUMBER}",
            update("event_hub_dead_letter", "status = 'waiting'", OF_NUMBER),
        ),
    ),
    "the body, the properties, the key or the enqueued time of a letter is changed": (
        every(
            "event_hub_dead_letter",
            f"body = CAST('x' AS BLOB), body_kept = 0, properties = '{{}}', partition_key = 'x', enqueued_at = {LATER}",
        ),
    ),
    "the replay that made a letter is changed to a different commit": (
        one(LETTER, "replay_commit_number IS NOT NULL", "replay_commit_number = replay_commit_number + 1"),
    ),
    "the error, the class, the cause, the version, the author, the claim, the reason or the time of an attempt is"
    " changed": (
        every("dead_letter_attempt", "error = 'none', error_class = 'unknown', error_type = 'none', cause = 'none'"),
        every("dead_letter_attempt", "transform_version = 'none', done_by = 'me', touched_by = 'me', why = 'x'"),
        every("dead_letter_attempt", f"done_at = {LATER}"),
    ),
    "the kind or the commit of an attempt that is no retry is changed, or the status of one that is not the last": (
        every("dead_letter_attempt", "kind = 'free', commit_number = 7", "WHERE kind <> 'retry'"),
        one(ATTEMPT, "attempt = 1 AND status = 'waiting'", "status = 'exhausted'"),
    ),
    "the last attempt of an exhausted letter is deleted, other than a retry": (one(ATTEMPT, NO_RETRY),),
    "the offset, the commit id, the unknown fields, the enqueued time, the write time or the time of the last purge of"
    " a checkpoint is changed": (
        every("event_hub_checkpoint", f"offset_token = 'none', updated_at = {LATER}, enqueued_at = {LATER}"),
        every("event_hub_checkpoint", "commit_id = '00000000-0000-0000-0000-000000000000', unknown_fields = '[]'"),
        every("event_hub_checkpoint", f"purged_at = {LATER}"),
    ),
    "every row of a partition is deleted, or the event hub or the consumer group of a stream is changed": (
        unnamed(PARTITION, *everything_of(*TABLES, *RECORDS)),
        every("event_stream", "event_hub = 'other'"),
        every("event_stream", "consumer_group = 'other'"),
    ),
    "a time of a stream, an anchor or a gap is changed, or who opened a stream and why, or the key of its events; the"
    " hub's time of creation is cleared": (
        every("event_stream", f"anchored_at = {LATER}, opened_by = 'me', opened_why = 'x', hub_created_at = NULL"),
        every("event_stream", f"closed_at = {LATER}"),
        every("event_stream", "erasures = erasures + 1, event_key = 'kafka'"),
        every("partition_anchor", f"anchored_at = {LATER}"),
        every("sequence_gap", f"found_at = {LATER}, attempts = attempts + 1"),
    ),
    "a gap that is not absent is added, changed or deleted": (
        one(GAP, "status = 'healed'"),
        one(GAP, "status = 'healed'", "last_sequence_number = last_sequence_number + 1, status = 'open'"),
        unnamed(
            PARTITION,
            "INSERT INTO sequence_gap SELECT stream_id, partition_id, 1, 2, found_at, 'healed', 1 FROM sequence_gap"
            " LIMIT 1",
        ),
    ),
    "a row of `retracted_row` names a different commit of the same replay": (one(RETRACTED, "TRUE", SAME_REPLAY),),
    "a task or a part is changed, other than the events, rows and letters that a replay counts": (
        every("task", f"reason = 'none', requested_by = 'me', requested_at = {LATER}, status = 'failed'"),
        every("task", "task_key = task_id, asked = '{}', total = 7, pieces = 7, per_second = 7, fault = 'none'"),
        every("task", f"next_piece_at = {LATER}, started_at = {LATER}, ended_at = {LATER}, updated_at = {LATER}"),
        every("task", "history = 'none', transform_version = 'none', request_digest = 'none'"),
        every("task", "kind = 'audit', is_dry_run = 1, stream_id = 7", f"WHERE task_id {NO_LETTERS}"),
        every("task_part", "step = step + 1, ordinal = 7, position = position + 1, asked = '{}', closed_at = NULL"),
        every("task_part", "first_sequence_number = 7, last_sequence_number = 7"),
        every("task_part", "report = json_set(report, '$.filtered', 99, '$.events', 99, '$.gone', 99)"),
    ),
    "a task or a part is deleted, other than one of a replay that made letters": (
        unnamed(
            PARTITION,
            f"DELETE FROM task_part WHERE task_id {NO_LETTERS}",
            "DELETE FROM task WHERE task_id NOT IN (SELECT task_id FROM task_part)",
        ),
    ),
}

# A table with which tests/core/store/test_schema.py tampers.
ELSEWHERE = {"schema_migration"}
PURGED = "a row whose commit was purged is changed, deleted or added"  # tests/core/purge/test_purge.py changes it
# Of a purged partition, as the row above: test_purge.py changes it.
PURGED_REPLAY = (
    "the counts of a replay that was requested before the oldest ledger row of a purged partition are changed"
)
PLACE = "a place that an erasure left in `retracted_row` is moved to a different table, number or ordinal"
