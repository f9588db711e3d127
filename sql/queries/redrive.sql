-- part: matching
-- The condition of a filter, but for its times.
   AND :fingerprint IN (+d.cause, +d.fingerprint)  -- if given
   AND +d.status = :status  -- if given
   AND +d.error_class = :error_class  -- if given
   AND +d.partition_id = :partition_id  -- if given
   AND exact(+d.partition_key = :partition_key)  -- if given;

-- part: walked
-- The numbers of letters of a partition, and whether each matches a filter and has a status of a list, as ",waiting,exhausted,".
d.sequence_number,
       CASE WHEN CHARINDEX(',' || d.status || ',', :sources) > 0
             AND :fingerprint IN (d.cause, d.fingerprint)  -- if given
             AND d.status = :status  -- if given
             AND d.error_class = :error_class  -- if given
             AND exact(d.partition_key = :partition_key)  -- if given
             AND NOT EXISTS (SELECT 1 FROM dead_letter_attempt AS a WHERE a.stream_id = d.stream_id AND a.partition_id = d.partition_id AND a.sequence_number = d.sequence_number AND a.done_at >= :unchanged_since)  -- if given
             AND d.failed_at >= :since_at AND d.failed_at < :until_at THEN 1 ELSE 0 END AS is_chosen
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id;

-- name: span_matching
-- Return the first and the last letter and the number of letters, by partition, that match a filter and have one of the
-- statuses in a JSON list.
-- params: stream_id int, fingerprint varchar(8000), status varchar(8000), error_class varchar(8000), partition_id varchar(8000), partition_key nvarchar(max), since_at datetime2(6), until_at datetime2(6), unchanged_since datetime2(6), statuses nvarchar(max)
SELECT d.partition_id, MIN(d.sequence_number) AS first_sequence_number, MAX(d.sequence_number) AS last_sequence_number,
       COUNT(*) AS letters
  FROM event_hub_dead_letter AS d INDEXED BY ix_event_hub_dead_letter_status
 WHERE d.stream_id = :stream_id
   AND d.status IN (SELECT j.status FROM list(:statuses) AS j (status varchar(10)))
{matching}
   AND NOT EXISTS (SELECT 1 FROM dead_letter_attempt AS a WHERE a.stream_id = d.stream_id AND a.partition_id = d.partition_id AND a.sequence_number = d.sequence_number AND a.done_at >= :unchanged_since)  -- if given
   AND d.failed_at >= :since_at AND d.failed_at < :until_at
 GROUP BY d.partition_id;

-- name: cause_matching
-- Count the letters of each cause that match a filter and have one of the statuses in a JSON list.
-- params: stream_id int, fingerprint varchar(8000), status varchar(8000), error_class varchar(8000), partition_id varchar(8000), partition_key nvarchar(max), since_at datetime2(6), until_at datetime2(6), statuses nvarchar(max), most int
SELECT d.cause, COUNT(*) AS letters
  FROM event_hub_dead_letter AS d INDEXED BY ix_event_hub_dead_letter_cause
 WHERE d.stream_id = :stream_id
   AND +d.status IN (SELECT j.status FROM list(:statuses) AS j (status varchar(10)))
{matching}
   AND +d.failed_at >= :since_at AND +d.failed_at < :until_at
 GROUP BY d.cause
 ORDER BY letters DESC, d.cause
 LIMIT :most;

-- name: walk_up
-- Look at the next letters of a partition, by number, upwards. It reads no more letters than it returns.
-- params: stream_id int, partition_id varchar(8000), walked_to bigint, last_sequence_number bigint, fingerprint varchar(8000), status varchar(8000), error_class varchar(8000), partition_key nvarchar(max), since_at datetime2(6), until_at datetime2(6), unchanged_since datetime2(6), sources varchar(8000), most int
SELECT {walked}
   AND d.sequence_number > :walked_to AND d.sequence_number <= :last_sequence_number
 ORDER BY d.sequence_number
 LIMIT :most;

-- name: walk_down
-- Look at the next letters of a partition, by number, downwards. It reads no more letters than it returns.
-- params: stream_id int, partition_id varchar(8000), walked_to bigint, first_sequence_number bigint, fingerprint varchar(8000), status varchar(8000), error_class varchar(8000), partition_key nvarchar(max), since_at datetime2(6), until_at datetime2(6), unchanged_since datetime2(6), sources varchar(8000), most int
SELECT {walked}
   AND d.sequence_number < :walked_to AND d.sequence_number >= :first_sequence_number
 ORDER BY d.sequence_number DESC
 LIMIT :most;

-- name: count_redriven
-- Count the letters that a redrive retried, at most so many, by the outcome of their first try since.
-- params: task_id nvarchar(4000), most int
SELECT COUNT(*) AS letters,
       COUNT(CASE WHEN t.status = 'resolved' THEN 1 END) AS resolved,
       COUNT(CASE WHEN t.status IN ('waiting', 'exhausted') THEN 1 END) AS failed_again,
       COUNT(CASE WHEN t.status IN ('waiting', 'exhausted') AND t.cause = m.cause THEN 1 END) AS same_cause,
       COUNT(CASE WHEN t.status IS NULL THEN 1 END) AS not_tried,
       COUNT(CASE WHEN t.status = 'discarded' THEN 1 END) AS discarded
  FROM (SELECT r.stream_id, r.partition_id, r.sequence_number, r.attempt, r.cause  -- sqlite only
  FROM (SELECT TOP (:most) r.stream_id, r.partition_id, r.sequence_number, r.attempt, r.cause  -- sqlserver only
          FROM dead_letter_attempt AS r
         WHERE r.touched_by = :task_id AND r.kind = 'requeue'
         ORDER BY r.stream_id, r.partition_id, r.sequence_number
         LIMIT :most  -- sqlite only
       ) AS m
  LEFT JOIN dead_letter_attempt AS t
    ON t.stream_id = m.stream_id AND t.partition_id = m.partition_id AND t.sequence_number = m.sequence_number
   AND t.attempt = (
       SELECT MIN(a.attempt) FROM dead_letter_attempt AS a
        WHERE a.stream_id = m.stream_id AND a.partition_id = m.partition_id
          AND a.sequence_number = m.sequence_number AND a.attempt > m.attempt
          AND a.kind IN ('retry', 'exhaust', 'discard', 'replay'));
