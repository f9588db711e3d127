-- name: read_attempt
-- Read the attempt at a partition that is not known to have ended.
-- params: stream_id int, partition_id varchar(8000)
SELECT a.first_sequence_number, a.last_sequence_number, a.suspects_end, a.attempts,
       CONVERT(varchar(36), a.attempt_id) AS attempt_id, a.begun_at, a.invocation_id
  FROM hubledger.batch_attempt AS a
 WHERE a.stream_id = @stream_id AND a.partition_id = @partition_id;

-- name: open_attempt
-- Insert a partition's attempt; touches no row when there is one.
-- params: stream_id int, partition_id varchar(8000), first_sequence_number bigint, last_sequence_number bigint, suspects_end bigint, attempts int, attempt_id uniqueidentifier, begun_at datetime2(7), invocation_id nvarchar(4000)
BEGIN TRY
    INSERT INTO hubledger.batch_attempt
           (stream_id, partition_id, first_sequence_number, last_sequence_number, suspects_end, attempts, attempt_id,
            begun_at, invocation_id)
    SELECT @stream_id, @partition_id, @first_sequence_number, @last_sequence_number, @suspects_end, @attempts,
           @attempt_id, @begun_at, @invocation_id
     WHERE NOT EXISTS (
           SELECT 1 FROM hubledger.batch_attempt AS a
            WHERE a.stream_id = @stream_id AND a.partition_id = @partition_id);
    IF @@ROWCOUNT = 1 SELECT @attempt_id AS attempt_id;
END TRY
BEGIN CATCH
    IF ERROR_NUMBER() NOT IN (2601, 2627) THROW;  -- begun by another process at the same moment
END CATCH;

-- name: renew_attempt
-- Compare and set: touches no row when an attempt was begun or ended since it was read.
-- params: stream_id int, partition_id varchar(8000), first_sequence_number bigint, last_sequence_number bigint, suspects_end bigint, attempts int, attempt_id uniqueidentifier, begun_at datetime2(7), invocation_id nvarchar(4000), expected_id uniqueidentifier, expected_attempts int
UPDATE hubledger.batch_attempt
   SET first_sequence_number = @first_sequence_number, last_sequence_number = @last_sequence_number,
       suspects_end = @suspects_end, attempts = @attempts, attempt_id = @attempt_id, begun_at = @begun_at,
       invocation_id = @invocation_id
 WHERE stream_id = @stream_id AND partition_id = @partition_id
   AND attempt_id = @expected_id AND attempts = @expected_attempts;
IF @@ROWCOUNT = 1 SELECT @attempt_id AS attempt_id;

-- name: end_attempt
-- Record that an attempt has ended, unless a newer one was begun.
-- params: stream_id int, partition_id varchar(8000), attempts int, attempt_id uniqueidentifier
UPDATE hubledger.batch_attempt
   SET attempts = @attempts
 WHERE stream_id = @stream_id AND partition_id = @partition_id AND attempt_id = @attempt_id;

-- name: clear_attempt
-- Delete a partition's attempt: its numbers are committed.
-- params: stream_id int, partition_id varchar(8000)
DELETE FROM hubledger.batch_attempt
 WHERE stream_id = @stream_id AND partition_id = @partition_id;
