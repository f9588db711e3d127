-- name: read_attempt
-- Read the attempt at a partition that is not known to have ended.
-- params: stream_id, partition_id
SELECT first_sequence_number, last_sequence_number, attempt_id, begun_at, invocation_id
  FROM batch_attempt
 WHERE stream_id = :stream_id AND partition_id = :partition_id;

-- name: begin_attempt
-- Store the newest attempt at a partition, in the place of the one before it; only older code reads the two constants.
-- params: stream_id, partition_id, first_sequence_number, last_sequence_number, attempt_id, begun_at, invocation_id
INSERT INTO batch_attempt
       (stream_id, partition_id, first_sequence_number, last_sequence_number, suspects_end, attempts, attempt_id,
        begun_at, invocation_id)
VALUES (:stream_id, :partition_id, :first_sequence_number, :last_sequence_number, 0, 1, :attempt_id, :begun_at,
        :invocation_id)
ON CONFLICT (stream_id, partition_id) DO UPDATE
   SET first_sequence_number = excluded.first_sequence_number, last_sequence_number = excluded.last_sequence_number,
       suspects_end = excluded.suspects_end, attempts = excluded.attempts, attempt_id = excluded.attempt_id,
       begun_at = excluded.begun_at, invocation_id = excluded.invocation_id;

-- name: end_attempt
-- Delete a partition's attempt, which has ended, unless a different process has begun one since.
-- params: stream_id, partition_id, attempt_id
DELETE FROM batch_attempt
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND attempt_id = :attempt_id;

-- name: clear_attempt
-- Delete a partition's attempt: its numbers are committed.
-- params: stream_id, partition_id
DELETE FROM batch_attempt
 WHERE stream_id = :stream_id AND partition_id = :partition_id;
