-- name: read_marks
-- Read the attempts at a stream that are not known to have ended, and its events that kill.
-- params: stream_id int
SELECT a.partition_id, a.first_sequence_number, a.last_sequence_number,
       CONVERT(varchar(36), a.attempt_id) AS attempt_id, a.begun_at, a.deaths, a.transform_version, a.verdict
  FROM batch_attempt AS a
 WHERE a.stream_id = :stream_id
 ORDER BY a.partition_id, a.last_sequence_number;

-- name: begin_attempt
-- Store an attempt at a part of a partition, in the place of the one that ends with the same number.
-- params: stream_id int, partition_id varchar(8000), first_sequence_number bigint, last_sequence_number bigint, attempt_id uniqueidentifier, begun_at datetime2(6), deaths int, transform_version nvarchar(4000), verdict nvarchar(4000)
INSERT INTO batch_attempt
       (stream_id, partition_id, first_sequence_number, last_sequence_number, attempt_id, begun_at, deaths,
        transform_version, verdict)
VALUES (:stream_id, :partition_id, :first_sequence_number, :last_sequence_number, :attempt_id, :begun_at, :deaths,
        :transform_version, :verdict)
ON CONFLICT (stream_id, partition_id, last_sequence_number) DO UPDATE
   SET first_sequence_number = excluded.first_sequence_number, attempt_id = excluded.attempt_id,
       begun_at = excluded.begun_at, deaths = excluded.deaths, transform_version = excluded.transform_version,
       verdict = excluded.verdict;
-- sqlserver:
UPDATE hubledger.batch_attempt
   SET first_sequence_number = @first_sequence_number, attempt_id = @attempt_id, begun_at = @begun_at,
       deaths = @deaths, transform_version = @transform_version, verdict = @verdict
 WHERE stream_id = @stream_id AND partition_id = @partition_id AND last_sequence_number = @last_sequence_number;
BEGIN TRY
    INSERT INTO hubledger.batch_attempt
           (stream_id, partition_id, first_sequence_number, last_sequence_number, attempt_id, begun_at, deaths,
            transform_version, verdict)
    SELECT @stream_id, @partition_id, @first_sequence_number, @last_sequence_number, @attempt_id, @begun_at, @deaths,
           @transform_version, @verdict
     WHERE NOT EXISTS (
           SELECT 1 FROM hubledger.batch_attempt AS a
            WHERE a.stream_id = @stream_id AND a.partition_id = @partition_id
              AND a.last_sequence_number = @last_sequence_number);
END TRY
BEGIN CATCH
    IF ERROR_NUMBER() NOT IN (2601, 2627) THROW;  -- begun by another process at the same moment
END CATCH;

-- name: end_attempt
-- Delete an attempt that has ended, unless a different process has begun one since.
-- params: stream_id int, partition_id varchar(8000), last_sequence_number bigint, attempt_id uniqueidentifier
DELETE FROM batch_attempt
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND last_sequence_number = :last_sequence_number
   AND attempt_id = :attempt_id;

-- name: clear_attempts
-- Delete the attempts at a partition that end in these numbers, which are written.
-- params: stream_id int, partition_id varchar(8000), first_sequence_number bigint, last_sequence_number bigint
DELETE FROM batch_attempt
 WHERE stream_id = :stream_id AND partition_id = :partition_id
   AND last_sequence_number >= :first_sequence_number AND last_sequence_number <= :last_sequence_number;
