-- name: audit_ledger
-- Sum the ranges of a partition from the first, and count the letters that its batches made; -1 is no number.
-- params: stream_id int, partition_id varchar(8000)
WITH ranged AS (
    SELECT l.first_sequence_number, l.last_sequence_number, l.written, l.filtered, l.dead_lettered, l.held, l.absent,
           LAG(l.last_sequence_number) OVER (ORDER BY l.commit_number) AS previous_last
      FROM hubledger.batch_ledger AS l
     WHERE l.stream_id = @stream_id AND l.partition_id = @partition_id AND l.kind = 'batch'
), summed AS (
    SELECT MIN(r.first_sequence_number) AS first_sequence_number, MAX(r.last_sequence_number) AS last_sequence_number,
           COUNT(*) AS commits,
           SUM(CASE WHEN r.first_sequence_number <> r.previous_last + 1 THEN 1 ELSE 0 END) AS holes,
           SUM(CONVERT(bigint, r.written)) AS written,
           SUM(CONVERT(bigint, r.filtered)) AS filtered,
           SUM(CONVERT(bigint, r.dead_lettered)) AS dead_lettered,
           SUM(CONVERT(bigint, r.held)) AS held,
           SUM(CONVERT(bigint, r.absent)) AS absent
      FROM ranged AS r
)
SELECT COALESCE((SELECT c.sequence_number FROM hubledger.event_hub_checkpoint AS c
                  WHERE c.stream_id = @stream_id AND c.partition_id = @partition_id), -1) AS last_committed,
       COALESCE(s.first_sequence_number, 0), COALESCE(s.last_sequence_number, -1),
       s.commits, COALESCE(s.holes, 0), COALESCE(s.written, 0), COALESCE(s.filtered, 0),
       COALESCE(s.dead_lettered, 0), COALESCE(s.held, 0), COALESCE(s.absent, 0),
       (SELECT COUNT(*) FROM hubledger.event_hub_dead_letter AS d
         WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id)
       - (SELECT COUNT(*) FROM hubledger.event_hub_dead_letter AS d
           WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id
             AND d.replay_commit_number IS NOT NULL) AS letters,
       COALESCE((SELECT c.commit_number FROM hubledger.event_hub_checkpoint AS c
                  WHERE c.stream_id = @stream_id AND c.partition_id = @partition_id), 0) AS counted_commits,
       COALESCE((SELECT MAX(l.commit_number) FROM hubledger.batch_ledger AS l
                  WHERE l.stream_id = @stream_id AND l.partition_id = @partition_id), 0) AS newest_commit
  FROM summed AS s;

-- name: find_range_faults
-- Find ranges of a partition that do not begin where the commit before ended: a hole, or an overlap.
-- params: stream_id int, partition_id varchar(8000), most int
WITH ranged AS (
    SELECT l.commit_number, l.first_sequence_number,
           LAG(l.last_sequence_number) OVER (ORDER BY l.commit_number) AS previous_last
      FROM hubledger.batch_ledger AS l
     WHERE l.stream_id = @stream_id AND l.partition_id = @partition_id AND l.kind = 'batch'
)
SELECT TOP (@most) r.commit_number, r.previous_last, r.first_sequence_number
  FROM ranged AS r
 WHERE r.first_sequence_number <> r.previous_last + 1
 ORDER BY r.commit_number;

-- name: find_letter_faults
-- Find ranges of a partition that count at least so many letters, but have a different number of letters.
-- params: stream_id int, partition_id varchar(8000), at_least int, most int
WITH counted AS (
    SELECT l.commit_number, l.first_sequence_number, l.last_sequence_number, l.dead_lettered + l.held AS dead_lettered,
           (SELECT COUNT(*) FROM hubledger.event_hub_dead_letter AS d
             WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id
               AND d.sequence_number BETWEEN l.first_sequence_number AND l.last_sequence_number)
           - (SELECT COUNT(*) FROM hubledger.event_hub_dead_letter AS d
               WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id
                 AND d.sequence_number BETWEEN l.first_sequence_number AND l.last_sequence_number
                 AND d.replay_commit_number IS NOT NULL) AS letters
      FROM hubledger.batch_ledger AS l
     WHERE l.stream_id = @stream_id AND l.partition_id = @partition_id AND l.kind = 'batch'
       AND l.dead_lettered + l.held >= @at_least
)
SELECT TOP (@most) n.commit_number, n.first_sequence_number, n.last_sequence_number, n.dead_lettered, n.letters
  FROM counted AS n
 WHERE n.letters <> n.dead_lettered
 ORDER BY n.commit_number;

-- name: find_stale_sum
-- Find the remembered sum of a partition, where its ranges up to that commit have a different sum.
-- params: stream_id int, partition_id varchar(8000)
WITH ranged AS (
    SELECT COUNT(*) AS commits, MIN(l.first_sequence_number) AS first_sequence_number,
           MAX(l.last_sequence_number) AS last_sequence_number,
           COALESCE(SUM(CONVERT(bigint, l.written)), 0) AS written,
           COALESCE(SUM(CONVERT(bigint, l.filtered)), 0) AS filtered,
           COALESCE(SUM(CONVERT(bigint, l.dead_lettered)), 0) AS dead_lettered,
           COALESCE(SUM(CONVERT(bigint, l.held)), 0) AS held,
           COALESCE(SUM(CONVERT(bigint, l.absent)), 0) AS absent
      FROM hubledger.batch_ledger AS l
     INNER JOIN hubledger.ledger_sum AS s
        ON s.stream_id = l.stream_id AND s.partition_id = l.partition_id AND l.commit_number <= s.commit_number
     WHERE l.stream_id = @stream_id AND l.partition_id = @partition_id AND l.kind = 'batch'
)
SELECT s.commit_number, s.commits, s.written + s.filtered + s.dead_lettered + s.held + s.absent AS accounted
  FROM hubledger.ledger_sum AS s
 CROSS JOIN ranged AS r
 WHERE s.stream_id = @stream_id AND s.partition_id = @partition_id
   AND (s.commits <> r.commits OR s.first_sequence_number <> COALESCE(r.first_sequence_number, -1)
        OR s.last_sequence_number <> COALESCE(r.last_sequence_number, -1) OR s.written <> r.written
        OR s.filtered <> r.filtered
        OR s.dead_lettered <> r.dead_lettered
        OR s.held <> r.held
        OR s.absent <> r.absent);

-- name: find_missing_commits
-- Find commit numbers of a partition without a row in the ledger: every commit leaves one.
-- params: stream_id int, partition_id varchar(8000), most int
WITH numbered AS (
    SELECT l.commit_number
      FROM hubledger.batch_ledger AS l
     WHERE l.stream_id = @stream_id AND l.partition_id = @partition_id
     UNION
    SELECT c.commit_number + 1 AS commit_number
      FROM hubledger.event_hub_checkpoint AS c
     WHERE c.stream_id = @stream_id AND c.partition_id = @partition_id
), ranged AS (
    SELECT n.commit_number, LAG(n.commit_number, 1, 0) OVER (ORDER BY n.commit_number) AS previous
      FROM numbered AS n
)
SELECT TOP (@most) r.previous + 1 AS first_commit_number, r.commit_number - 1 AS last_commit_number
  FROM ranged AS r
 WHERE r.commit_number > r.previous + 1
 ORDER BY r.commit_number;

-- name: count_replay_letters
-- Count the letters that replays recorded in a partition, and how many of them exist.
-- params: stream_id int, partition_id varchar(8000)
SELECT (SELECT COALESCE(SUM(p.letters_added), 0)
          FROM hubledger.replay_progress AS p
         INNER JOIN hubledger.replay_job AS j ON j.job_id = p.job_id
         WHERE p.stream_id = @stream_id AND p.partition_id = @partition_id AND j.is_dry_run = 0) AS added,
       (SELECT COUNT(*)
          FROM hubledger.event_hub_dead_letter AS d
         WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id
           AND d.replay_commit_number IS NOT NULL) AS letters;

-- name: find_absent
-- Find the absent gaps of a partition that reach into a range, in order.
-- params: stream_id int, partition_id varchar(8000), first_sequence_number bigint, last_sequence_number bigint, most int
SELECT TOP (@most) g.first_sequence_number, g.last_sequence_number
  FROM hubledger.sequence_gap AS g
 WHERE g.stream_id = @stream_id AND g.partition_id = @partition_id AND g.status = 'absent'
   AND g.last_sequence_number >= @first_sequence_number AND g.first_sequence_number <= @last_sequence_number
 ORDER BY g.first_sequence_number;
