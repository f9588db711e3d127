-- part: listed
-- The columns of a letter in a list, in the order of the fields of ListedLetter.
d.partition_id, d.sequence_number, CONVERT(varchar(33), d.enqueued_at, 126) AS enqueued_at, d.partition_key,
       d.error_class, d.error_type, d.error, d.error_at, d.fingerprint, d.transform_version, d.status, d.attempts,
       CONVERT(varchar(33), d.due_at, 126) AS due_at, CONVERT(varchar(33), d.failed_at, 126) AS failed_at,
       CONVERT(varchar(33), d.settled_at, 126) AS settled_at, d.settled_why, DATALENGTH(d.body) AS body_bytes,
       d.body_kept,
       CASE WHEN d.status = 'held' THEN d.held_behind END AS held_behind, d.erased_by;

-- name: list_letters
-- List letters of a stream, the last to fail first: a page after a key.
-- params: stream_id int, fingerprint varchar(8000), status varchar(8000), error_class varchar(8000), partition_id varchar(8000), partition_key nvarchar(max), since_at datetime2(6), until_at datetime2(6), before_at datetime2(6), before_partition varchar(8000), before_number bigint, most int
SELECT {listed}
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id
   AND :fingerprint IN (+d.cause, +d.fingerprint)  -- if given
   AND +d.status = :status  -- if given
   AND +d.error_class = :error_class  -- if given
   AND +d.partition_id = :partition_id  -- if given
   AND exact(+d.partition_key = :partition_key)  -- if given
   AND d.failed_at >= :since_at AND d.failed_at < :until_at
   AND d.failed_at <= :before_at
   AND (d.failed_at < :before_at OR d.partition_id < :before_partition
        OR (d.partition_id = :before_partition AND d.sequence_number < :before_number))
 ORDER BY d.failed_at DESC, d.partition_id DESC, d.sequence_number DESC
 LIMIT :most;

-- name: list_letters_of_status
-- List letters of one status, the last to fail first: a page after a key.
-- params: stream_id int, fingerprint varchar(8000), status varchar(8000), error_class varchar(8000), partition_id varchar(8000), partition_key nvarchar(max), since_at datetime2(6), until_at datetime2(6), before_at datetime2(6), before_partition varchar(8000), before_number bigint, most int
SELECT {listed}
  FROM event_hub_dead_letter AS d INDEXED BY ix_event_hub_dead_letter_status
 WHERE d.stream_id = :stream_id
   AND :fingerprint IN (+d.cause, +d.fingerprint)  -- if given
   AND d.status = :status
   AND +d.error_class = :error_class  -- if given
   AND +d.partition_id = :partition_id  -- if given
   AND exact(+d.partition_key = :partition_key)  -- if given
   AND d.failed_at >= :since_at AND d.failed_at < :until_at
   AND d.failed_at <= :before_at
   AND (d.failed_at < :before_at OR d.partition_id < :before_partition
        OR (d.partition_id = :before_partition AND d.sequence_number < :before_number))
 ORDER BY d.failed_at DESC, d.partition_id DESC, d.sequence_number DESC
 LIMIT :most;

-- name: list_letters_of_cause
-- List letters of one cause, the last to fail first: a page after a key.
-- params: stream_id int, fingerprint varchar(8000), status varchar(8000), error_class varchar(8000), partition_id varchar(8000), partition_key nvarchar(max), since_at datetime2(6), until_at datetime2(6), before_at datetime2(6), before_partition varchar(8000), before_number bigint, most int
SELECT {listed}
  FROM event_hub_dead_letter AS d INDEXED BY ix_event_hub_dead_letter_cause
 WHERE d.stream_id = :stream_id
   AND d.cause = SUBSTRING(:fingerprint, 1, 16) AND :fingerprint IN (+d.cause, +d.fingerprint)
   AND +d.status = :status  -- if given
   AND +d.error_class = :error_class  -- if given
   AND +d.partition_id = :partition_id  -- if given
   AND exact(+d.partition_key = :partition_key)  -- if given
   AND d.failed_at >= :since_at AND d.failed_at < :until_at
   AND d.failed_at <= :before_at
   AND (d.failed_at < :before_at OR d.partition_id < :before_partition
        OR (d.partition_id = :before_partition AND d.sequence_number < :before_number))
 ORDER BY d.failed_at DESC, d.partition_id DESC, d.sequence_number DESC
 LIMIT :most;

-- name: group_letters
-- Group letters by cause, the groups with the most open letters first: the numbers of all letters, of
-- settled ones and of those that can be retried, the first and last failure.
-- params: stream_id int, fingerprint varchar(8000), status varchar(8000), partition_id varchar(8000), since_at datetime2(6), until_at datetime2(6), most int
SELECT d.cause, COUNT(*) AS letters, COUNT(DISTINCT d.fingerprint) AS variants,
       SUM(CASE WHEN d.status IN ('resolved', 'discarded') THEN 1 ELSE 0 END) AS settled,
       SUM(CASE WHEN d.status IN ('waiting', 'exhausted') THEN 1 ELSE 0 END) AS retryable,
       CONVERT(varchar(33), MIN(d.failed_at), 126) AS first_failed_at,
       CONVERT(varchar(33), MAX(d.failed_at), 126) AS last_failed_at
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id
   AND :fingerprint IN (+d.cause, +d.fingerprint)  -- if given
   AND +d.status = :status  -- if given
   AND +d.partition_id = :partition_id  -- if given
   AND +d.failed_at >= :since_at AND +d.failed_at < :until_at  -- +: by the index of causes, which has all of it
 GROUP BY d.cause
 ORDER BY COUNT(*) - SUM(CASE WHEN d.status IN ('resolved', 'discarded') THEN 1 ELSE 0 END) DESC, letters DESC,
 d.cause
 LIMIT :most;

-- name: group_letters_of_kind
-- Group letters of a class or a partition key by cause, in the same order; no index covers either.
-- params: stream_id int, fingerprint varchar(8000), status varchar(8000), error_class varchar(8000), partition_id varchar(8000), partition_key nvarchar(max), since_at datetime2(6), until_at datetime2(6), most int
SELECT d.cause, COUNT(*) AS letters, COUNT(DISTINCT d.fingerprint) AS variants,
       SUM(CASE WHEN d.status IN ('resolved', 'discarded') THEN 1 ELSE 0 END) AS settled,
       SUM(CASE WHEN d.status IN ('waiting', 'exhausted') THEN 1 ELSE 0 END) AS retryable,
       CONVERT(varchar(33), MIN(d.failed_at), 126) AS first_failed_at,
       CONVERT(varchar(33), MAX(d.failed_at), 126) AS last_failed_at
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id
   AND :fingerprint IN (+d.cause, +d.fingerprint)  -- if given
   AND +d.status = :status  -- if given
   AND +d.error_class = :error_class  -- if given
   AND +d.partition_id = :partition_id  -- if given
   AND exact(+d.partition_key = :partition_key)  -- if given
   AND d.failed_at >= :since_at AND d.failed_at < :until_at
 GROUP BY d.cause
 ORDER BY COUNT(*) - SUM(CASE WHEN d.status IN ('resolved', 'discarded') THEN 1 ELSE 0 END) DESC, letters DESC,
 d.cause
 LIMIT :most;

-- name: group_values
-- Group the letters of one cause by the values of their messages, in the same order.
-- params: stream_id int, fingerprint varchar(8000), status varchar(8000), error_class varchar(8000), partition_id varchar(8000), partition_key nvarchar(max), since_at datetime2(6), until_at datetime2(6), most int
SELECT d.fingerprint, COUNT(*) AS letters, 1 AS variants,
       SUM(CASE WHEN d.status IN ('resolved', 'discarded') THEN 1 ELSE 0 END) AS settled,
       SUM(CASE WHEN d.status IN ('waiting', 'exhausted') THEN 1 ELSE 0 END) AS retryable,
       CONVERT(varchar(33), MIN(d.failed_at), 126) AS first_failed_at,
       CONVERT(varchar(33), MAX(d.failed_at), 126) AS last_failed_at
  FROM event_hub_dead_letter AS d INDEXED BY ix_event_hub_dead_letter_cause
 WHERE d.stream_id = :stream_id
   AND d.cause = SUBSTRING(:fingerprint, 1, 16) AND :fingerprint IN (+d.cause, +d.fingerprint)
   AND +d.status = :status  -- if given
   AND +d.error_class = :error_class  -- if given
   AND +d.partition_id = :partition_id  -- if given
   AND exact(+d.partition_key = :partition_key)  -- if given
   AND d.failed_at >= :since_at AND d.failed_at < :until_at
 GROUP BY d.fingerprint
 ORDER BY COUNT(*) - SUM(CASE WHEN d.status IN ('resolved', 'discarded') THEN 1 ELSE 0 END) DESC, letters DESC,
 d.fingerprint
 LIMIT :most;

-- name: read_letter
-- Read one letter without its body.
-- params: stream_id int, partition_id varchar(8000), sequence_number bigint
SELECT {listed},
       d.offset_token, d.properties
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id AND d.sequence_number = :sequence_number;

-- name: read_letter_body
-- Read the body of a letter, or the beginning of a long one.
-- params: stream_id int, partition_id varchar(8000), sequence_number bigint, most int
SELECT SUBSTRING(d.body, 1, :most) AS body
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id AND d.sequence_number = :sequence_number;

-- name: read_attempts
-- Read the attempts on a letter and the requests about it, the oldest first.
-- params: stream_id int, partition_id varchar(8000), sequence_number bigint, most int
SELECT a.attempt, a.kind, a.status, a.error_class, a.error_type, a.error, a.transform_version, a.commit_number,
       a.done_by, a.why, CONVERT(varchar(33), a.done_at, 126) AS done_at
  FROM dead_letter_attempt AS a
 WHERE a.stream_id = :stream_id AND a.partition_id = :partition_id AND a.sequence_number = :sequence_number
 ORDER BY a.attempt
 LIMIT :most;

-- name: count_matching
-- Count the letters that match a filter and have one of the statuses in a JSON list.
-- params: stream_id int, fingerprint varchar(8000), status varchar(8000), error_class varchar(8000), partition_id varchar(8000), partition_key nvarchar(max), since_at datetime2(6), until_at datetime2(6), statuses nvarchar(max)
SELECT COUNT(*)
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id
   AND d.status IN (SELECT j.status FROM list(:statuses) AS j (status varchar(10)))
   AND :fingerprint IN (+d.cause, +d.fingerprint)  -- if given
   AND +d.status = :status  -- if given
   AND +d.error_class = :error_class  -- if given
   AND +d.partition_id = :partition_id  -- if given
   AND exact(+d.partition_key = :partition_key)  -- if given
   AND d.failed_at >= :since_at AND d.failed_at < :until_at;

-- name: find_matching
-- Find the positions of letters that match a filter and have one of the statuses, the first to fail first.
-- params: stream_id int, fingerprint varchar(8000), status varchar(8000), error_class varchar(8000), partition_id varchar(8000), partition_key nvarchar(max), since_at datetime2(6), until_at datetime2(6), statuses nvarchar(max), most int
SELECT d.partition_id, d.sequence_number
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id
   AND d.status IN (SELECT j.status FROM list(:statuses) AS j (status varchar(10)))
   AND :fingerprint IN (+d.cause, +d.fingerprint)  -- if given
   AND +d.status = :status  -- if given
   AND +d.error_class = :error_class  -- if given
   AND +d.partition_id = :partition_id  -- if given
   AND exact(+d.partition_key = :partition_key)  -- if given
   AND d.failed_at >= :since_at AND d.failed_at < :until_at
 ORDER BY d.failed_at, d.partition_id, d.sequence_number
 LIMIT :most;

-- name: find_selected
-- Find the positions in a JSON list that have a letter in one of the statuses.
-- params: stream_id int, positions nvarchar(max), statuses nvarchar(max)
SELECT d.partition_id, d.sequence_number
  FROM json_each(:positions) AS j
 CROSS JOIN event_hub_dead_letter AS d
    ON d.stream_id = :stream_id AND d.partition_id = json_extract(j.value, '$.partition_id')
   AND d.sequence_number = json_extract(j.value, '$.sequence_number')
 WHERE d.status IN (SELECT s.value FROM json_each(:statuses) AS s)
 ORDER BY d.partition_id, d.sequence_number;
-- sqlserver:
SELECT d.partition_id, d.sequence_number
  FROM OPENJSON(@positions) WITH (
       partition_id varchar(40) '$.partition_id', sequence_number bigint '$.sequence_number') AS j
 INNER JOIN hubledger.event_hub_dead_letter AS d
    ON d.stream_id = @stream_id AND d.partition_id = j.partition_id COLLATE Latin1_General_100_BIN2
   AND d.sequence_number = j.sequence_number
 WHERE d.status IN (SELECT s.status FROM OPENJSON(@statuses) WITH (status varchar(10) '$') AS s)
 ORDER BY d.partition_id, d.sequence_number;
