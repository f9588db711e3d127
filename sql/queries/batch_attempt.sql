-- name: read_attempt
-- Read the attempt at a partition that is not known to have ended.
-- params: stream_id int, partition_id varchar(8000)
SELECT a.first_sequence_number, a.last_sequence_number, CONVERT(varchar(36), a.attempt_id) AS attempt_id, a.begun_at,
       a.invocation_id
  FROM batch_attempt AS a
 WHERE a.stream_id = :stream_id AND a.partition_id = :partition_id;

-- name: begin_attempt
-- Store the newest attempt at a partition, in the place of the one before it.
-- params: stream_id int, partition_id varchar(8000), first_sequence_number bigint, last_sequence_number bigint, attempt_id uniqueidentifier, begun_at datetime2(7), invocation_id nvarchar(4000)
INSERT INTO batch_attempt
       (stream_id, partition_id, first_sequence_number, last_sequence_number, attempt_id, begun_at, invocation_id)
VALUES (:stream_id, :partition_id, :first_sequence_number, :last_sequence_number, :attempt_id, :begun_at,
        :invocation_id)
ON CONFLICT (stream_id, partition_id) DO UPDATE
   SET first_sequence_number = excluded.first_sequence_number, last_sequence_number = excluded.last_sequence_number,
       attempt_id = excluded.attempt_id, begun_at = excluded.begun_at, invocation_id = excluded.invocation_id;
-- sqlserver:
UPDATE hubledger.batch_attempt
   SET first_sequence_number = @first_sequence_number, last_sequence_number = @last_sequence_number,
       attempt_id = @attempt_id, begun_at = @begun_at, invocation_id = @invocation_id
 WHERE stream_id = @stream_id AND partition_id = @partition_id;
BEGIN TRY
    INSERT INTO hubledger.batch_attempt
           (stream_id, partition_id, first_sequence_number, last_sequence_number, attempt_id, begun_at, invocation_id)
    SELECT @stream_id, @partition_id, @first_sequence_number, @last_sequence_number, @attempt_id, @begun_at,
           @invocation_id
     WHERE NOT EXISTS (
           SELECT 1 FROM hubledger.batch_attempt AS a
            WHERE a.stream_id = @stream_id AND a.partition_id = @partition_id);
END TRY
BEGIN CATCH
    IF ERROR_NUMBER() NOT IN (2601, 2627) THROW;  -- begun by another process at the same moment
END CATCH;

-- name: end_attempt
-- Delete a partition's attempt, which has ended, unless a different process has begun one since.
-- params: stream_id int, partition_id varchar(8000), attempt_id uniqueidentifier
DELETE FROM batch_attempt
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND attempt_id = :attempt_id;

-- name: clear_attempt
-- Delete a partition's attempt: its numbers are committed.
-- params: stream_id int, partition_id varchar(8000)
DELETE FROM batch_attempt
 WHERE stream_id = :stream_id AND partition_id = :partition_id;
