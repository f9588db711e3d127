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

-- name: read_ledgers
-- The books of every partition: the sums of its ranges, how many do not begin where the one before ended or
-- the partition is anchored, its letters, less those that replays made of events that the ranges count as written
-- or filtered.
-- params:
WITH ranged AS (
    SELECT l.stream_id, l.partition_id, l.first_sequence_number, l.last_sequence_number,
           l.written, l.filtered, l.dead_lettered, l.held, l.absent,
           COALESCE(
               LAG(l.last_sequence_number) OVER (
                   PARTITION BY l.stream_id, l.partition_id ORDER BY l.first_sequence_number),
               a.sequence_number - 1
           ) AS previous_last
      FROM batch_ledger AS l
      LEFT JOIN partition_anchor AS a ON a.stream_id = l.stream_id AND a.partition_id = l.partition_id
     WHERE l.kind = 'batch'
), summed AS (
    SELECT r.stream_id, r.partition_id, MIN(r.first_sequence_number) AS first_sequence_number,
           MAX(r.last_sequence_number) AS last_sequence_number, COUNT(*) AS commits,
           SUM(CASE WHEN r.first_sequence_number <> r.previous_last + 1 THEN 1 ELSE 0 END) AS holes,
           SUM(r.written) AS written, SUM(r.filtered) AS filtered, SUM(r.dead_lettered) AS dead_lettered,
           SUM(r.held) AS held, SUM(r.absent) AS absent
      FROM ranged AS r
     GROUP BY r.stream_id, r.partition_id
)
SELECT e.event_hub, e.consumer_group, c.partition_id, c.sequence_number, COALESCE(s.first_sequence_number, 0),
       COALESCE(s.last_sequence_number, -1), COALESCE(s.commits, 0), COALESCE(s.holes, 0), COALESCE(s.written, 0),
       COALESCE(s.filtered, 0), COALESCE(s.dead_lettered, 0), COALESCE(s.held, 0), COALESCE(s.absent, 0),
       (SELECT COUNT(*) FROM event_hub_dead_letter AS d
         WHERE d.stream_id = c.stream_id AND d.partition_id = c.partition_id)
       - COALESCE((SELECT SUM(p.letters_added) FROM replay_progress AS p
                    INNER JOIN replay_job AS j ON j.job_id = p.job_id
                    WHERE p.stream_id = c.stream_id AND p.partition_id = c.partition_id AND j.is_dry_run = 0), 0) AS letters
  FROM event_hub_checkpoint AS c
 INNER JOIN event_stream AS e ON e.stream_id = c.stream_id
  LEFT JOIN summed AS s ON s.stream_id = c.stream_id AND s.partition_id = c.partition_id
 ORDER BY c.stream_id, LENGTH(c.partition_id), c.partition_id;

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
