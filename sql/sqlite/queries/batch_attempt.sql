-- name: read_attempt
-- Read the attempt at a partition that is not known to have ended.
-- params: stream_id, partition_id
SELECT first_sequence_number, last_sequence_number, suspects_end, attempts, attempt_id, begun_at, invocation_id
  FROM batch_attempt
 WHERE stream_id = :stream_id AND partition_id = :partition_id;

-- name: open_attempt
-- Insert a partition's attempt; touches no row when there is one.
-- params: stream_id, partition_id, first_sequence_number, last_sequence_number, suspects_end, attempts, attempt_id, begun_at, invocation_id
INSERT INTO batch_attempt
       (stream_id, partition_id, first_sequence_number, last_sequence_number, suspects_end, attempts, attempt_id,
        begun_at, invocation_id)
SELECT :stream_id, :partition_id, :first_sequence_number, :last_sequence_number, :suspects_end, :attempts,
       :attempt_id, :begun_at, :invocation_id
 WHERE NOT EXISTS (
       SELECT 1 FROM batch_attempt AS a
        WHERE a.stream_id = :stream_id AND a.partition_id = :partition_id)
RETURNING attempt_id;

-- name: renew_attempt
-- Compare and set: touches no row when an attempt was begun or ended since it was read.
-- params: stream_id, partition_id, first_sequence_number, last_sequence_number, suspects_end, attempts, attempt_id, begun_at, invocation_id, expected_id, expected_attempts
UPDATE batch_attempt
   SET first_sequence_number = :first_sequence_number, last_sequence_number = :last_sequence_number,
       suspects_end = :suspects_end, attempts = :attempts, attempt_id = :attempt_id, begun_at = :begun_at,
       invocation_id = :invocation_id
 WHERE stream_id = :stream_id AND partition_id = :partition_id
   AND attempt_id = :expected_id AND attempts = :expected_attempts
RETURNING attempt_id;

-- name: end_attempt
-- Record that an attempt has ended, unless a newer one was begun.
-- params: stream_id, partition_id, attempts, attempt_id
UPDATE batch_attempt
   SET attempts = :attempts
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND attempt_id = :attempt_id;

-- name: clear_attempt
-- Delete a partition's attempt: its numbers are committed.
-- params: stream_id, partition_id
DELETE FROM batch_attempt
 WHERE stream_id = :stream_id AND partition_id = :partition_id;
