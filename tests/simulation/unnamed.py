"""The table of changes by hand that no audit names, under the sentences that docs/api.md has for them."""

from tests.simulation.tamperings import (
    ATTEMPT,
    LETTER,
    OF_ATTEMPT,
    OF_LETTER,
    OF_RETRACTED,
    PARTITION,
    RECORDS,
    RETRACTED,
    TABLES,
    Tampering,
    delete,
    everything_of,
    update,
)


def unnamed(pick: str, *statements: str) -> Tampering:
    """A change that no audit names."""
    return Tampering("", "", pick, statements)


def every(table: str, changes: str) -> Tampering:
    return unnamed(PARTITION, update(table, changes, ""))


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
        unnamed(STATE, delete("home", "WHERE home_id = :home_id")),
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
        unnamed(PARTITION, update("retracted_row", "row_commit_number = 1, row = '{}'", "WHERE table_name = 'home'")),
    ),
    "the time or the version of a commit is changed; of a batch or a retry, the rows written or the invocation": (
        every("batch_ledger", f"committed_at = {LATER}, transform_version = 'other/1'"),
        unnamed(
            PARTITION,
            update("batch_ledger", "rows_written = rows_written + 1, invocation_id = 'x'", "WHERE kind <> 'replay'"),
        ),
    ),
    "the range of a retry is changed, or its events are counted as filtered and not as written": (
        unnamed(
            PARTITION,
            update(
                "batch_ledger",
                "first_sequence_number = first_sequence_number - 1, filtered = filtered + written, written = 0",
                "WHERE kind = 'retry'",
            ),
        ),
    ),
    "the error, the class, the cause, the transform version, the offset, the attempts, the claim, `held_behind`, the"
    " settling reason or a time of a letter is changed": (
        every("event_hub_dead_letter", "error = 'none', error_class = 'crash', error_type = 'none', error_at = 'none'"),
        every("event_hub_dead_letter", "fingerprint = 'none', cause = 'none', transform_version = 'none'"),
        every("event_hub_dead_letter", "offset_token = 'none', attempts = attempts + 1, held_behind = 1"),
        every("event_hub_dead_letter", f"claimed_by = 'me', claimed_until = {LATER}, lost_claims = 2"),
        every("event_hub_dead_letter", f"due_at = {LATER}, began_at = {LATER}, failed_at = {LATER}"),
        every("event_hub_dead_letter", f"settled_at = {LATER}, settled_why = 'none'"),
    ),
    "the status of an open letter without an attempt is changed to a different open one": (
        unnamed(
            NO_RETRY,
            delete("dead_letter_attempt", OF_LETTER),
            update("event_hub_dead_letter", "status = 'waiting'", OF_LETTER),
        ),
    ),
    "the body, the properties, the key or the enqueued time of a letter is changed": (
        every(
            "event_hub_dead_letter",
            f"body = CAST('x' AS BLOB), body_kept = 0, properties = '{{}}', partition_key = 'x', enqueued_at = {LATER}",
        ),
    ),
    "the replay that made a letter is changed to a different commit": (
        unnamed(
            LETTER.format("replay_commit_number IS NOT NULL"),
            update("event_hub_dead_letter", "replay_commit_number = replay_commit_number + 1", OF_LETTER),
        ),
    ),
    "the error, the class, the cause, the version, the author, the claim, the reason or the time of an attempt is"
    " changed": (
        every("dead_letter_attempt", "error = 'none', error_class = 'unknown', error_type = 'none', cause = 'none'"),
        every("dead_letter_attempt", "transform_version = 'none', done_by = 'me', touched_by = 'me', why = 'x'"),
        every("dead_letter_attempt", f"done_at = {LATER}"),
    ),
    "the kind or the commit of an attempt that is no retry is changed, or the status of one that is not the last": (
        unnamed(PARTITION, update("dead_letter_attempt", "kind = 'free', commit_number = 7", "WHERE kind <> 'retry'")),
        unnamed(
            ATTEMPT.format("attempt = 1 AND status = 'waiting'"),
            update("dead_letter_attempt", "status = 'exhausted'", OF_ATTEMPT),
        ),
    ),
    "the last attempt of an exhausted letter is deleted, other than a retry": (
        unnamed(NO_RETRY, delete("dead_letter_attempt", OF_ATTEMPT)),
    ),
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
    "a time of a stream, an anchor or a gap is changed, or who opened a stream and why; the hub's time of creation is"
    " cleared": (
        every("event_stream", f"anchored_at = {LATER}, opened_by = 'me', opened_why = 'x', hub_created_at = NULL"),
        every("event_stream", f"closed_at = {LATER}"),
        every("partition_anchor", f"anchored_at = {LATER}"),
        every("sequence_gap", f"found_at = {LATER}, attempts = attempts + 1"),
    ),
    "a gap that is not absent is added, changed or deleted": (
        unnamed(PARTITION, delete("sequence_gap", "WHERE status = 'healed'")),
        unnamed(
            PARTITION,
            update(
                "sequence_gap",
                "last_sequence_number = last_sequence_number + 1, status = 'open'",
                "WHERE status = 'healed'",
            ),
        ),
        unnamed(
            PARTITION,
            "INSERT INTO sequence_gap SELECT stream_id, partition_id, 1, 2, found_at, 'healed', 1 FROM sequence_gap"
            " LIMIT 1",
        ),
    ),
    "a row of `retracted_row` names a different commit of the same replay": (
        unnamed(RETRACTED.format("TRUE"), update("retracted_row", SAME_REPLAY, OF_RETRACTED)),
    ),
    "a task or a part is changed, other than the events, rows and letters that a replay counts": (
        every("task", f"reason = 'none', requested_by = 'me', requested_at = {LATER}, status = 'failed'"),
        every("task", "task_key = task_id, asked = '{}', total = 7, pieces = 7, per_second = 7, fault = 'none'"),
        every("task", f"next_piece_at = {LATER}, started_at = {LATER}, ended_at = {LATER}, updated_at = {LATER}"),
        every("task", "history = 'none', transform_version = 'none', request_digest = 'none'"),
        unnamed(
            PARTITION, update("task", "kind = 'audit', is_dry_run = 1, stream_id = 7", f"WHERE task_id {NO_LETTERS}")
        ),
        every("task_part", "step = step + 1, ordinal = 7, position = position + 1, asked = '{}', closed_at = NULL"),
        every("task_part", "first_sequence_number = 7, last_sequence_number = 7"),
        every("task_part", "report = json_set(report, '$.filtered', 99, '$.events', 99, '$.gone', 99)"),
    ),
    "a task or a part is deleted, other than one of a replay that made letters": (
        unnamed(
            PARTITION,
            delete("task_part", f"WHERE task_id {NO_LETTERS}"),
            delete("task", "WHERE task_id NOT IN (SELECT task_id FROM task_part)"),
        ),
    ),
}

# A table with which tests/core/store/test_schema.py tampers.
ELSEWHERE = {"schema_migration"}
PURGED = "a row whose commit was purged is changed, deleted or added"  # of test_purges.py too
# Of a purged partition, as the row above: test_purges.py changes it.
PURGED_REPLAY = (
    "the counts of a replay that was requested before the oldest ledger row of a purged partition are changed"
)
PLACE = "a place that an erasure left in `retracted_row` is moved to a different table, number or ordinal"
