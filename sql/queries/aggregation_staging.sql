-- name: read_staged
-- Read the first result of a run that was staged whole.
-- params: run_id varchar(8000)
SELECT g.staging_id, g.run_id, g.attempt, CONVERT(varchar(33), g.staged_at, 126) AS staged_at, g.levels, g.overflow
  FROM staged_result AS g
 WHERE g.run_id = :run_id
 ORDER BY g.staged_at, g.staging_id
 LIMIT 1;

-- name: read_slices
-- Read the slices of each level of a staged result, in order.
-- params: staging_id varchar(8000)
SELECT g.slice, g.windows, g.whole_windows, g.level
  FROM staged_slice AS g
 WHERE g.staging_id = :staging_id
 ORDER BY g.slice, g.level;

-- name: find_closed_staging
-- Find the staged results of closed runs, also those that lost a race or are incomplete.
-- params:
SELECT g.staging_id
  FROM staged_result AS g
 WHERE g.run_id NOT IN (SELECT r.run_id FROM aggregation_run AS r WHERE r.status IN ('submitting', 'submitted'))
 UNION
SELECT g.staging_id
  FROM staged_slice AS g
 WHERE g.run_id NOT IN (SELECT r.run_id FROM aggregation_run AS r WHERE r.status IN ('submitting', 'submitted'));

-- name: remove_slices
-- Delete the facts of the slices of a staged result, whose windows are deleted already.
-- params: staging_id varchar(8000)
DELETE FROM staged_slice
 WHERE staging_id = :staging_id;

-- name: remove_staging
-- Delete a staged result, so that no tick commits it.
-- params: staging_id varchar(8000)
DELETE FROM staged_result
 WHERE staging_id = :staging_id
RETURNING staging_id;
