-- name: read_ledger_ends
-- Read at one moment where a partition ends: its checkpoint (-1: none), the letters that its batches made, purged ones
-- included, the commits that the checkpoint has counted, and the newest commit in the ledger. The server counts letters
-- in the indexes of the open and the settled ones, because the table itself has their bodies.
-- params: stream_id int, partition_id varchar(8000)
SELECT COALESCE((SELECT c.sequence_number FROM event_hub_checkpoint AS c
                  WHERE c.stream_id = :stream_id AND c.partition_id = :partition_id), -1) AS last_committed,
       (SELECT COUNT(*) FROM event_hub_dead_letter AS d
         WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id)
       - (SELECT COUNT(*) FROM event_hub_dead_letter AS d
           WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id
             AND d.replay_commit_number IS NOT NULL)
       + COALESCE((SELECT c.purged_letters FROM event_hub_checkpoint AS c
                   WHERE c.stream_id = :stream_id AND c.partition_id = :partition_id), 0) AS letters,
       COALESCE((SELECT c.commit_number FROM event_hub_checkpoint AS c
                  WHERE c.stream_id = :stream_id AND c.partition_id = :partition_id), 0) AS counted_commits,
       COALESCE((SELECT MAX(l.commit_number) FROM batch_ledger AS l
                  WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id), 0) AS newest_commit;
-- sqlserver:
SELECT COALESCE((SELECT c.sequence_number FROM hubledger.event_hub_checkpoint AS c
                  WHERE c.stream_id = @stream_id AND c.partition_id = @partition_id), -1) AS last_committed,
       (SELECT COUNT(*) FROM hubledger.event_hub_dead_letter AS d
         WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id
           AND d.status IN ('waiting', 'retrying', 'held', 'exhausted'))
       + (SELECT COUNT(*) FROM hubledger.event_hub_dead_letter AS s
           WHERE s.stream_id = @stream_id AND s.partition_id = @partition_id
             AND s.status IN ('resolved', 'discarded'))
       - (SELECT COUNT(*) FROM hubledger.event_hub_dead_letter AS r
           WHERE r.stream_id = @stream_id AND r.partition_id = @partition_id
             AND r.replay_commit_number IS NOT NULL)
       + COALESCE((SELECT c.purged_letters FROM hubledger.event_hub_checkpoint AS c
                   WHERE c.stream_id = @stream_id AND c.partition_id = @partition_id), 0) AS letters,
       COALESCE((SELECT c.commit_number FROM hubledger.event_hub_checkpoint AS c
                  WHERE c.stream_id = @stream_id AND c.partition_id = @partition_id), 0) AS counted_commits,
       COALESCE((SELECT MAX(l.commit_number) FROM hubledger.batch_ledger AS l
                  WHERE l.stream_id = @stream_id AND l.partition_id = @partition_id), 0) AS newest_commit;

-- name: find_piece_end
-- Find the last of some commits that has a row, else the next commit after them that has one; NULL: there is none.
-- params: stream_id int, partition_id varchar(8000), after_commit bigint, last_commit bigint
SELECT COALESCE(
       (SELECT MAX(l.commit_number) FROM batch_ledger AS l
         WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id
           AND l.commit_number > :after_commit AND l.commit_number <= :last_commit),
       (SELECT MIN(l.commit_number) FROM batch_ledger AS l
         WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id
           AND l.commit_number > :last_commit)) AS commit_number;

-- name: sum_ranges
-- Sum the ranges of some commits of a partition, and count the rows of these commits; `previous_last` is the number at
-- which the ranges before them end (-1: there are none).
-- params: stream_id int, partition_id varchar(8000), after_commit bigint, last_commit bigint, previous_last bigint
WITH ranged AS (
    SELECT l.first_sequence_number, l.last_sequence_number, l.written, l.filtered, l.dead_lettered, l.held, l.absent,
           LAG(l.last_sequence_number, 1, NULLIF(:previous_last, -1)) OVER (ORDER BY l.commit_number) AS previous_last
      FROM batch_ledger AS l
     WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id AND l.kind = 'batch'
       AND l.commit_number > :after_commit AND l.commit_number <= :last_commit
)
SELECT COALESCE(MIN(r.first_sequence_number), 0) AS first_sequence_number,
       COALESCE(MAX(r.last_sequence_number), -1) AS last_sequence_number,
       COUNT(*) AS commits,
       COALESCE(SUM((r.written)), 0) AS written,  -- sqlite only
       COALESCE(SUM((r.filtered)), 0) AS filtered,  -- sqlite only
       COALESCE(SUM((r.dead_lettered)), 0) AS dead_lettered,  -- sqlite only
       COALESCE(SUM((r.held)), 0) AS held,  -- sqlite only
       COALESCE(SUM((r.absent)), 0) AS absent,  -- sqlite only
       COALESCE(SUM(CONVERT(bigint, r.written)), 0) AS written,  -- sqlserver only
       COALESCE(SUM(CONVERT(bigint, r.filtered)), 0) AS filtered,  -- sqlserver only
       COALESCE(SUM(CONVERT(bigint, r.dead_lettered)), 0) AS dead_lettered,  -- sqlserver only
       COALESCE(SUM(CONVERT(bigint, r.held)), 0) AS held,  -- sqlserver only
       COALESCE(SUM(CONVERT(bigint, r.absent)), 0) AS absent,  -- sqlserver only
       COALESCE(SUM(CASE WHEN r.first_sequence_number <> r.previous_last + 1 THEN 1 ELSE 0 END), 0) AS holes,
       (SELECT COUNT(*) FROM batch_ledger AS l
         WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id
           AND l.commit_number > :after_commit AND l.commit_number <= :last_commit) AS rows_found
  FROM ranged AS r;

-- name: find_range_faults
-- Find ranges of some commits of a partition that do not begin where the range before ended: a hole, or an overlap.
-- params: stream_id int, partition_id varchar(8000), after_commit bigint, last_commit bigint, previous_last bigint, most int
WITH ranged AS (
    SELECT l.commit_number, l.first_sequence_number,
           LAG(l.last_sequence_number, 1, NULLIF(:previous_last, -1)) OVER (ORDER BY l.commit_number) AS previous_last
      FROM batch_ledger AS l
     WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id AND l.kind = 'batch'
       AND l.commit_number > :after_commit AND l.commit_number <= :last_commit
)
SELECT r.commit_number, r.previous_last, r.first_sequence_number
  FROM ranged AS r
 WHERE r.first_sequence_number <> r.previous_last + 1
 ORDER BY r.commit_number
 LIMIT :most;

-- name: find_total_faults
-- Find commits of a partition, of some, with wrong totals. Right are the totals of the row before plus its own counts.
-- The caller gives the totals before the first of these commits; they count if the ledger has no row there.
-- params: stream_id int, partition_id varchar(8000), after_commit bigint, last_commit bigint, commits_before bigint, written_before bigint, filtered_before bigint, dead_lettered_before bigint, held_before bigint, absent_before bigint, most int
WITH counted AS (
    SELECT l.commit_number, l.first_sequence_number, l.last_sequence_number,
           CASE WHEN l.kind = 'batch' THEN 1 ELSE 0 END AS counts,
           l.written, l.filtered, l.dead_lettered, l.held, l.absent, l.total_commits, l.total_written, l.total_filtered,
           l.total_dead_lettered, l.total_held, l.total_absent,
           LAG(l.commit_number, 1, :after_commit) OVER (ORDER BY l.commit_number) AS commit_before,
           LAG(l.total_commits, 1, :commits_before) OVER (ORDER BY l.commit_number) AS commits_before,
           LAG(l.total_written, 1, :written_before) OVER (ORDER BY l.commit_number) AS written_before,
           LAG(l.total_filtered, 1, :filtered_before) OVER (ORDER BY l.commit_number) AS filtered_before,
           LAG(l.total_dead_lettered, 1, :dead_lettered_before) OVER (ORDER BY l.commit_number) AS dead_lettered_before,
           LAG(l.total_held, 1, :held_before) OVER (ORDER BY l.commit_number) AS held_before,
           LAG(l.total_absent, 1, :absent_before) OVER (ORDER BY l.commit_number) AS absent_before
      FROM batch_ledger AS l
     WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id
       AND l.commit_number >= :after_commit AND l.commit_number <= :last_commit
)
SELECT n.commit_number, n.first_sequence_number, n.last_sequence_number
  FROM counted AS n
 WHERE n.commit_number > :after_commit AND n.commit_number = n.commit_before + 1
   AND (n.total_commits <> n.commits_before + n.counts
        OR n.total_written <> n.written_before + n.counts * n.written
        OR n.total_filtered <> n.filtered_before + n.counts * n.filtered
        OR n.total_dead_lettered <> n.dead_lettered_before + n.counts * n.dead_lettered
        OR n.total_held <> n.held_before + n.counts * n.held
        OR n.total_absent <> n.absent_before + n.counts * n.absent)
 ORDER BY n.commit_number
 LIMIT :most;

-- name: find_letter_faults
-- Find ranges of some commits of a partition that count at least so many letters, but have a different number of them.
-- params: stream_id int, partition_id varchar(8000), after_commit bigint, last_commit bigint, at_least int, most int
WITH counted AS (
    SELECT l.commit_number, l.first_sequence_number, l.last_sequence_number, l.dead_lettered + l.held AS dead_lettered,
           (SELECT COUNT(*) FROM event_hub_dead_letter AS d
             WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id
               AND d.sequence_number BETWEEN l.first_sequence_number AND l.last_sequence_number)
           - (SELECT COUNT(*) FROM event_hub_dead_letter AS d
               WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id
                 AND d.sequence_number BETWEEN l.first_sequence_number AND l.last_sequence_number
                 AND d.replay_commit_number IS NOT NULL) AS letters
      FROM batch_ledger AS l
     WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id AND l.kind = 'batch'
       AND l.commit_number > :after_commit AND l.commit_number <= :last_commit
       AND l.dead_lettered + l.held >= :at_least
)
SELECT n.commit_number, n.first_sequence_number, n.last_sequence_number, n.dead_lettered, n.letters
  FROM counted AS n
 WHERE n.letters <> n.dead_lettered
 ORDER BY n.commit_number
 LIMIT :most;

-- name: find_missing_commits
-- Find commit numbers of a partition, of some commits, without a row in the ledger: every commit leaves one.
-- params: stream_id int, partition_id varchar(8000), after_commit bigint, last_commit bigint, most int
WITH numbered AS (
    SELECT l.commit_number
      FROM batch_ledger AS l
     WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id
       AND l.commit_number > :after_commit AND l.commit_number <= :last_commit
     UNION ALL
    SELECT :last_commit + 1 AS commit_number
), ranged AS (
    SELECT n.commit_number, LAG(n.commit_number, 1, :after_commit) OVER (ORDER BY n.commit_number) AS previous
      FROM numbered AS n
)
SELECT r.previous + 1 AS first_commit_number, r.commit_number - 1 AS last_commit_number
  FROM ranged AS r
 WHERE r.commit_number > r.previous + 1
 ORDER BY r.commit_number
 LIMIT :most;

-- name: count_replay_letters
-- Count the letters that replays recorded in a partition, how many of them exist or were purged, and how many the
-- checkpoint counts (NULL: there is none).
-- params: stream_id int, partition_id varchar(8000)
SELECT (SELECT COALESCE(SUM(CONVERT(bigint, JSON_VALUE(p.report, '$.letters_added'))), 0)
          FROM task AS t
         INNER JOIN task_part AS p ON p.task_id = t.task_id AND p.part = :partition_id
         WHERE t.stream_id = :stream_id AND t.kind = 'replay' AND t.is_dry_run = 0) AS added,
       (SELECT COUNT(*)
          FROM event_hub_dead_letter AS d
         WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id
           AND d.replay_commit_number IS NOT NULL)
       + COALESCE((SELECT c.purged_replay_letters FROM event_hub_checkpoint AS c
                   WHERE c.stream_id = :stream_id AND c.partition_id = :partition_id), 0) AS letters,
       (SELECT c.letters - c.dead_lettered - c.held FROM event_hub_checkpoint AS c
         WHERE c.stream_id = :stream_id AND c.partition_id = :partition_id) AS counted;

-- name: sum_absent_gaps
-- Sum the absent gaps of a partition that begin up to a number.
-- params: stream_id int, partition_id varchar(8000), last_sequence_number bigint
SELECT COALESCE(SUM(g.last_sequence_number - g.first_sequence_number + 1), 0) AS absent
  FROM sequence_gap AS g
 WHERE g.stream_id = :stream_id AND g.partition_id = :partition_id AND g.status = 'absent'
   AND g.first_sequence_number <= :last_sequence_number;
