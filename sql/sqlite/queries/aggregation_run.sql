-- name: read_runs
-- Read the runs below a number, the newest first.
-- params: job, before_number, most
SELECT r.run_id, r.job, r.run_number, r.cut_from, r.cut_to, r.engine, r.attempt, r.submits, r.status, r.planned_at,
       r.intent_at, r.engine_job_id, r.submitted_at, r.closed_at, r.failure, r.readings, r.windows, r.lake_path,
       r.is_snapshot, r.rows_limit, r.rows_planned, r.committed_slices, r.quality,
       r.kind, r.since_day, r.until_day, r.rows_from
  FROM aggregation_run AS r
 WHERE r.job = :job AND r.run_number < :before_number
 ORDER BY r.run_number DESC
 LIMIT :most;

-- name: read_committed_runs
-- Read the committed runs above a number, the oldest first.
-- params: job, after_number
SELECT r.run_id, r.job, r.run_number, r.cut_from, r.cut_to, r.engine, r.attempt, r.submits, r.status, r.planned_at,
       r.intent_at, r.engine_job_id, r.submitted_at, r.closed_at, r.failure, r.readings, r.windows, r.lake_path,
       r.is_snapshot, r.rows_limit, r.rows_planned, r.committed_slices, r.quality,
       r.kind, r.since_day, r.until_day, r.rows_from
  FROM aggregation_run AS r
 WHERE r.job = :job AND r.run_number > :after_number AND r.status = 'committed'
 ORDER BY r.run_number;

-- name: open_run
-- Insert a planned run, with the intent to submit it.
-- params: run_id, job, run_number, cut_from, cut_to, engine, attempt, submits, planned_at, intent_at, rows_limit, rows_planned, kind, since_day, until_day, rows_from
INSERT INTO aggregation_run
       (run_id, job, run_number, cut_from, cut_to, engine, attempt, submits, status, planned_at, intent_at,
        is_snapshot, rows_limit, rows_planned, kind, since_day, until_day, rows_from)
VALUES (:run_id, :job, :run_number, :cut_from, :cut_to, :engine, :attempt, :submits, 'submitting',
        :planned_at, :intent_at, 0, NULLIF(:rows_limit, -1),
        NULLIF(:rows_planned, -1), :kind, NULLIF(:since_day, ''), NULLIF(:until_day, ''), :rows_from);

-- name: renew_intent
-- Compare and set: touches no row when another tick has decided on a submit since, or closed the run.
-- params: run_id, engine, attempt, intent_at, expected_attempt, expected_intent_at
UPDATE aggregation_run
   SET engine = :engine, attempt = :attempt, submits = submits + 1, status = 'submitting',
       intent_at = :intent_at, engine_job_id = NULL, submitted_at = NULL
 WHERE run_id = :run_id AND status IN ('submitting', 'submitted') AND attempt = :expected_attempt
   AND intent_at = :expected_intent_at
RETURNING run_id;

-- name: note_submitted
-- Compare and set: touches no row when the run is at a different attempt, or has its job already.
-- params: run_id, attempt, engine_job_id, submitted_at
UPDATE aggregation_run
   SET status = 'submitted', engine_job_id = :engine_job_id, submitted_at = :submitted_at
 WHERE run_id = :run_id AND status = 'submitting' AND attempt = :attempt
RETURNING run_id;

-- name: fail_run
-- Compare and set: touches no row when the run is closed, another tick has decided on a submit since, or some slices
-- are committed: the next run would count them again. The slices of a repair are right without the others.
-- params: run_id, attempt, failure, closed_at
UPDATE aggregation_run
   SET status = 'failed', failure = :failure, closed_at = :closed_at
 WHERE run_id = :run_id AND status IN ('submitting', 'submitted') AND attempt = :attempt
   AND (committed_slices = 0 OR kind = 'repair')
RETURNING run_id;

-- name: mark_slices
-- Compare and set, which locks the run: touches no row when another tick has committed slices since, the
-- run is closed, or a person has paused the job.
-- params: run_id, cut_from, expected_slices, committed_slices
UPDATE aggregation_run
   SET committed_slices = :committed_slices
 WHERE run_id = :run_id AND cut_from = :cut_from AND status IN ('submitting', 'submitted')
   AND committed_slices = :expected_slices
   AND NOT EXISTS (
       SELECT 1 FROM aggregation_cut AS c WHERE c.job = aggregation_run.job AND c.paused_at IS NOT NULL)
RETURNING run_id;

-- name: close_run
-- Compare and set: touches no row when the run is closed, has a different number of slices, or its staged result was
-- taken away. Its figures are those of the result.
-- params: run_id, staging_id, expected_slices, closed_at
UPDATE aggregation_run AS r
   SET status = 'committed', closed_at = :closed_at, readings = g.rows_read, windows = g.windows,
       lake_path = g.lake_path, is_snapshot = g.is_snapshot, quality = g.quality
  FROM staged_result AS g
 WHERE g.staging_id = :staging_id AND r.run_id = :run_id AND r.status IN ('submitting', 'submitted')
   AND r.committed_slices = :expected_slices
RETURNING run_id;
