-- name: record_failure
-- Insert why a submit of a run gave no result; the first reason of a submit stands.
-- params: run_id varchar(8000), submit_number int, failed_attempt int, failed_at datetime2(6), engine_job_id nvarchar(4000), why nvarchar(4000), reason nvarchar(4000), log_tail nvarchar(max), link nvarchar(4000)
INSERT INTO aggregation_failure
       (run_id, submit_number, attempt, failed_at, engine_job_id, why, reason, log_tail, link)
SELECT :run_id, :submit_number, :failed_attempt, :failed_at,
       NULLIF(:engine_job_id, ''), :why,
       NULLIF(:reason, ''),
       NULLIF(:log_tail, ''),
       NULLIF(:link, '')
 WHERE NOT EXISTS (
       SELECT 1 FROM aggregation_failure AS f
        WHERE f.run_id = :run_id AND f.submit_number = :submit_number);

-- name: read_failures
-- Read why the submits of a run gave no result, the newest first.
-- params: run_id varchar(8000)
SELECT f.run_id, f.submit_number, f.attempt, CONVERT(varchar(33), f.failed_at, 126) AS failed_at, f.why,
       f.engine_job_id, f.reason, f.log_tail, f.link
  FROM aggregation_failure AS f
 WHERE f.run_id = :run_id
 ORDER BY f.submit_number DESC;

-- name: count_failures
-- Count the submits that failed since a time.
-- params: since_at datetime2(6)
SELECT COUNT(*) AS failures
  FROM aggregation_failure AS f
 WHERE f.failed_at >= :since_at;

-- name: read_failures_to_search
-- Read the words of engines about all runs.
-- params:
SELECT f.run_id, f.submit_number, f.why, f.reason, f.log_tail
  FROM aggregation_failure AS f;

-- name: reword_failure
-- Replace the words of an engine about a submit.
-- params: run_id varchar(8000), submit_number int, why nvarchar(4000), reason nvarchar(4000), log_tail nvarchar(max)
UPDATE aggregation_failure
   SET why = :why, reason = :reason, log_tail = :log_tail
 WHERE run_id = :run_id AND submit_number = :submit_number;
