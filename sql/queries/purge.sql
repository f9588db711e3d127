-- part: covered
-- Letters that were settled before a time, up to a number, all of whose attempts are of commits up to a second number.
d.stream_id = :stream_id AND d.partition_id = :partition_id AND d.sequence_number <= :last_sequence_number
   AND d.status IN ('resolved', 'discarded') AND d.settled_at < :before_at
   AND COALESCE(d.replay_commit_number, 0) <= :last_commit
   AND NOT EXISTS (
       SELECT 1 FROM dead_letter_attempt AS a
        WHERE a.stream_id = d.stream_id AND a.partition_id = d.partition_id
          AND a.sequence_number = d.sequence_number AND a.commit_number > :last_commit);

-- name: read_purge_reach
-- Read the limits of a purge of a partition's ledger: its checkpoint, the
-- first number and the first request of its open replays, and the open audits of the stream.
-- params: stream_id int, partition_id varchar(8000)
SELECT c.sequence_number AS committed_to,
       (SELECT MIN(p.first_sequence_number)
          FROM task AS t
         INNER JOIN task_part AS p ON p.task_id = t.task_id AND p.part = :partition_id
         WHERE t.stream_id = :stream_id AND t.kind = 'replay' AND t.status IN ('planned', 'running', 'paused'))
           AS replay_first,
       CONVERT(varchar(33), (
           SELECT MIN(t.requested_at)
             FROM task AS t
            INNER JOIN task_part AS p ON p.task_id = t.task_id AND p.part = :partition_id
            WHERE t.stream_id = :stream_id AND t.kind = 'replay'
              AND t.status IN ('planned', 'running', 'paused')), 126) AS replay_at,
       (SELECT COUNT(*) FROM task AS t
         WHERE t.stream_id = :stream_id AND t.kind = 'audit' AND t.status IN ('planned', 'running', 'paused'))
           AS open_audits
  FROM event_hub_checkpoint AS c
 WHERE c.stream_id = :stream_id AND c.partition_id = :partition_id;

-- name: read_all_cuts
-- Read the cut of every job.
-- params:
SELECT c.job, c.cut
  FROM aggregation_cut AS c;

-- name: count_old_ledger_rows
-- Count the ledger rows of a partition's commits in a range, up to the first that is not old, and find the last of them.
-- params: stream_id int, partition_id varchar(8000), after_commit bigint, last_commit bigint, before_at datetime2(6)
WITH young AS (
    SELECT COALESCE(MIN(y.commit_number), :last_commit + 1) AS commit_number
      FROM batch_ledger AS y
     WHERE y.stream_id = :stream_id AND y.partition_id = :partition_id AND y.commit_number > :after_commit
       AND y.commit_number <= :last_commit AND y.committed_at >= :before_at
)
SELECT COUNT(*) AS row_count, CONVERT(varchar(33), MIN(l.committed_at), 126) AS oldest,
       CONVERT(varchar(33), MAX(l.committed_at), 126) AS newest,
       MAX(l.commit_number) AS commit_number,
       MAX(CASE WHEN l.kind = 'batch' THEN l.last_sequence_number END) AS last_sequence_number
  FROM batch_ledger AS l
 INNER JOIN young AS y ON l.commit_number < y.commit_number
 WHERE l.stream_id = :stream_id AND l.partition_id = :partition_id AND l.commit_number > :after_commit
   AND l.commit_number <= :last_commit;

-- name: mark_purged
-- Note how far the ledger of a partition is purged.
-- params: stream_id int, partition_id varchar(8000), last_commit bigint, purged_to bigint, purged_at datetime2(6)
UPDATE event_hub_checkpoint
   SET purged_commit = :last_commit, purged_to = :purged_to, purged_at = :purged_at
 WHERE stream_id = :stream_id AND partition_id = :partition_id;

-- name: delete_ledger_rows
-- Delete the ledger rows of the commits of a range.
-- params: stream_id int, partition_id varchar(8000), after_commit bigint, last_commit bigint
DELETE FROM batch_ledger
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND commit_number > :after_commit
   AND commit_number <= :last_commit;

-- name: read_settled_letters
-- Read the first letters of a partition that were settled before a time, up to a number, all of whose attempts are of
-- commits up to a second number.
-- params: stream_id int, partition_id varchar(8000), last_sequence_number bigint, last_commit bigint, before_at datetime2(6), most int
SELECT d.sequence_number, CONVERT(varchar(33), d.settled_at, 126) AS settled_at, d.replay_commit_number,
       (SELECT COUNT(*) FROM dead_letter_attempt AS a
         WHERE a.stream_id = d.stream_id AND a.partition_id = d.partition_id
           AND a.sequence_number = d.sequence_number) AS attempts,
       DATALENGTH(d.body) AS body_bytes
  FROM event_hub_dead_letter AS d INDEXED BY ix_event_hub_dead_letter_settled
 WHERE {covered}
 ORDER BY d.sequence_number
 LIMIT :most;

-- name: count_settled_letters
-- Count the letters that `read_settled_letters` reads, and their bytes.
-- params: stream_id int, partition_id varchar(8000), last_sequence_number bigint, last_commit bigint, before_at datetime2(6)
SELECT COUNT(*) AS row_count, COALESCE(SUM(DATALENGTH(d.body)), 0) AS row_bytes,
       CONVERT(varchar(33), MIN(d.settled_at), 126) AS oldest,
       CONVERT(varchar(33), MAX(d.settled_at), 126) AS newest
  FROM event_hub_dead_letter AS d
 WHERE {covered};

-- name: count_purged_letters
-- Count letters that go with this transaction.
-- params: stream_id int, partition_id varchar(8000), letters bigint, replay_letters bigint
UPDATE event_hub_checkpoint
   SET purged_letters = purged_letters + :letters, purged_replay_letters = purged_replay_letters + :replay_letters
 WHERE stream_id = :stream_id AND partition_id = :partition_id;

-- name: delete_settled_letters
-- Delete letters of a partition that are settled.
-- params: stream_id int, partition_id varchar(8000), sequence_numbers nvarchar(max)
DELETE FROM event_hub_dead_letter INDEXED BY sqlite_autoindex_event_hub_dead_letter_1
 WHERE stream_id = :stream_id AND partition_id = :partition_id
 AND status NOT IN ('waiting', 'retrying', 'held', 'exhausted')
   AND sequence_number IN (
       SELECT n.sequence_number FROM rows(:sequence_numbers) AS n (sequence_number bigint));

-- name: delete_attempts
-- Delete the attempts of letters of a partition.
-- params: stream_id int, partition_id varchar(8000), sequence_numbers nvarchar(max)
DELETE FROM dead_letter_attempt
 WHERE stream_id = :stream_id AND partition_id = :partition_id
   AND sequence_number IN (
       SELECT n.sequence_number FROM rows(:sequence_numbers) AS n (sequence_number bigint));

-- name: delete_retracted
-- Delete the first retracted rows of a partition whose replay commit has no ledger row any more.
-- params: stream_id int, partition_id varchar(8000), last_commit bigint, most int
DELETE FROM retracted_row
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND commit_number <= :last_commit
 ORDER BY commit_number, table_name, sequence_number, ordinal LIMIT :most BY stream_id, partition_id, commit_number, table_name, sequence_number, ordinal;

-- name: count_old_retracted
-- Count the retracted rows of a partition up to a commit, at most so many.
-- params: stream_id int, partition_id varchar(8000), last_commit bigint, most int
SELECT COUNT(*) AS row_count, 0 AS row_bytes, NULL AS oldest, NULL AS newest
  FROM (SELECT r.commit_number
          FROM retracted_row AS r
         WHERE r.stream_id = :stream_id AND r.partition_id = :partition_id AND r.commit_number <= :last_commit
         LIMIT :most) AS f;

-- name: mark_staged
-- Note when a purge has first seen staged events: their age counts from then. Touches the first of them.
-- params: stream_id int, seen_at datetime2(6), most int
UPDATE staged_event
   SET staged_at = :seen_at
 WHERE stream_id = :stream_id AND staged_at IS NULL
 LIMIT :most BY rowid;

-- name: delete_staged
-- Delete the first staged events that were seen before a time, while no replay of the stream is open.
-- params: stream_id int, before_at datetime2(6), most int
DELETE FROM staged_event
 WHERE stream_id = :stream_id AND staged_at < :before_at
   AND NOT EXISTS (
       SELECT 1 FROM task AS t
        WHERE t.stream_id = :stream_id AND t.kind = 'replay'
          AND t.status IN ('planned', 'running', 'paused'))
 ORDER BY staged_at LIMIT :most BY rowid;

-- name: count_staged
-- Count the staged events that `delete_staged` deletes and those that `mark_staged` marks, at most so many of each.
-- params: stream_id int, before_at datetime2(6), most int
SELECT (SELECT COUNT(*)
          FROM (SELECT s.staged_at
                  FROM staged_event AS s
                 WHERE s.stream_id = :stream_id AND s.staged_at < :before_at
                   AND NOT EXISTS (
                       SELECT 1 FROM task AS t
                        WHERE t.stream_id = :stream_id AND t.kind = 'replay'
                          AND t.status IN ('planned', 'running', 'paused'))
                 LIMIT :most) AS o) AS old,
       (SELECT COUNT(*)
          FROM (SELECT u.staged_at
                  FROM staged_event AS u
                 WHERE u.stream_id = :stream_id AND u.staged_at IS NULL
                 LIMIT :most) AS n) AS unseen;

-- name: count_old_staged
-- Count the staged events that were seen before a time, and their bytes.
-- params: stream_id int, before_at datetime2(6)
SELECT COUNT(*) AS row_count, COALESCE(SUM(DATALENGTH(s.body)), 0) AS row_bytes,
       CONVERT(varchar(33), MIN(s.staged_at), 126) AS oldest,
       CONVERT(varchar(33), MAX(s.staged_at), 126) AS newest
  FROM staged_event AS s
 WHERE s.stream_id = :stream_id AND s.staged_at < :before_at;

-- name: find_old_dry_run
-- Find the oldest ended replay of a stream that still has diffs, and count these, at most so many.
-- params: stream_id int, before_at datetime2(6), most int
SELECT t.task_id,
       (SELECT COUNT(*)
          FROM (SELECT 1  -- sqlite only
          FROM (SELECT TOP (:most) f.task_id  -- sqlserver only
                  FROM replay_diff AS f
                 WHERE f.task_id = t.task_id
                 LIMIT :most  -- sqlite only
               ) AS c) AS row_count
  FROM task AS t
 WHERE t.stream_id = :stream_id AND t.kind = 'replay' AND t.requested_at < :before_at AND t.ended_at < :before_at
   AND EXISTS (SELECT 1 FROM replay_diff AS d WHERE d.task_id = t.task_id)
 ORDER BY t.requested_at
 LIMIT 1;

-- name: delete_diffs
-- Delete the first diffs of a dry run.
-- params: of_task varchar(8000), most int
DELETE FROM replay_diff
 WHERE task_id = :of_task
 ORDER BY partition_id, sequence_number LIMIT :most BY task_id, partition_id, sequence_number;

-- name: count_old_diffs
-- Count the diffs of ended dry runs of a stream, and their bytes.
-- params: stream_id int, before_at datetime2(6)
SELECT COUNT(*) AS row_count, COALESCE(SUM(DATALENGTH(d.diff)), 0) AS row_bytes,
       CONVERT(varchar(33), MIN(t.ended_at), 126) AS oldest,
       CONVERT(varchar(33), MAX(t.ended_at), 126) AS newest
  FROM task AS t
 INNER JOIN replay_diff AS d ON d.task_id = t.task_id
 WHERE t.stream_id = :stream_id AND t.kind = 'replay' AND t.requested_at < :before_at AND t.ended_at < :before_at;

-- name: delete_failures
-- Delete the first failures of runs before a time.
-- params: before_at datetime2(6), most int
DELETE FROM aggregation_failure
 WHERE failed_at < :before_at
 ORDER BY failed_at LIMIT :most BY run_id, submit_number;

-- name: count_old_failures
-- Count the failures of runs before a time, at most so many.
-- params: before_at datetime2(6), most int
SELECT COUNT(*) AS row_count, 0 AS row_bytes, CONVERT(varchar(33), MIN(o.failed_at), 126) AS oldest,
       CONVERT(varchar(33), MAX(o.failed_at), 126) AS newest
  FROM (SELECT f.failed_at FROM aggregation_failure AS f WHERE f.failed_at < :before_at LIMIT :most) AS o;

-- name: find_old_task
-- Find the oldest task of a stream that has ended before a time and still has parts, and count these, at most so many.
-- Replays and redrives stay.
-- params: stream_id int, before_at datetime2(6), most int
SELECT t.task_id,
       (SELECT COUNT(*)
          FROM (SELECT 1  -- sqlite only
          FROM (SELECT TOP (:most) f.part  -- sqlserver only
                  FROM task_part AS f
                 WHERE f.task_id = t.task_id
                 LIMIT :most  -- sqlite only
               ) AS c) AS row_count
  FROM task AS t
 WHERE t.stream_id = :stream_id AND t.requested_at < :before_at AND t.kind NOT IN ('replay', 'redrive')
   AND t.ended_at < :before_at AND EXISTS (SELECT 1 FROM task_part AS p WHERE p.task_id = t.task_id)
 ORDER BY t.requested_at
 LIMIT 1;

-- name: delete_parts
-- Delete the first parts of a task.
-- params: of_task varchar(8000), most int
DELETE FROM task_part
 WHERE task_id = :of_task
 ORDER BY part LIMIT :most BY task_id, part;

-- name: count_old_parts
-- Count the parts of tasks of a stream that ended before a time, and their bytes. Those of replays and redrives stay.
-- params: stream_id int, before_at datetime2(6)
SELECT COUNT(*) AS row_count, COALESCE(SUM(DATALENGTH(p.report)), 0) AS row_bytes,
       CONVERT(varchar(33), MIN(t.ended_at), 126) AS oldest,
       CONVERT(varchar(33), MAX(t.ended_at), 126) AS newest
  FROM task AS t
 INNER JOIN task_part AS p ON p.task_id = t.task_id
 WHERE t.stream_id = :stream_id AND t.requested_at < :before_at AND t.kind NOT IN ('replay', 'redrive')
   AND t.ended_at < :before_at;

-- name: delete_tasks
-- Delete the first tasks of a stream that ended before a time and have no parts any more. Replays and redrives stay.
-- params: stream_id int, before_at datetime2(6), most int
DELETE FROM task
 WHERE stream_id = :stream_id AND requested_at < :before_at AND kind NOT IN ('replay', 'redrive')
   AND ended_at < :before_at AND NOT EXISTS (SELECT 1 FROM task_part AS p WHERE p.task_id = task.task_id)
 ORDER BY requested_at LIMIT :most BY task_id;

-- name: count_old_tasks
-- Count the tasks of a stream that ended before a time, at most so many. Replays and redrives stay.
-- params: stream_id int, before_at datetime2(6), most int
SELECT COUNT(*) AS row_count, 0 AS row_bytes, CONVERT(varchar(33), MIN(f.ended_at), 126) AS oldest,
       CONVERT(varchar(33), MAX(f.ended_at), 126) AS newest
  FROM (SELECT t.ended_at
          FROM task AS t
         WHERE t.stream_id = :stream_id AND t.requested_at < :before_at AND t.kind NOT IN ('replay', 'redrive')
           AND t.ended_at < :before_at
         LIMIT :most) AS f;
