-- name: find_next_partitions
-- Find, in each table of the books, the partition after a given one in the order of text; NULL after a table's last.
-- Open gaps are left out: they exist before the first commit.
-- params: stream_id int, partition_id varchar(8000)
SELECT (SELECT MIN(n.partition_id) FROM event_hub_checkpoint AS n
         WHERE n.stream_id = :stream_id AND n.partition_id > :partition_id) AS event_hub_checkpoint,
       (SELECT MIN(n.partition_id) FROM batch_ledger AS n
         WHERE n.stream_id = :stream_id AND n.partition_id > :partition_id) AS batch_ledger,
       (SELECT MIN(n.partition_id) FROM event_hub_dead_letter AS n
         WHERE n.stream_id = :stream_id AND n.partition_id > :partition_id) AS event_hub_dead_letter,
       (SELECT MIN(n.partition_id) FROM dead_letter_attempt AS n
         WHERE n.stream_id = :stream_id AND n.partition_id > :partition_id) AS dead_letter_attempt,
       (SELECT MIN(n.partition_id) FROM retracted_row AS n
         WHERE n.stream_id = :stream_id AND n.partition_id > :partition_id) AS retracted_row,
       (SELECT MIN(n.partition_id) FROM sequence_gap AS n
         WHERE n.stream_id = :stream_id AND n.partition_id > :partition_id AND n.status <> 'open') AS sequence_gap,
       (SELECT MIN(n.partition_id) FROM partition_anchor AS n
         WHERE n.stream_id = :stream_id AND n.partition_id > :partition_id) AS partition_anchor;

-- name: find_incarnations
-- Count the incarnations of a stream, and find the first and the last of them.
-- params: event_hub nvarchar(4000), consumer_group nvarchar(4000)
SELECT COUNT(*) AS incarnations, MIN(e.incarnation) AS first_incarnation, MAX(e.incarnation) AS last_incarnation
  FROM event_stream AS e
 WHERE e.event_hub = :event_hub AND e.consumer_group = :consumer_group;

-- name: find_absent_faults
-- Find ranges of some commits of a partition whose count of absent numbers is not the sum of the absent gaps that begin
-- in them.
-- params: stream_id int, partition_id varchar(8000), after_commit bigint, last_commit bigint, most int
WITH counted AS (
    SELECT l.commit_number, l.first_sequence_number, l.last_sequence_number, l.absent,
           (SELECT COALESCE(SUM(g.last_sequence_number - g.first_sequence_number + 1), 0)
              FROM sequence_gap AS g
             WHERE g.stream_id = :stream_id AND g.partition_id = :partition_id AND g.status = 'absent'
               AND g.first_sequence_number BETWEEN l.first_sequence_number AND l.last_sequence_number) AS in_gaps
      FROM batch_ledger AS l
     WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id AND l.kind = 'batch' AND l.absent > 0
       AND l.commit_number > :after_commit AND l.commit_number <= :last_commit
)
SELECT n.commit_number, n.first_sequence_number, n.last_sequence_number, n.absent, n.in_gaps
  FROM counted AS n
 WHERE n.absent <> n.in_gaps
 ORDER BY n.commit_number
 LIMIT :most;

-- name: find_stray_gaps
-- Find absent gaps of a partition that begin in no range that counts absent numbers. Those of purged ranges are left out.
-- params: stream_id int, partition_id varchar(8000), most int
SELECT g.first_sequence_number, g.last_sequence_number
  FROM sequence_gap AS g
 WHERE g.stream_id = :stream_id AND g.partition_id = :partition_id AND g.status = 'absent'
   AND g.first_sequence_number > COALESCE((
       SELECT c.purged_to FROM event_hub_checkpoint AS c
        WHERE c.stream_id = :stream_id AND c.partition_id = :partition_id), -1)
   AND COALESCE((
       SELECT CASE WHEN l.last_sequence_number >= g.first_sequence_number THEN l.absent END
         FROM batch_ledger AS l
        WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id AND l.kind = 'batch'
          AND l.first_sequence_number <= g.first_sequence_number
        ORDER BY l.first_sequence_number DESC
        LIMIT 1), 0) = 0
 ORDER BY g.first_sequence_number
 LIMIT :most;

-- name: find_held_faults
-- Find letters of a partition that are held, although no commit of their number held any event. Those
-- of purged ranges are left out.
-- params: stream_id int, partition_id varchar(8000), most int
SELECT d.sequence_number
  FROM event_hub_dead_letter AS d INDEXED BY ix_event_hub_dead_letter_held
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id AND d.status = 'held'
   AND d.sequence_number > COALESCE((
       SELECT c.purged_to FROM event_hub_checkpoint AS c
        WHERE c.stream_id = :stream_id AND c.partition_id = :partition_id), -1)
   AND COALESCE((
       SELECT CASE WHEN l.last_sequence_number >= d.sequence_number THEN l.held END
         FROM batch_ledger AS l
        WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id AND l.kind = 'batch'
          AND l.first_sequence_number <= d.sequence_number
        ORDER BY l.first_sequence_number DESC
        LIMIT 1), 0) = 0
   AND NOT EXISTS (
       SELECT 1 FROM batch_ledger AS l
        WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id AND l.kind <> 'batch' AND l.held > 0
          AND d.sequence_number BETWEEN l.first_sequence_number AND l.last_sequence_number)
 ORDER BY d.sequence_number
 LIMIT :most;

-- name: find_attempt_faults
-- Find letters of a partition whose status differs from that of their last attempt, or whose attempts have a hole.
-- A batch makes letters that wait, are exhausted or are held, without an attempt, and a held letter may be freed without
-- one.
-- params: stream_id int, partition_id varchar(8000), most int
WITH tried AS (
    SELECT a.sequence_number, COUNT(*) AS attempts, MAX(a.attempt) AS newest
      FROM dead_letter_attempt AS a
     WHERE a.stream_id = :stream_id AND a.partition_id = :partition_id
     GROUP BY a.sequence_number
)
SELECT d.sequence_number, d.status, COALESCE(t.attempts, 0) AS attempts, COALESCE(t.newest, 0) AS newest,
       a.status AS newest_status
  FROM event_hub_dead_letter AS d
  LEFT JOIN tried AS t ON t.sequence_number = d.sequence_number
  LEFT JOIN dead_letter_attempt AS a ON a.stream_id = d.stream_id AND a.partition_id = d.partition_id
                                    AND a.sequence_number = d.sequence_number AND a.attempt = t.newest
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id
   AND (t.attempts <> t.newest
        OR d.status IN ('resolved', 'discarded') AND COALESCE(a.status, '') <> d.status
        OR d.status = 'exhausted' AND a.status <> 'exhausted'
        OR d.status IN ('waiting', 'retrying') AND d.held_behind IS NULL AND a.status <> 'waiting')
 ORDER BY d.sequence_number
 LIMIT :most;

-- name: find_retry_faults
-- Find retries of a partition whose counts of letters differ from those of the attempts that name the commit.
-- params: stream_id int, partition_id varchar(8000), most int
WITH tried AS (
    SELECT a.commit_number, COUNT(*) AS letters, SUM(CASE WHEN a.status = 'resolved' THEN 1 ELSE 0 END) AS resolved
      FROM dead_letter_attempt AS a
     WHERE a.stream_id = :stream_id AND a.partition_id = :partition_id AND a.kind = 'retry'
     GROUP BY a.commit_number
), counted AS (
    SELECT l.commit_number, l.first_sequence_number, l.last_sequence_number, l.written + l.filtered AS succeeded,
           l.written + l.filtered + l.dead_lettered AS tried
      FROM batch_ledger AS l INDEXED BY ix_batch_ledger_change
     WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id AND l.kind <> 'batch' AND l.kind = 'retry'
)
SELECT n.commit_number, n.first_sequence_number, n.last_sequence_number, n.tried, n.succeeded,
       COALESCE(t.letters, 0) AS letters, COALESCE(t.resolved, 0) AS resolved
  FROM counted AS n
  LEFT JOIN tried AS t ON t.commit_number = n.commit_number
 WHERE n.tried <> COALESCE(t.letters, 0) OR n.succeeded <> COALESCE(t.resolved, 0)
 ORDER BY n.commit_number
 LIMIT :most;

-- name: find_replay_faults
-- Find replays of a partition whose progress differs from their commits or from their retracted rows. Of a purged
-- partition, only those that were requested after the oldest ledger row have all their commits.
-- params: stream_id int, partition_id varchar(8000), most int
WITH done AS (
    SELECT CONVERT(varchar(8000), l.invocation_id) AS invocation_id, SUM(CONVERT(bigint, l.written)) AS written,
           SUM(CONVERT(bigint, l.rows_written)) AS rows_written
      FROM batch_ledger AS l INDEXED BY ix_batch_ledger_change
     WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id AND l.kind <> 'batch' AND l.kind = 'replay'
     GROUP BY l.invocation_id
), reported AS (
    SELECT t.task_id, p.first_sequence_number, p.last_sequence_number,
           CONVERT(bigint, JSON_VALUE(p.report, '$.written')) AS written,
           CONVERT(bigint, JSON_VALUE(p.report, '$.rows_written')) AS rows_written,
           CONVERT(bigint, JSON_VALUE(p.report, '$.rows_retracted')) AS rows_retracted
      FROM task AS t
     INNER JOIN task_part AS p ON p.task_id = t.task_id AND p.part = :partition_id
     WHERE t.stream_id = :stream_id AND t.kind = 'replay' AND t.is_dry_run = 0
       AND t.requested_at > COALESCE((
           SELECT l.committed_at
             FROM batch_ledger AS l
            INNER JOIN event_hub_checkpoint AS c ON c.stream_id = l.stream_id AND c.partition_id = l.partition_id
            WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id AND c.purged_commit > 0
            ORDER BY l.commit_number
            LIMIT 1), '0001-01-01T00:00:00')
), taken AS (
    SELECT CONVERT(varchar(8000), l.invocation_id) AS invocation_id, COUNT(*) AS rows_retracted
      FROM retracted_row AS r
     INNER JOIN batch_ledger AS l ON l.stream_id = r.stream_id AND l.partition_id = r.partition_id
                                 AND l.commit_number = r.commit_number
     WHERE r.stream_id = :stream_id AND r.partition_id = :partition_id
     GROUP BY l.invocation_id
)
SELECT p.task_id, p.first_sequence_number, p.last_sequence_number, p.written,
       COALESCE(d.written, 0) AS written_of_commits, p.rows_written, COALESCE(d.rows_written, 0) AS rows_of_commits,
       p.rows_retracted, COALESCE(t.rows_retracted, 0) AS retracted_rows
  FROM reported AS p
  LEFT JOIN done AS d ON d.invocation_id COLLATE Latin1_General_100_BIN2 = p.task_id
  LEFT JOIN taken AS t ON t.invocation_id COLLATE Latin1_General_100_BIN2 = p.task_id
 WHERE (p.rows_written <> COALESCE(d.rows_written, 0) OR p.rows_retracted <> COALESCE(t.rows_retracted, 0)
    OR p.written <> COALESCE(d.written, 0))
 ORDER BY p.task_id
 LIMIT :most;
