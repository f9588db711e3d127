-- name: read_checkpoint
-- Read the checkpoint of a partition, the time of the newest erasure, and the number of erasures.
-- params: stream_id int, partition_id varchar(8000)
SELECT c.sequence_number, c.offset_token, c.enqueued_at, c.commit_number,
       CONVERT(varchar(36), c.commit_id) AS commit_id, c.unknown_fields,
       (SELECT MAX(s.erased_at) FROM erased_subject AS s) AS erased_at, e.erasures
  FROM event_hub_checkpoint AS c
 INNER JOIN event_stream AS e ON e.stream_id = c.stream_id
 WHERE c.stream_id = :stream_id AND c.partition_id = :partition_id;

-- name: count_replay
-- Count a commit that leaves the checkpoint in place; the row is its lock. Touches no row for events after the
-- checkpoint, in a closed stream, or after an erasure that the plan does not know.
-- params: stream_id int, partition_id varchar(8000), last_sequence_number bigint, known_erasures int
UPDATE event_hub_checkpoint
   SET @commit_number = commit_number = commit_number + 1
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND sequence_number >= :last_sequence_number
   AND NOT EXISTS (
       SELECT 1 FROM event_stream AS e WITH (REPEATABLEREAD)
        WHERE e.stream_id = :stream_id AND (e.closed_at IS NOT NULL OR e.erasures > :known_erasures))
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
-- closed stream, or after an erasure that the plan does not know.
-- params: stream_id int, partition_id varchar(8000), sequence_number bigint, offset_token nvarchar(4000), enqueued_at datetime2(6), commit_id uniqueidentifier, updated_at datetime2(6), first_sequence_number bigint, written bigint, filtered bigint, dead_lettered bigint, held bigint, absent bigint, known_erasures int
SET @commit_number = 1;  -- sqlserver only
INSERT INTO event_hub_checkpoint
       (stream_id, partition_id, sequence_number, offset_token, enqueued_at, commit_number, commit_id, updated_at,
        first_sequence_number, commits, written, filtered, dead_lettered, held, absent, letters)
SELECT :stream_id, :partition_id, :sequence_number, :offset_token, :enqueued_at, 1, :commit_id, :updated_at,
       :first_sequence_number, 1, :written, :filtered, :dead_lettered, :held, :absent, :dead_lettered + :held
 WHERE NOT EXISTS (
       SELECT 1 FROM event_hub_checkpoint AS c  -- sqlserver only
        WHERE c.stream_id = :stream_id AND c.partition_id = :partition_id)  -- sqlserver only
   AND NOT EXISTS (  -- sqlserver only
       SELECT 1 FROM event_stream AS e WITH (REPEATABLEREAD)
        WHERE e.stream_id = :stream_id AND (e.closed_at IS NOT NULL OR e.erasures > :known_erasures))
ON CONFLICT (stream_id, partition_id) DO NOTHING  -- sqlite only
RETURNING commit_number;  -- sqlite only

-- name: advance_checkpoint
-- Compare and set: touches no row when another owner moved the checkpoint first, the stream is closed, or the plan does
-- not know an erasure. The totals move with it.
-- params: stream_id int, partition_id varchar(8000), sequence_number bigint, offset_token nvarchar(4000), enqueued_at datetime2(6), commit_id uniqueidentifier, updated_at datetime2(6), written bigint, filtered bigint, dead_lettered bigint, held bigint, absent bigint, expected bigint, known_erasures int
UPDATE event_hub_checkpoint
   SET sequence_number = :sequence_number, offset_token = :offset_token, enqueued_at = :enqueued_at,
       @commit_number = commit_number = commit_number + 1, commit_id = :commit_id, updated_at = :updated_at,
       commits = commits + 1, written = written + :written, filtered = filtered + :filtered,
       dead_lettered = dead_lettered + :dead_lettered, held = held + :held, absent = absent + :absent,
       letters = letters + :dead_lettered + :held
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND sequence_number = :expected
   AND NOT EXISTS (
       SELECT 1 FROM event_stream AS e WITH (REPEATABLEREAD)
        WHERE e.stream_id = :stream_id AND (e.closed_at IS NOT NULL OR e.erasures > :known_erasures))
RETURNING commit_number;  -- sqlite only

-- name: count_commit
-- Count a commit that leaves the checkpoint in place; the row is its lock, and the commit id stays that of the last
-- batch. Touches no row in a closed stream, or after an erasure that the plan does not know.
-- params: stream_id int, partition_id varchar(8000), known_erasures int
UPDATE event_hub_checkpoint
   SET @commit_number = commit_number = commit_number + 1
 WHERE stream_id = :stream_id AND partition_id = :partition_id
   AND NOT EXISTS (
       SELECT 1 FROM event_stream AS e WITH (REPEATABLEREAD)
        WHERE e.stream_id = :stream_id AND (e.closed_at IS NOT NULL OR e.erasures > :known_erasures))
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

-- name: count_made_letters
-- Count the letters that a replay made; the checkpoint is locked already.
-- params: stream_id int, partition_id varchar(8000), letters_added bigint
UPDATE event_hub_checkpoint
   SET letters = letters + :letters_added
 WHERE stream_id = :stream_id AND partition_id = :partition_id;

-- name: note_unknown_fields
-- Store the counts of unknown fields after a batch; the checkpoint is locked already. Touches no row when the
-- stored counts differ from the ones that the batch read: an erasure has changed them.
-- params: stream_id int, partition_id varchar(8000), unknown_fields nvarchar(max), known_fields nvarchar(max)
UPDATE event_hub_checkpoint
   SET unknown_fields = :unknown_fields
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND unknown_fields = :known_fields;

-- name: read_unknown_to_search
-- Read the counts of unknown fields of all partitions.
-- params:
SELECT c.stream_id, c.partition_id, c.unknown_fields
  FROM event_hub_checkpoint AS c
 WHERE c.unknown_fields <> '{}';

-- name: reword_unknown
-- Replace the counts of unknown fields of a partition.
-- params: stream_id int, partition_id varchar(8000), unknown_fields nvarchar(max)
UPDATE event_hub_checkpoint
   SET unknown_fields = :unknown_fields
 WHERE stream_id = :stream_id AND partition_id = :partition_id;

-- name: read_totals
-- Read the totals of a partition's batches: those of its checkpoint, and those before the first commit that is not purged.
-- params: stream_id int, partition_id varchar(8000)
SELECT c.written, c.filtered, c.dead_lettered, c.held, c.absent, c.commit_number, c.first_sequence_number,
       c.first_sequence_number + c.written + c.filtered + c.dead_lettered + c.held + c.absent - 1 AS last_sequence_number,
       c.commits, 0 AS holes, 0 AS rows_read,
       COALESCE(p.total_written - CASE WHEN p.kind = 'batch' THEN p.written ELSE 0 END, 0) AS purged_written,
       COALESCE(p.total_filtered - CASE WHEN p.kind = 'batch' THEN p.filtered ELSE 0 END, 0) AS purged_filtered,
       COALESCE(p.total_dead_lettered - CASE WHEN p.kind = 'batch' THEN p.dead_lettered ELSE 0 END, 0)
           AS purged_dead_lettered,
       COALESCE(p.total_held - CASE WHEN p.kind = 'batch' THEN p.held ELSE 0 END, 0) AS purged_held,
       COALESCE(p.total_absent - CASE WHEN p.kind = 'batch' THEN p.absent ELSE 0 END, 0) AS purged_absent,
       c.purged_commit, c.first_sequence_number AS purged_first, c.purged_to,
       COALESCE(p.total_commits - CASE WHEN p.kind = 'batch' THEN 1 ELSE 0 END, 0) AS purged_commits,
       0 AS purged_holes, 0 AS purged_rows
  FROM event_hub_checkpoint AS c
  LEFT JOIN batch_ledger AS p
    ON p.stream_id = c.stream_id AND p.partition_id = c.partition_id AND p.commit_number = c.purged_commit + 1
   AND c.purged_commit > 0
 WHERE c.stream_id = :stream_id AND c.partition_id = :partition_id;
