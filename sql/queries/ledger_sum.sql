-- name: read_books
-- Read the books of a stream: the remembered sums and the ranges of the next commits, up to `most` of each partition,
-- with the number of ranges that do not begin where the one before ended.
-- params: stream_id int, most int
WITH fresh AS (
    SELECT l.partition_id, l.first_sequence_number, l.last_sequence_number, l.written, l.filtered, l.dead_lettered,
           l.held, l.absent,
           COALESCE(LAG(l.last_sequence_number) OVER (PARTITION BY l.partition_id ORDER BY l.commit_number),
                    s.last_sequence_number) AS previous_last
      FROM event_hub_checkpoint AS c
      LEFT JOIN ledger_sum AS s ON s.stream_id = c.stream_id AND s.partition_id = c.partition_id
     CROSS JOIN batch_ledger AS l  -- in this order: by partition, and only the ranges after its sum
        ON l.stream_id = c.stream_id AND l.partition_id = c.partition_id
       AND l.commit_number > COALESCE(s.commit_number, 0)
       AND l.commit_number <= MIN(c.commit_number, COALESCE(s.commit_number, 0) + :most)
     WHERE c.stream_id = :stream_id AND l.kind = 'batch'
), summed AS (
    SELECT r.partition_id, MIN(r.first_sequence_number) AS first_sequence_number,
           MAX(r.last_sequence_number) AS last_sequence_number, COUNT(*) AS commits,
           SUM(CASE WHEN r.first_sequence_number <> r.previous_last + 1 THEN 1 ELSE 0 END) AS holes,
           SUM((r.written)) AS written,
           SUM((r.filtered)) AS filtered,
           SUM((r.dead_lettered)) AS dead_lettered,
           SUM((r.held)) AS held,
           SUM((r.absent)) AS absent
      FROM fresh AS r
     GROUP BY r.partition_id
)
SELECT c.partition_id, c.sequence_number, c.enqueued_at, c.commit_number,
       s.commit_number AS summed_to,
       COALESCE(s.first_sequence_number, f.first_sequence_number, 0) AS first_sequence_number,
       COALESCE(f.last_sequence_number, s.last_sequence_number, -1) AS last_sequence_number,
       COALESCE(s.commits, 0) + COALESCE(f.commits, 0) AS commits, COALESCE(s.holes, 0) + COALESCE(f.holes, 0) AS holes,
       COALESCE(s.written, 0) + COALESCE(f.written, 0) AS written,
       COALESCE(s.filtered, 0) + COALESCE(f.filtered, 0) AS filtered,
       COALESCE(s.dead_lettered, 0) + COALESCE(f.dead_lettered, 0) AS dead_lettered,
       COALESCE(s.held, 0) + COALESCE(f.held, 0) AS held,
       COALESCE(s.absent, 0) + COALESCE(f.absent, 0) AS absent,
       COALESCE(f.commits, 0) AS fresh_commits, a.sequence_number AS anchor,
       (SELECT COUNT(*) FROM sequence_gap AS g
         WHERE g.stream_id = c.stream_id AND g.partition_id = c.partition_id AND g.status = 'open') AS open_gaps
  FROM event_hub_checkpoint AS c
  LEFT JOIN ledger_sum AS s ON s.stream_id = c.stream_id AND s.partition_id = c.partition_id
  LEFT JOIN partition_anchor AS a ON a.stream_id = c.stream_id AND a.partition_id = c.partition_id
  LEFT JOIN summed AS f ON f.partition_id = c.partition_id
 WHERE c.stream_id = :stream_id
 ORDER BY LENGTH(c.partition_id), c.partition_id;
-- sqlserver:
WITH fresh AS (
    SELECT l.partition_id, l.first_sequence_number, l.last_sequence_number, l.written, l.filtered, l.dead_lettered,
           l.held, l.absent,
           COALESCE(LAG(l.last_sequence_number) OVER (PARTITION BY l.partition_id ORDER BY l.commit_number),
                    s.last_sequence_number) AS previous_last
      FROM hubledger.event_hub_checkpoint AS c
      LEFT JOIN hubledger.ledger_sum AS s ON s.stream_id = c.stream_id AND s.partition_id = c.partition_id
     INNER JOIN hubledger.batch_ledger AS l
        ON l.stream_id = c.stream_id AND l.partition_id = c.partition_id
       AND l.commit_number > COALESCE(s.commit_number, 0)
       AND l.commit_number <= CASE WHEN c.commit_number < COALESCE(s.commit_number, 0) + @most THEN c.commit_number
                                   ELSE COALESCE(s.commit_number, 0) + @most END
     WHERE c.stream_id = @stream_id AND l.kind = 'batch'
), summed AS (
    SELECT r.partition_id, MIN(r.first_sequence_number) AS first_sequence_number,
           MAX(r.last_sequence_number) AS last_sequence_number, COUNT(*) AS commits,
           SUM(CASE WHEN r.first_sequence_number <> r.previous_last + 1 THEN 1 ELSE 0 END) AS holes,
           SUM(CONVERT(bigint, r.written)) AS written,
           SUM(CONVERT(bigint, r.filtered)) AS filtered,
           SUM(CONVERT(bigint, r.dead_lettered)) AS dead_lettered,
           SUM(CONVERT(bigint, r.held)) AS held,
           SUM(CONVERT(bigint, r.absent)) AS absent
      FROM fresh AS r
     GROUP BY r.partition_id
)
SELECT c.partition_id, c.sequence_number, CONVERT(varchar(33), c.enqueued_at, 126) AS enqueued_at, c.commit_number,
       s.commit_number AS summed_to,
       COALESCE(s.first_sequence_number, f.first_sequence_number, 0) AS first_sequence_number,
       COALESCE(f.last_sequence_number, s.last_sequence_number, -1) AS last_sequence_number,
       COALESCE(s.commits, 0) + COALESCE(f.commits, 0) AS commits, COALESCE(s.holes, 0) + COALESCE(f.holes, 0) AS holes,
       COALESCE(s.written, 0) + COALESCE(f.written, 0) AS written,
       COALESCE(s.filtered, 0) + COALESCE(f.filtered, 0) AS filtered,
       COALESCE(s.dead_lettered, 0) + COALESCE(f.dead_lettered, 0) AS dead_lettered,
       COALESCE(s.held, 0) + COALESCE(f.held, 0) AS held,
       COALESCE(s.absent, 0) + COALESCE(f.absent, 0) AS absent,
       COALESCE(f.commits, 0) AS fresh_commits, a.sequence_number AS anchor,
       (SELECT COUNT(*) FROM hubledger.sequence_gap AS g
         WHERE g.stream_id = c.stream_id AND g.partition_id = c.partition_id AND g.status = 'open') AS open_gaps
  FROM hubledger.event_hub_checkpoint AS c
  LEFT JOIN hubledger.ledger_sum AS s ON s.stream_id = c.stream_id AND s.partition_id = c.partition_id
  LEFT JOIN hubledger.partition_anchor AS a ON a.stream_id = c.stream_id AND a.partition_id = c.partition_id
  LEFT JOIN summed AS f ON f.partition_id = c.partition_id
 WHERE c.stream_id = @stream_id
 ORDER BY LEN(c.partition_id), c.partition_id
OPTION (LOOP JOIN);  -- a hash join would read the ranges before the sums too

-- name: count_letters
-- Count the letters of a stream by status, all those that replays made, and those that were purged.
-- params: stream_id int
SELECT (SELECT COUNT(*) FROM event_hub_dead_letter AS d
         WHERE d.stream_id = :stream_id AND d.status = 'waiting') AS waiting,
       (SELECT COUNT(*) FROM event_hub_dead_letter AS d
         WHERE d.stream_id = :stream_id AND d.status = 'retrying') AS retrying,
       (SELECT COUNT(*) FROM event_hub_dead_letter AS d
         WHERE d.stream_id = :stream_id AND d.status = 'held') AS held,
       (SELECT COUNT(*) FROM event_hub_dead_letter AS d
         WHERE d.stream_id = :stream_id AND d.status = 'exhausted') AS exhausted,
       (SELECT COUNT(*) FROM event_hub_dead_letter AS d
         WHERE d.stream_id = :stream_id AND d.status = 'resolved') AS resolved,
       (SELECT COUNT(*) FROM event_hub_dead_letter AS d
         WHERE d.stream_id = :stream_id AND d.status = 'discarded') AS discarded,
       (SELECT COALESCE(SUM(p.letters_added), 0)
          FROM replay_progress AS p
         INNER JOIN replay_job AS j ON j.job_id = p.job_id
         WHERE j.stream_id = :stream_id AND j.is_dry_run = 0) AS replayed,
       (SELECT COALESCE(SUM(k.letters + k.replay_letters), 0)
          FROM event_hub_checkpoint AS c
         INNER JOIN purge_link AS k ON k.stream_id = c.stream_id AND k.partition_id = c.partition_id
         WHERE c.stream_id = :stream_id
           AND k.link_number = (SELECT MAX(n.link_number) FROM purge_link AS n
                                 WHERE n.stream_id = c.stream_id AND n.partition_id = c.partition_id)) AS purged;

-- name: find_oldest_letter
-- Find the letter in a status that failed first.
-- params: stream_id int, status varchar(8000)
SELECT CONVERT(varchar(33), d.failed_at, 126) AS failed_at, d.partition_id, d.sequence_number
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.status = :status
 ORDER BY d.failed_at, d.partition_id, d.sequence_number
 LIMIT 1;

-- name: open_sum
-- Insert the first sum of a partition; touches no row when another reader was first.
-- params: stream_id int, partition_id varchar(8000), commit_number bigint, first_sequence_number bigint, last_sequence_number bigint, commits bigint, holes bigint, written bigint, filtered bigint, dead_lettered bigint, held bigint, absent bigint
-- races: summed by another process at the same moment
INSERT INTO ledger_sum
       (stream_id, partition_id, commit_number, first_sequence_number, last_sequence_number, commits, holes,
        written, filtered, dead_lettered, held, absent)
SELECT :stream_id, :partition_id, :commit_number, :first_sequence_number, :last_sequence_number,
       :commits, :holes, :written, :filtered, :dead_lettered, :held, :absent
 WHERE NOT EXISTS (
       SELECT 1 FROM ledger_sum AS s
        WHERE s.stream_id = :stream_id AND s.partition_id = :partition_id);

-- name: advance_sum
-- Compare and set: touches no row when another reader has summed further.
-- params: stream_id int, partition_id varchar(8000), commit_number bigint, last_sequence_number bigint, commits bigint, holes bigint, written bigint, filtered bigint, dead_lettered bigint, held bigint, absent bigint, expected bigint
UPDATE ledger_sum
   SET commit_number = :commit_number, last_sequence_number = :last_sequence_number, commits = :commits,
       holes = :holes, written = :written, filtered = :filtered, dead_lettered = :dead_lettered,
       held = :held, absent = :absent
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND commit_number = :expected;
