-- part: run
-- The columns of a run, in the order of the fields of AggregationRun.
r.run_id, r.job, r.run_number, r.cut_from, r.cut_to, r.engine, r.attempt, r.submits, r.status,
       CONVERT(varchar(33), r.planned_at, 126) AS planned_at, CONVERT(varchar(33), r.intent_at, 126) AS intent_at,
       r.engine_job_id, CONVERT(varchar(33), r.submitted_at, 126) AS submitted_at,
       CONVERT(varchar(33), r.closed_at, 126) AS closed_at, r.failure, r.readings, r.windows, r.lake_path,
       r.is_snapshot, r.committed_slices, r.rows_limit, r.rows_planned, r.quality,
       r.kind, CONVERT(varchar(10), r.since_day, 23) AS since_day, CONVERT(varchar(10), r.until_day, 23) AS until_day,
       r.rows_from;

-- name: read_runs
-- Read the runs below a number, the newest first.
-- params: job varchar(8000), before_number bigint, most int
SELECT {run}
  FROM aggregation_run AS r
 WHERE r.job = :job AND r.run_number < :before_number
 ORDER BY r.run_number DESC
 LIMIT :most;

-- name: find_run
-- Read one run of a job.
-- params: job varchar(8000), run_id varchar(8000)
SELECT {run}
  FROM aggregation_run AS r
 WHERE r.job = :job AND r.run_id = :run_id;

-- name: read_committed_runs
-- Read the committed runs above a number, the oldest first.
-- params: job varchar(8000), after_number bigint
SELECT {run}
  FROM aggregation_run AS r
 WHERE r.job = :job AND r.run_number > :after_number AND r.status = 'committed'
 ORDER BY r.run_number;

-- name: open_run
-- Insert a planned run, with the intent to submit it.
-- params: run_id varchar(8000), job varchar(8000), run_number bigint, cut_from nvarchar(max), cut_to nvarchar(max), engine varchar(8000), attempt int, submits int, planned_at datetime2(6), intent_at datetime2(6), rows_limit bigint, rows_planned bigint, kind varchar(8000), since_day varchar(8000), until_day varchar(8000), rows_from varchar(8000)
INSERT INTO aggregation_run
       (run_id, job, run_number, cut_from, cut_to, engine, attempt, submits, status, planned_at, intent_at,
        is_snapshot, rows_limit, rows_planned, kind, since_day, until_day, rows_from)
VALUES (:run_id, :job, :run_number, :cut_from, :cut_to, :engine, :attempt, :submits, 'submitting',
        :planned_at, :intent_at, 0, NULLIF(:rows_limit, -1),
        NULLIF(:rows_planned, -1), :kind, CONVERT(date, NULLIF(:since_day, ''), 23),
        CONVERT(date, NULLIF(:until_day, ''), 23), :rows_from);

-- name: renew_intent
-- Compare and set: touches no row when another tick has decided on a submit since, or closed the run.
-- params: run_id varchar(8000), engine varchar(8000), attempt int, intent_at datetime2(6), expected_attempt int, expected_intent_at datetime2(6)
UPDATE aggregation_run
   SET engine = :engine, attempt = :attempt, submits = submits + 1, status = 'submitting',
       intent_at = :intent_at, engine_job_id = NULL, submitted_at = NULL
 WHERE run_id = :run_id AND status IN ('submitting', 'submitted') AND attempt = :expected_attempt
   AND intent_at = :expected_intent_at
RETURNING run_id;  -- sqlite only

-- name: note_submitted
-- Compare and set: touches no row when the run is at a different attempt, or has its job already.
-- params: run_id varchar(8000), attempt int, engine_job_id nvarchar(4000), submitted_at datetime2(6)
UPDATE aggregation_run
   SET status = 'submitted', engine_job_id = :engine_job_id, submitted_at = :submitted_at
 WHERE run_id = :run_id AND status = 'submitting' AND attempt = :attempt
RETURNING run_id;

-- name: fail_run
-- Compare and set: touches no row when the run is closed, another tick has decided on a submit since, or some slices
-- are committed: the next run would count them again. The slices of a repair are right without the others.
-- params: run_id varchar(8000), attempt int, failure nvarchar(4000), closed_at datetime2(6)
UPDATE aggregation_run
   SET status = 'failed', failure = :failure, closed_at = :closed_at
 WHERE run_id = :run_id AND status IN ('submitting', 'submitted') AND attempt = :attempt
   AND (committed_slices = 0 OR kind = 'repair')
RETURNING run_id;

-- name: mark_slices
-- Compare and set, which locks the run: touches no row when another tick has committed slices since, the
-- run is closed, or a person has paused the job.
-- params: run_id varchar(8000), expected_slices int, committed_slices int
UPDATE aggregation_run
   SET committed_slices = :committed_slices
 WHERE run_id = :run_id AND status IN ('submitting', 'submitted') AND committed_slices = :expected_slices
   AND NOT EXISTS (
       SELECT 1 FROM aggregation_cut AS c WHERE c.job = aggregation_run.job AND c.paused_at IS NOT NULL)
RETURNING run_id;  -- sqlite only

-- name: close_run
-- Compare and set: touches no row when the run is closed, has a different number of slices, or its staged result was
-- taken away. Its figures are those of the result.
-- params: run_id varchar(8000), staging_id varchar(8000), expected_slices int, closed_at datetime2(6)
UPDATE aggregation_run AS r
   SET status = 'committed', closed_at = :closed_at, readings = g.rows_read, windows = g.windows,
       lake_path = g.lake_path, is_snapshot = g.is_snapshot, quality = g.quality
  FROM staged_result AS g
 WHERE g.staging_id = :staging_id AND r.run_id = :run_id AND r.status IN ('submitting', 'submitted')
   AND r.committed_slices = :expected_slices
RETURNING run_id;
-- sqlserver:
UPDATE r
   SET status = 'committed', closed_at = @closed_at, readings = g.rows_read, windows = g.windows,
       lake_path = g.lake_path, is_snapshot = g.is_snapshot, quality = g.quality
  FROM hubledger.aggregation_run AS r
 CROSS JOIN hubledger.staged_result AS g
 WHERE g.staging_id = @staging_id AND r.run_id = @run_id AND r.status IN ('submitting', 'submitted')
   AND r.committed_slices = @expected_slices;

-- name: read_runs_to_search
-- Read the failures of all runs.
-- params:
SELECT r.run_id, r.failure
  FROM aggregation_run AS r
 WHERE r.failure IS NOT NULL;

-- name: reword_run
-- Replace the failure of a run.
-- params: run_id varchar(8000), failure nvarchar(4000)
UPDATE aggregation_run
   SET failure = :failure
 WHERE run_id = :run_id;
