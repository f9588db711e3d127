"""The table of changes by hand that no audit names, under the sentences that docs/api.md has for them."""

from tests.simulation.tamperings import LETTER, OF_ATTEMPT, OF_LETTER, PARTITION, Tampering, delete, update


def unnamed(pick: str, *statements: str) -> Tampering:
    """A change that no audit names."""
    return Tampering("", "", pick, statements)


def every(table: str, changes: str) -> Tampering:
    return unnamed(PARTITION, update(table, changes, ""))


LATER = "'2027-01-01T00:00:00.000000Z'"
STATE = "SELECT partition_id, home_id FROM home ORDER BY home_id LIMIT 1"
GONE = LETTER.format("partition_id = '0' AND sequence_number < 40")
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
    "the error, the cause, the transform version, the offset or a time of a letter is changed": (
        every("event_hub_dead_letter", "error = 'none', error_class = 'unknown', error_type = 'none'"),
        every("event_hub_dead_letter", "fingerprint = 'none', transform_version = 'none', offset_token = 'none'"),
        every("event_hub_dead_letter", f"failed_at = {LATER}, settled_why = 'none', attempts = attempts + 1"),
    ),
    "the body, the properties, the key or the enqueued time of a letter is changed after its event left the hub": (
        unnamed(
            GONE,
            update(
                "event_hub_dead_letter",
                f"body = CAST('x' AS BLOB), properties = '{{}}', partition_key = 'x', enqueued_at = {LATER}",
                OF_LETTER,
            ),
        ),
    ),
    "the error, the cause, the version, the author, the reason or the time of an attempt is changed": (
        every("dead_letter_attempt", "error = 'none', error_class = 'unknown', error_type = 'none'"),
        every("dead_letter_attempt", f"transform_version = 'none', done_by = 'me', why = 'x', done_at = {LATER}"),
    ),
    "the last attempt of an exhausted letter is deleted": (
        unnamed(
            "SELECT a.partition_id, a.sequence_number AS number, MAX(a.attempt) AS attempt"
            " FROM dead_letter_attempt AS a INNER JOIN event_hub_dead_letter AS d"
            " ON d.partition_id = a.partition_id AND d.sequence_number = a.sequence_number AND d.status = 'exhausted'"
            " GROUP BY a.partition_id, a.sequence_number LIMIT 1",
            delete("dead_letter_attempt", OF_ATTEMPT),
        ),
    ),
    "the offset, the commit id or the write time of a checkpoint is changed": (
        every("event_hub_checkpoint", f"offset_token = 'none', updated_at = {LATER}"),
        every("event_hub_checkpoint", "commit_id = '00000000-0000-0000-0000-000000000000'"),
    ),
    "a time of a stream, an anchor or a gap is changed": (
        every("event_stream", f"anchored_at = {LATER}"),
        every("partition_anchor", f"anchored_at = {LATER}"),
        every("sequence_gap", f"found_at = {LATER}, attempts = attempts + 1"),
    ),
    "a text, a time or a count of a task is changed, other than the rows and the events written of a replay": (
        every("task", f"reason = 'none', requested_by = 'me', requested_at = {LATER}"),
        every(
            "task_part", "step = step + 1, report = json_set(report, '$.filtered', 99, '$.events', 99, '$.gone', 99)"
        ),
    ),
}

# Tables with which tests/contract/operator/test_purges.py and tests/unit/core/store/test_schema.py tamper.
ELSEWHERE = {"purge_stub", "schema_migration"}
PURGED = "a row whose commit was purged is changed, deleted or added"  # of test_purges.py too
