-- name: read_cut
-- Read the cut of a job, the number of its run, who paused it, the order that waits, and its stale tables in the lake;
-- there is no row before its first run.
-- params: job varchar(8000)
SELECT c.cut, c.run_number, CONVERT(varchar(33), c.paused_at, 126) AS paused_at, c.paused_by, c.paused_why,
       c.ordered_kind, CONVERT(varchar(10), c.ordered_since, 23) AS ordered_since,
       CONVERT(varchar(10), c.ordered_until, 23) AS ordered_until,
       CONVERT(varchar(33), c.ordered_at, 126) AS ordered_at, c.ordered_by, c.ordered_why,
       c.stale
  FROM aggregation_cut AS c
 WHERE c.job = :job;

-- name: note_stale
-- Write which tables of a job in the lake are not up to date, as JSON: each with the time since which that is so.
-- params: job varchar(8000), stale nvarchar(max)
UPDATE aggregation_cut
   SET stale = :stale
 WHERE job = :job;

-- name: read_commit_numbers
-- Read the number of commits of every partition of every stream, at one moment.
-- params:
SELECT c.stream_id, c.partition_id, c.commit_number
  FROM event_hub_checkpoint AS c;

-- name: read_reach
-- Read how far a run goes that begins at a cut: per partition the number of its last commit, the rows of its commits, and
-- whether one wrote rows or may have taken some away.
-- The commits of all partitions are walked side by side, until those before have `most_rows`; at least one is taken.
-- `begun` has the stream, the partition and the commit number of each place in the cut.
-- params: begun nvarchar(max), most_rows bigint, most_commits bigint
WITH pending AS (
    SELECT l.stream_id, l.partition_id, l.commit_number, CONVERT(bigint, l.rows_written) AS rows_written,
           CASE WHEN l.rows_written > 0 OR l.kind = 'replay' THEN 1 ELSE 0 END AS is_change,
           SUM(CONVERT(bigint, l.rows_written)) OVER (PARTITION BY l.stream_id, l.partition_id ORDER BY l.commit_number
                                                      ROWS UNBOUNDED PRECEDING) - l.rows_written AS rows_before
      FROM event_hub_checkpoint AS c
      LEFT JOIN rows(:begun) AS j (stream_id int, partition_id varchar(40), commit_number bigint)
        ON j.stream_id = c.stream_id AND j.partition_id = c.partition_id  -- sqlite only
        ON j.stream_id = c.stream_id AND c.partition_id = j.partition_id COLLATE Latin1_General_100_BIN2  -- sqlserver only
     CROSS JOIN batch_ledger AS l  -- in this order: by partition, and only the commits after its cut  -- sqlite only
     INNER JOIN batch_ledger AS l  -- sqlserver only
        ON l.stream_id = c.stream_id AND l.partition_id = c.partition_id
       AND l.commit_number > COALESCE(j.commit_number, 0)
       AND l.commit_number <= MIN(c.commit_number, COALESCE(j.commit_number, 0) + :most_commits)  -- sqlite only
       AND l.commit_number <= c.commit_number  -- sqlserver only
       AND l.commit_number <= COALESCE(j.commit_number, 0) + :most_commits  -- sqlserver only
), walked AS (
    SELECT p.stream_id, p.partition_id, p.commit_number, p.rows_written, p.is_change,
           SUM(p.rows_written) OVER (ORDER BY p.rows_before, p.stream_id, p.partition_id, p.commit_number
                                     ROWS UNBOUNDED PRECEDING) - p.rows_written AS rows_before
      FROM pending AS p
)
SELECT w.stream_id, w.partition_id, MAX(w.commit_number) AS commit_number, SUM(w.rows_written) AS rows_written,
       MAX(w.is_change) AS has_changes
  FROM walked AS w
 WHERE w.rows_before < :most_rows
 GROUP BY w.stream_id, w.partition_id;

-- name: open_cut
-- Insert a job's first cut, which is before every commit.
-- params: job varchar(8000), levels varchar(8000)
-- races: opened by another process at the same moment
INSERT INTO aggregation_cut (job, cut, run_number, levels)
SELECT :job, '{}', 0, :levels
 WHERE NOT EXISTS (SELECT 1 FROM aggregation_cut AS c WHERE c.job = :job);

-- name: number_run
-- Compare and set, which locks a plan: touches no row when the cut moved, the job is paused, or another tick
-- planned first.
-- params: job varchar(8000), run_number bigint, cut_from nvarchar(max), expected_number bigint
UPDATE aggregation_cut
   SET run_number = :run_number
 WHERE job = :job AND cut = :cut_from AND run_number = :expected_number AND paused_at IS NULL
       AND NOT EXISTS (
           SELECT 1 FROM aggregation_run AS r
            WHERE r.job = :job AND r.status IN ('submitting', 'submitted'))
RETURNING run_number;  -- sqlite only

-- name: hold_levels
-- Compare and set, which locks the cut: touches no row when a migration has given the job levels that this code does
-- not know, or not yet those that this code declares. The levels stay as they are.
-- params: job varchar(8000), levels varchar(8000)
UPDATE aggregation_cut
   SET levels = :levels
 WHERE job = :job AND levels = :levels
RETURNING job;  -- sqlite only

-- name: move_cut
-- Compare and set: touches no row when the cut is not where the run begins, or a person has paused the job.
-- params: job varchar(8000), cut_from nvarchar(max), cut_to nvarchar(max)
UPDATE aggregation_cut
   SET cut = :cut_to
 WHERE job = :job AND cut = :cut_from AND paused_at IS NULL
RETURNING run_number;  -- sqlite only
