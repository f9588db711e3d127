-- name: record_batch
-- Record the outcomes of a range of events. The totals are those of the checkpoint, which was moved before.
-- params: stream_id int, partition_id varchar(8000), commit_number bigint, first_sequence_number bigint, last_sequence_number bigint, written bigint, filtered bigint, dead_lettered bigint, held bigint, absent bigint, rows_written int, rows_appended int, transform_version nvarchar(4000), invocation_id nvarchar(4000), committed_at datetime2(6)
INSERT INTO batch_ledger
       (stream_id, partition_id, commit_number, kind, first_sequence_number, last_sequence_number,
        written, filtered, dead_lettered, held, absent, rows_written, rows_appended, transform_version,
        invocation_id, committed_at,
        total_commits, total_written, total_filtered, total_dead_lettered, total_held, total_absent)
SELECT :stream_id, :partition_id, :commit_number, 'batch', :first_sequence_number, :last_sequence_number,
       :written, :filtered, :dead_lettered, :held, :absent, :rows_written, :rows_appended, :transform_version,
       :invocation_id, :committed_at,
       c.commits, c.written, c.filtered, c.dead_lettered, c.held, c.absent
  FROM event_hub_checkpoint AS c
 WHERE c.stream_id = :stream_id AND c.partition_id = :partition_id;

-- name: record_change
-- Record the outcomes of a retry, from its first letter to its last, or of replayed events; those that are gone count as
-- absent. The row is no part of the tiling.
-- params: stream_id int, partition_id varchar(8000), commit_number bigint, kind varchar(8000), first_sequence_number bigint, last_sequence_number bigint, written bigint, filtered bigint, dead_lettered bigint, held bigint, absent bigint, rows_written int, rows_appended int, transform_version nvarchar(4000), invocation_id nvarchar(4000), committed_at datetime2(6)
INSERT INTO batch_ledger
       (stream_id, partition_id, commit_number, kind, first_sequence_number, last_sequence_number,
        written, filtered, dead_lettered, held, absent, rows_written, rows_appended, transform_version,
        invocation_id, committed_at,
        total_commits, total_written, total_filtered, total_dead_lettered, total_held, total_absent)
SELECT :stream_id, :partition_id, :commit_number, :kind, :first_sequence_number, :last_sequence_number,
       :written, :filtered, :dead_lettered, :held, :absent, :rows_written, :rows_appended, :transform_version,
       :invocation_id, :committed_at,
       c.commits, c.written, c.filtered, c.dead_lettered, c.held, c.absent
  FROM event_hub_checkpoint AS c
 WHERE c.stream_id = :stream_id AND c.partition_id = :partition_id;

-- name: read_past
-- Count the events of the batches among the 200 commits of a partition up to one, and those that failed.
-- params: stream_id int, partition_id varchar(8000), last_commit bigint
SELECT COALESCE(SUM(l.dead_lettered), 0) AS failed,
       COALESCE(SUM(l.written + l.filtered + l.dead_lettered), 0) AS events
  FROM (SELECT b.kind, b.written, b.filtered, b.dead_lettered
          FROM batch_ledger AS b
         WHERE b.stream_id = :stream_id AND b.partition_id = :partition_id AND b.commit_number <= :last_commit
         ORDER BY b.commit_number DESC
         LIMIT 200) AS l
 WHERE l.kind = 'batch';

-- name: find_first_replay
-- Find the first commit of a replay in a partition, or NULL; its ledger rows carry the job's id.
-- params: stream_id int, partition_id varchar(8000), invocation_id nvarchar(4000)
SELECT MIN(l.commit_number) AS commit_number
  FROM batch_ledger AS l INDEXED BY ix_batch_ledger_change
 WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id AND l.kind <> 'batch'
   AND l.kind = 'replay' AND l.invocation_id = :invocation_id;
