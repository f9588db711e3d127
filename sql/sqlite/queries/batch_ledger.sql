-- name: record_batch
-- What became of a range of events.
-- params: stream_id, partition_id, commit_number, first_sequence_number, last_sequence_number, written, filtered, dead_lettered, absent, rows_written, rows_appended, transform_version, invocation_id, committed_at
INSERT INTO batch_ledger
       (stream_id, partition_id, commit_number, kind, first_sequence_number, last_sequence_number,
        written, filtered, dead_lettered, held, absent, rows_written, rows_appended, transform_version,
        invocation_id, committed_at)
VALUES (:stream_id, :partition_id, :commit_number, 'batch', :first_sequence_number, :last_sequence_number,
        :written, :filtered, :dead_lettered, 0, :absent, :rows_written, :rows_appended, :transform_version,
        :invocation_id, :committed_at);

-- name: record_retry
-- What became of letters that were tried again, from the first to the last of them.
-- params: stream_id, partition_id, commit_number, first_sequence_number, last_sequence_number, written, filtered, dead_lettered, rows_written, rows_appended, transform_version, invocation_id, committed_at
INSERT INTO batch_ledger
       (stream_id, partition_id, commit_number, kind, first_sequence_number, last_sequence_number,
        written, filtered, dead_lettered, held, absent, rows_written, rows_appended, transform_version,
        invocation_id, committed_at)
VALUES (:stream_id, :partition_id, :commit_number, 'retry', :first_sequence_number, :last_sequence_number,
        :written, :filtered, :dead_lettered, 0, 0, :rows_written, :rows_appended, :transform_version,
        :invocation_id, :committed_at);

-- name: record_replay
-- What became of a range of events that were replayed; those that are gone count as absent. It is not part of the tiling.
-- params: stream_id, partition_id, commit_number, first_sequence_number, last_sequence_number, written, filtered, dead_lettered, absent, rows_written, rows_appended, transform_version, invocation_id, committed_at
INSERT INTO batch_ledger
       (stream_id, partition_id, commit_number, kind, first_sequence_number, last_sequence_number,
        written, filtered, dead_lettered, held, absent, rows_written, rows_appended, transform_version,
        invocation_id, committed_at)
VALUES (:stream_id, :partition_id, :commit_number, 'replay', :first_sequence_number, :last_sequence_number,
        :written, :filtered, :dead_lettered, 0, :absent, :rows_written, :rows_appended, :transform_version,
        :invocation_id, :committed_at);

-- name: find_first_replay
-- The first commit that a replay made in a partition, or NULL; its ledger rows carry the job's id.
-- params: stream_id, partition_id, invocation_id
SELECT MIN(l.commit_number) AS commit_number
  FROM batch_ledger AS l
 WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id AND l.kind = 'replay'
   AND l.invocation_id = :invocation_id;
