-- name: pause_job
-- Compare and set: touches no row when the job is paused already.
-- params: job, paused_at, paused_by, paused_why, entry
UPDATE aggregation_cut
   SET paused_at = :paused_at, paused_by = :paused_by, paused_why = :paused_why, history = history || :entry
 WHERE job = :job AND paused_at IS NULL
RETURNING job;

-- name: resume_job
-- Compare and set: touches no row when the job is not paused.
-- params: job, entry
UPDATE aggregation_cut
   SET paused_at = NULL, paused_by = NULL, paused_why = NULL, history = history || :entry
 WHERE job = :job AND paused_at IS NOT NULL
RETURNING job;

-- name: note_order
-- Add a line to the history of a job.
-- params: job, entry
UPDATE aggregation_cut
   SET history = history || :entry
 WHERE job = :job
RETURNING job;

-- name: read_history
-- Read the history of a job: a JSON object per line.
-- params: job
SELECT c.history
  FROM aggregation_cut AS c
 WHERE c.job = :job;

-- name: find_run
-- Read one run of a job.
-- params: job, run_id
SELECT r.run_id, r.job, r.run_number, r.cut_from, r.cut_to, r.engine, r.attempt, r.submits, r.status, r.planned_at,
       r.intent_at, r.engine_job_id, r.submitted_at, r.closed_at, r.failure, r.readings, r.windows, r.lake_path,
       r.is_snapshot, r.rows_limit, r.rows_planned, r.committed_slices, r.quality,
       r.kind, r.since_day, r.until_day, r.rows_from
  FROM aggregation_run AS r
 WHERE r.job = :job AND r.run_id = :run_id;

-- name: read_oldest_commit
-- Read the time of the oldest commit that is not in the aggregate; none when all are. `begun` has the stream, the
-- partition and the commit number of each place in the cut.
-- params: begun
SELECT MIN(l.committed_at) AS committed_at
  FROM event_hub_checkpoint AS c
  LEFT JOIN json_each(:begun) AS j ON j.value ->> 0 = c.stream_id AND j.value ->> 1 = c.partition_id
 CROSS JOIN batch_ledger AS l  -- in this order: one commit of each partition
    ON l.stream_id = c.stream_id AND l.partition_id = c.partition_id AND l.commit_number = COALESCE(j.value ->> 2, 0) + 1;

-- name: count_quality_faults
-- Count the runs that were committed since a time and found a fault in the quality of their rows.
-- params: since_at
SELECT COUNT(*) AS faults
  FROM aggregation_run AS r
 WHERE r.closed_at >= :since_at AND r.status = 'committed' AND r.quality ->> 'fault' IS NOT NULL;
