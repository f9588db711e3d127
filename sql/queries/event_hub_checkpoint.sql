-- name: read_checkpoint
-- Read the checkpoint of a partition.
-- params: stream_id int, partition_id varchar(8000)
SELECT sequence_number, offset_token, enqueued_at, commit_number, commit_id
  FROM event_hub_checkpoint
 WHERE stream_id = :stream_id AND partition_id = :partition_id;
-- sqlserver:
SELECT c.sequence_number, c.offset_token, c.enqueued_at, c.commit_number,
       CONVERT(varchar(36), c.commit_id) AS commit_id
  FROM hubledger.event_hub_checkpoint AS c
 WHERE c.stream_id = @stream_id AND c.partition_id = @partition_id;

-- name: count_replay
-- Count a commit that leaves the checkpoint in place; the row is its lock. Touches no row for events after the
-- checkpoint.
-- params: stream_id int, partition_id varchar(8000), last_sequence_number bigint
UPDATE event_hub_checkpoint
   SET @commit_number = commit_number = commit_number + 1
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND sequence_number >= :last_sequence_number
RETURNING commit_number;  -- sqlite only

-- name: read_replayable
-- Read the numbers of each partition of a stream that can be replayed: from its first range to its checkpoint.
-- params: stream_id int
SELECT c.partition_id, (
       SELECT MIN(l.first_sequence_number) FROM batch_ledger AS l
        WHERE l.stream_id = c.stream_id AND l.partition_id = c.partition_id
        AND l.kind = 'batch') AS first_sequence_number,
       c.sequence_number
  FROM event_hub_checkpoint AS c
 WHERE c.stream_id = :stream_id
 ORDER BY LEN(c.partition_id), c.partition_id;

-- name: open_checkpoint
-- Insert a partition's first checkpoint; a key violation means that another owner was first. Touches no row in a
-- closed stream.
-- params: stream_id int, partition_id varchar(8000), sequence_number bigint, offset_token nvarchar(4000), enqueued_at datetime2(7), commit_id uniqueidentifier, updated_at datetime2(7)
SET @commit_number = 1;  -- sqlserver only
INSERT INTO event_hub_checkpoint
       (stream_id, partition_id, sequence_number, offset_token, enqueued_at, commit_number, commit_id, updated_at)
SELECT :stream_id, :partition_id, :sequence_number, :offset_token, :enqueued_at, 1, :commit_id, :updated_at
 WHERE NOT EXISTS (
       SELECT 1 FROM event_hub_checkpoint AS c  -- sqlserver only
        WHERE c.stream_id = :stream_id AND c.partition_id = :partition_id)  -- sqlserver only
   AND NOT EXISTS (  -- sqlserver only
       SELECT 1 FROM event_stream AS e WITH (REPEATABLEREAD)
        WHERE e.stream_id = :stream_id AND e.closed_at IS NOT NULL)
ON CONFLICT (stream_id, partition_id) DO NOTHING  -- sqlite only
RETURNING commit_number;  -- sqlite only

-- name: advance_checkpoint
-- Compare and set: touches no row when another owner moved the checkpoint first, or the stream is closed.
-- params: stream_id int, partition_id varchar(8000), sequence_number bigint, offset_token nvarchar(4000), enqueued_at datetime2(7), commit_id uniqueidentifier, updated_at datetime2(7), expected bigint
UPDATE event_hub_checkpoint
   SET sequence_number = :sequence_number, offset_token = :offset_token, enqueued_at = :enqueued_at,
       @commit_number = commit_number = commit_number + 1, commit_id = :commit_id, updated_at = :updated_at
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND sequence_number = :expected
   AND NOT EXISTS (
       SELECT 1 FROM event_stream AS e WITH (REPEATABLEREAD)
        WHERE e.stream_id = :stream_id AND e.closed_at IS NOT NULL)
RETURNING commit_number;  -- sqlite only

-- name: count_commit
-- Count a commit that leaves the checkpoint in place; the row is its lock, and the commit id stays that of the last
-- batch. Touches no row in a closed stream.
-- params: stream_id int, partition_id varchar(8000)
UPDATE event_hub_checkpoint
   SET @commit_number = commit_number = commit_number + 1
 WHERE stream_id = :stream_id AND partition_id = :partition_id
   AND NOT EXISTS (
       SELECT 1 FROM event_stream AS e WITH (REPEATABLEREAD)
        WHERE e.stream_id = :stream_id AND e.closed_at IS NOT NULL)
RETURNING commit_number;  -- sqlite only

-- name: stay_in_order
-- Read the commit number of a locked partition. No row when a different replay has committed since the state was read:
-- it may have opened letters. No row either when the partition has a stop that the state does not know.
-- params: stream_id int, partition_id varchar(8000), read_at_commit bigint, invocation_id nvarchar(4000), knows_stop bit
SELECT @commit_number = c.commit_number
  FROM event_hub_checkpoint AS c
 WHERE c.stream_id = :stream_id AND c.partition_id = :partition_id
   AND NOT EXISTS (
       SELECT 1 FROM batch_ledger AS l
        WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id AND l.commit_number > :read_at_commit
          AND l.kind = 'replay' AND l.invocation_id <> :invocation_id)
   AND (:knows_stop = 1 OR NOT EXISTS (
       SELECT 1 FROM partition_stop AS s
        WHERE s.stream_id = :stream_id AND s.partition_id = :partition_id AND s.reason = 'held'));

-- name: lock_partition
-- Lock a partition: letters are freed while no batch, retry or replay of it commits.
-- params: stream_id int, partition_id varchar(8000)
UPDATE event_hub_checkpoint
   SET commit_number = commit_number
 WHERE stream_id = :stream_id AND partition_id = :partition_id;
