-- name: pause_job
-- Compare and set: touches no row when the job is paused already.
-- params: job varchar(8000), paused_at datetime2(6), paused_by nvarchar(4000), paused_why nvarchar(4000), entry nvarchar(max)
UPDATE aggregation_cut
   SET paused_at = :paused_at, paused_by = :paused_by, paused_why = :paused_why, history = history || :entry
 WHERE job = :job AND paused_at IS NULL
RETURNING job;

-- name: resume_job
-- Compare and set: touches no row when the job is not paused.
-- params: job varchar(8000), entry nvarchar(max)
UPDATE aggregation_cut
   SET paused_at = NULL, paused_by = NULL, paused_why = NULL, history = history || :entry
 WHERE job = :job AND paused_at IS NOT NULL
RETURNING job;

-- name: note_order
-- Add a line to the history of a job.
-- params: job varchar(8000), entry nvarchar(max)
UPDATE aggregation_cut
   SET history = history || :entry
 WHERE job = :job
RETURNING job;  -- sqlite only

-- name: read_history
-- Read the history of a job: a JSON object per line.
-- params: job varchar(8000)
SELECT c.history
  FROM aggregation_cut AS c
 WHERE c.job = :job;

-- name: read_stale
-- Read which tables in the lake are not up to date, a JSON object a job.
-- params:
SELECT c.stale
  FROM aggregation_cut AS c
 WHERE c.stale IS NOT NULL;

-- name: read_oldest_commit
-- Read the time of the oldest commit that is not in the aggregate, and wrote rows or may have taken some away; none when
-- all are in. `begun` has the stream, the partition and the commit number of each place in the cut.
-- params: begun nvarchar(max)
SELECT CONVERT(varchar(33), MIN(l.committed_at), 126) AS committed_at
  FROM event_hub_checkpoint AS c
  LEFT JOIN rows(:begun) AS j (stream_id int, partition_id varchar(40), commit_number bigint)
    ON j.stream_id = c.stream_id AND j.partition_id = c.partition_id  -- sqlite only
    ON j.stream_id = c.stream_id AND c.partition_id = j.partition_id COLLATE Latin1_General_100_BIN2  -- sqlserver only
 CROSS JOIN batch_ledger AS l  -- in this order: one commit of each partition  -- sqlite only
 INNER JOIN batch_ledger AS l  -- sqlserver only
    ON l.stream_id = c.stream_id AND l.partition_id = c.partition_id
   AND l.commit_number = (
       SELECT MIN(x.commit_number) FROM batch_ledger AS x
        WHERE x.stream_id = c.stream_id AND x.partition_id = c.partition_id
          AND x.commit_number > COALESCE(j.commit_number, 0) AND (x.rows_written > 0 OR x.kind = 'replay'));

-- name: count_quality_faults
-- Count the runs that were committed since a time and found a fault in the quality of their rows.
-- params: since_at datetime2(6)
SELECT COUNT(*) AS faults
  FROM aggregation_run AS r
 WHERE r.closed_at >= :since_at AND r.status = 'committed' AND JSON_VALUE(r.quality, '$.fault') IS NOT NULL;
