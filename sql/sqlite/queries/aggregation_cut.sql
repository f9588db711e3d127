-- name: read_cut
-- Read the cut of a job and the number of its run; there is no row before its first run.
-- params: job
SELECT c.cut, c.run_number
  FROM aggregation_cut AS c
 WHERE c.job = :job;

-- name: read_commit_numbers
-- Read the number of commits of every partition of every stream, at one moment.
-- params:
SELECT c.stream_id, c.partition_id, c.commit_number
  FROM event_hub_checkpoint AS c;

-- name: open_cut
-- Insert a job's first cut, which is before every commit.
-- params: job
INSERT INTO aggregation_cut (job, cut, run_number)
SELECT :job, '{}', 0
 WHERE NOT EXISTS (SELECT 1 FROM aggregation_cut AS c WHERE c.job = :job);

-- name: number_run
-- Compare and set, which locks a plan: touches no row when the cut moved, or another tick planned first.
-- params: job, run_number, cut_from, expected_number
UPDATE aggregation_cut
   SET run_number = :run_number
 WHERE job = :job AND cut = :cut_from AND run_number = :expected_number
       AND NOT EXISTS (
           SELECT 1 FROM aggregation_run AS r
            WHERE r.job = :job AND r.status IN ('submitting', 'submitted'))
RETURNING run_number;

-- name: move_cut
-- Compare and set: touches no row when the cut is not where the run begins.
-- params: job, cut_from, cut_to
UPDATE aggregation_cut
   SET cut = :cut_to
 WHERE job = :job AND cut = :cut_from
RETURNING run_number;
