-- name: read_staged
-- The first result of a run that was staged whole.
-- params: run_id
SELECT g.staging_id, g.run_id, g.attempt, g.staged_at
  FROM aggregation_staging AS g
 WHERE g.run_id = :run_id
 ORDER BY g.staged_at, g.staging_id
 LIMIT 1;

-- name: remove_staging
-- What runs that are closed have staged, the losers of a race and half results too.
-- params:
DELETE FROM aggregation_staging
 WHERE run_id NOT IN (SELECT r.run_id FROM aggregation_run AS r WHERE r.status IN ('submitting', 'submitted'));
