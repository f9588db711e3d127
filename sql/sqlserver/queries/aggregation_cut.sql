-- name: read_cut
-- Read the cut of a job and the number of its run; there is no row before its first run.
-- params: job varchar(8000)
SELECT c.cut, c.run_number
  FROM hubledger.aggregation_cut AS c
 WHERE c.job = @job;

-- name: read_commit_numbers
-- Read the number of commits of every partition of every stream, at one moment.
-- params:
SELECT c.stream_id, c.partition_id, c.commit_number
  FROM hubledger.event_hub_checkpoint AS c;

-- name: open_cut
-- Insert a job's first cut, which is before every commit.
-- params: job varchar(8000)
BEGIN TRY
    INSERT INTO hubledger.aggregation_cut (job, cut, run_number)
    SELECT @job, '{}', 0
     WHERE NOT EXISTS (SELECT 1 FROM hubledger.aggregation_cut AS c WHERE c.job = @job);
END TRY
BEGIN CATCH
    IF ERROR_NUMBER() NOT IN (2601, 2627) THROW;  -- opened by another process at the same moment
END CATCH;

-- name: number_run
-- Compare and set, which locks a plan: touches no row when the cut moved, or another tick planned first.
-- params: job varchar(8000), run_number bigint, cut_from nvarchar(max), expected_number bigint
UPDATE hubledger.aggregation_cut
   SET run_number = @run_number
 WHERE job = @job AND cut = @cut_from AND run_number = @expected_number
       AND NOT EXISTS (
           SELECT 1 FROM hubledger.aggregation_run AS r
            WHERE r.job = @job AND r.status IN ('submitting', 'submitted'));

-- name: move_cut
-- Compare and set: touches no row when the cut is not where the run begins.
-- params: job varchar(8000), cut_from nvarchar(max), cut_to nvarchar(max)
UPDATE hubledger.aggregation_cut
   SET cut = @cut_to
 WHERE job = @job AND cut = @cut_from;
