-- name: read_staged
-- Read the first result of a run that was staged whole.
-- params: run_id varchar(8000)
SELECT TOP (1) g.staging_id, g.run_id, g.attempt, CONVERT(varchar(33), g.staged_at, 126) AS staged_at
  FROM hubledger.aggregation_staging AS g
 WHERE g.run_id = @run_id
 ORDER BY g.staged_at, g.staging_id;

-- name: find_closed_staging
-- Find the staged results of closed runs, also those that lost a race or are incomplete.
-- params:
SELECT g.staging_id
  FROM hubledger.home_activity_staging AS g
 WHERE g.run_id NOT IN (SELECT r.run_id FROM hubledger.aggregation_run AS r WHERE r.status IN ('submitting', 'submitted'))
 UNION
SELECT g.staging_id
  FROM hubledger.aggregation_staging AS g
 WHERE g.run_id NOT IN (SELECT r.run_id FROM hubledger.aggregation_run AS r WHERE r.status IN ('submitting', 'submitted'));

-- name: remove_staging
-- Delete the mark of a staged result, which is then never committed; touches no row when it is gone.
-- params: staging_id varchar(8000)
DELETE FROM hubledger.aggregation_staging
 WHERE staging_id = @staging_id;
