-- name: read_staged
-- Read the first result of a run that was staged whole.
-- params: run_id
SELECT g.staging_id, g.run_id, g.attempt, g.staged_at
  FROM aggregation_staging AS g
 WHERE g.run_id = :run_id
 ORDER BY g.staged_at, g.staging_id
 LIMIT 1;

-- name: remove_staging
-- Delete the staged results of closed runs, also those that lost a race or are incomplete.
-- params:
DELETE FROM aggregation_staging
 WHERE run_id NOT IN (SELECT r.run_id FROM aggregation_run AS r WHERE r.status IN ('submitting', 'submitted'));
