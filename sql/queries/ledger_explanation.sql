-- part: range
-- The columns of a range, in the order of the fields of LedgerRange.
l.commit_number, l.kind, l.first_sequence_number, l.last_sequence_number,
       l.written, l.filtered, l.dead_lettered, l.held, l.absent, l.rows_written, l.transform_version, l.invocation_id,
       CONVERT(varchar(33), l.committed_at, 126) AS committed_at;

-- name: find_range
-- Find the last range of a partition that begins at or before a number; the reader checks that it reaches the number.
-- params: stream_id int, partition_id varchar(8000), sequence_number bigint
SELECT {range}
  FROM batch_ledger AS l
 WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id AND l.kind = 'batch'
   AND l.first_sequence_number <= :sequence_number
 ORDER BY l.first_sequence_number DESC
 LIMIT 1;

-- name: find_changes
-- Find the commits that touched a number after its batch, newest first: replays around it, and retries of its letter.
-- params: stream_id int, partition_id varchar(8000), sequence_number bigint, most int
SELECT {range}
  FROM batch_ledger AS l
 WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id AND l.kind <> 'batch'
   AND l.first_sequence_number <= :sequence_number AND l.last_sequence_number >= :sequence_number
   AND (l.kind = 'replay' OR EXISTS (
        SELECT 1 FROM dead_letter_attempt AS a
         WHERE a.stream_id = :stream_id AND a.partition_id = :partition_id AND a.sequence_number = :sequence_number
           AND a.commit_number = l.commit_number))
 ORDER BY +l.commit_number DESC  -- +: by the index of the few that are no batches
 LIMIT :most;

-- name: count_erased
-- Count the rows of a number that an erasure took away: their places stand under the largest number of a commit.
-- params: stream_id int, partition_id varchar(8000), sequence_number bigint
SELECT COUNT(*) AS rows_erased
  FROM retracted_row AS r
 WHERE r.stream_id = :stream_id AND r.partition_id = :partition_id AND r.sequence_number = :sequence_number
   AND r.commit_number = 9223372036854775807;

-- name: read_ledger_rows
-- Read the next ledger rows of a partition after a commit.
-- params: stream_id int, partition_id varchar(8000), after_commit bigint, most int
SELECT {range}
  FROM batch_ledger AS l
 WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id AND l.commit_number > :after_commit
 ORDER BY l.commit_number
 LIMIT :most;

-- name: read_purged
-- Read how far a partition is purged, and its first number, in the order of the fields of Purged.
-- params: stream_id int, partition_id varchar(8000)
SELECT c.purged_commit, c.first_sequence_number, c.purged_to, CONVERT(varchar(33), c.purged_at, 126) AS purged_at
  FROM event_hub_checkpoint AS c
 WHERE c.stream_id = :stream_id AND c.partition_id = :partition_id;

-- name: find_gap
-- Find the last gap of a partition that begins at or before a number; the reader checks that it reaches the number.
-- params: stream_id int, partition_id varchar(8000), sequence_number bigint
SELECT g.first_sequence_number, g.last_sequence_number, g.status, CONVERT(varchar(33), g.found_at, 126) AS found_at,
       g.attempts
  FROM sequence_gap AS g
 WHERE g.stream_id = :stream_id AND g.partition_id = :partition_id AND g.first_sequence_number <= :sequence_number
 ORDER BY g.first_sequence_number DESC
 LIMIT 1;
