-- part: open_by_status
-- The open letters of a stream by status, each counted in the index of its status.
(SELECT COUNT(*) FROM event_hub_dead_letter AS d
         WHERE d.stream_id = :stream_id AND d.status = 'waiting') AS waiting,
       (SELECT COUNT(*) FROM event_hub_dead_letter AS d
         WHERE d.stream_id = :stream_id AND d.status = 'retrying') AS retrying,
       (SELECT COUNT(*) FROM event_hub_dead_letter AS d
         WHERE d.stream_id = :stream_id AND d.status = 'held') AS held,
       (SELECT COUNT(*) FROM event_hub_dead_letter AS d
         WHERE d.stream_id = :stream_id AND d.status = 'exhausted') AS exhausted;

-- part: made_letters
-- The letters of a stream that were purged, those that batches made, and those that replays made.
(SELECT COALESCE(SUM(c.purged_letters + c.purged_replay_letters), 0)
          FROM event_hub_checkpoint AS c
         WHERE c.stream_id = :stream_id) AS purged,
       (SELECT COALESCE(SUM(c.dead_lettered + c.held), 0)
          FROM event_hub_checkpoint AS c
         WHERE c.stream_id = :stream_id) AS dead_lettered,
       (SELECT COALESCE(SUM(c.letters - c.dead_lettered - c.held), 0)
          FROM event_hub_checkpoint AS c
         WHERE c.stream_id = :stream_id) AS replayed;

-- name: read_books
-- Read the books of a stream: the totals of each checkpoint, and 1 if the ledger's row of its newest commit has the same
-- totals, else 0.
-- params: stream_id int
SELECT c.written, c.filtered, c.dead_lettered, c.held, c.absent, c.partition_id, c.sequence_number,
       CONVERT(varchar(33), c.enqueued_at, 126) AS enqueued_at, c.commit_number, c.first_sequence_number, c.commits, c.letters,
       c.unknown_fields,
       a.sequence_number AS anchor,
       (SELECT COUNT(*) FROM sequence_gap AS g
         WHERE g.stream_id = c.stream_id AND g.partition_id = c.partition_id AND g.status = 'open') AS open_gaps,
       (SELECT COUNT(*) FROM batch_ledger AS l
         WHERE l.stream_id = c.stream_id AND l.partition_id = c.partition_id AND l.commit_number = c.commit_number
           AND l.total_commits = c.commits AND l.total_written = c.written AND l.total_filtered = c.filtered
           AND l.total_dead_lettered = c.dead_lettered AND l.total_held = c.held
           AND l.total_absent = c.absent) AS is_recorded
  FROM event_hub_checkpoint AS c
  LEFT JOIN partition_anchor AS a ON a.stream_id = c.stream_id AND a.partition_id = c.partition_id
 WHERE c.stream_id = :stream_id
 ORDER BY LEN(c.partition_id), c.partition_id;

-- name: count_open
-- Count the open letters of a stream by status, and all that were made, at one moment.
-- params: stream_id int
SELECT {open_by_status},
       {made_letters};

-- name: count_letters
-- Count the letters of a stream by status, and all that were made, at one moment. It reads the index of all letters.
-- params: stream_id int
SELECT {open_by_status},
       (SELECT COUNT(*) FROM event_hub_dead_letter AS d
         WHERE d.stream_id = :stream_id AND d.status = 'resolved') AS resolved,
       (SELECT COUNT(*) FROM event_hub_dead_letter AS d
         WHERE d.stream_id = :stream_id AND d.status = 'discarded') AS discarded,
       {made_letters};

-- name: find_oldest_letter
-- Find the letter in a status that failed first.
-- params: stream_id int, status varchar(8000)
SELECT CONVERT(varchar(33), d.failed_at, 126) AS failed_at, d.partition_id, d.sequence_number
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.status = :status
 ORDER BY d.failed_at, d.partition_id, d.sequence_number
 LIMIT 1;
