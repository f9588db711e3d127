-- name: read_staged
-- Read the first result of a run that was staged whole.
-- params: run_id
SELECT g.staging_id, g.run_id, g.attempt, g.staged_at
  FROM aggregation_staging AS g
 WHERE g.run_id = :run_id
 ORDER BY g.staged_at, g.staging_id
 LIMIT 1;

-- name: find_closed_staging
-- Find the staged results of closed runs, also those that lost a race or are incomplete.
-- params:
SELECT g.staging_id
  FROM home_activity_staging AS g
 WHERE g.run_id NOT IN (SELECT r.run_id FROM aggregation_run AS r WHERE r.status IN ('submitting', 'submitted'))
 UNION
SELECT g.staging_id
  FROM aggregation_staging AS g
 WHERE g.run_id NOT IN (SELECT r.run_id FROM aggregation_run AS r WHERE r.status IN ('submitting', 'submitted'));

-- name: remove_staging
-- Delete the mark of a staged result, which is then never committed; touches no row when it is gone.
-- params: staging_id
DELETE FROM aggregation_staging
 WHERE staging_id = :staging_id
RETURNING staging_id;
