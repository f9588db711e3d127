-- name: read_open_keys
-- Read the partition keys of a partition that have an open letter; the server reads them in one pass over their index.
-- params: stream_id int, partition_id varchar(8000), most int
SELECT DISTINCT d.partition_key
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id AND d.partition_key IS NOT NULL
   AND d.status IN ('waiting', 'retrying', 'held', 'exhausted')
 LIMIT :most;
-- sqlserver:
SELECT TOP (@most) k.partition_key
  FROM (SELECT d.partition_key, ROW_NUMBER() OVER (PARTITION BY d.key_hash ORDER BY d.sequence_number) AS place
          FROM hubledger.event_hub_dead_letter AS d
         WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id AND d.key_hash IS NOT NULL
           AND d.status IN ('waiting', 'retrying', 'held', 'exhausted')) AS k
 WHERE k.place = 1;

-- name: find_open_letters
-- Find the last open letter before a number of each of these partition keys, a JSON array of [partition_key].
-- params: stream_id int, partition_id varchar(8000), partition_keys nvarchar(max), before bigint
SELECT d.partition_key, d.sequence_number, d.error_class
  FROM json_each(:partition_keys) AS k
 CROSS JOIN event_hub_dead_letter AS d
    ON d.stream_id = :stream_id AND d.partition_id = :partition_id
   AND d.sequence_number = (
       SELECT MAX(o.sequence_number)
         FROM event_hub_dead_letter AS o
        WHERE o.stream_id = :stream_id AND o.partition_id = :partition_id AND o.partition_key = k.value ->> 0
          AND o.status IN ('waiting', 'retrying', 'held', 'exhausted') AND o.sequence_number < :before);
-- sqlserver:
SELECT d.partition_key, d.sequence_number, d.error_class
  FROM (SELECT DISTINCT CONVERT(binary(32), HASHBYTES('SHA2_256', g.partition_key)) AS key_hash
          FROM OPENJSON(@partition_keys) WITH (partition_key nvarchar(max) '$[0]') AS g) AS k
 CROSS APPLY (
       SELECT TOP (1) o.partition_key, o.sequence_number, o.error_class
         FROM hubledger.event_hub_dead_letter AS o
        WHERE o.stream_id = @stream_id AND o.partition_id = @partition_id AND o.key_hash = k.key_hash
          AND o.status IN ('waiting', 'retrying', 'held', 'exhausted') AND o.sequence_number < @before
        ORDER BY o.sequence_number DESC) AS d
OPTION (LOOP JOIN, FORCE ORDER);

-- name: count_held
-- Count the held letters of a partition.
-- params: stream_id int, partition_id varchar(8000)
SELECT COUNT(*) AS held
  FROM event_hub_dead_letter AS d INDEXED BY ix_event_hub_dead_letter_held
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id AND d.status = 'held';

-- name: find_discarded
-- Find the letters of a range that a person discarded.
-- params: stream_id int, partition_id varchar(8000), first_sequence_number bigint, last_sequence_number bigint
SELECT d.sequence_number
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id AND d.status = 'discarded'
   AND d.sequence_number BETWEEN :first_sequence_number AND :last_sequence_number;

-- name: find_crashed
-- Find the letters of a range whose events have killed their process with this version of the transform.
-- params: stream_id int, partition_id varchar(8000), first_sequence_number bigint, last_sequence_number bigint, transform_version nvarchar(4000)
SELECT d.sequence_number
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id AND d.status <> 'resolved'
   AND d.error_class = 'crash' AND d.transform_version = :transform_version
   AND d.sequence_number BETWEEN :first_sequence_number AND :last_sequence_number;

-- name: free_letters
-- Free the held letters that come right after these: they are due now, unless an earlier letter of their key is open.
-- params: stream_id int, partition_id varchar(8000), sequence_numbers nvarchar(max), freed_by nvarchar(4000), freed_at datetime2(6)
UPDATE event_hub_dead_letter AS d
   SET status = CASE WHEN n.earlier IS NULL THEN 'waiting' ELSE d.status END,
       due_at = CASE WHEN n.earlier IS NULL THEN :freed_at END,
       claimed_by = CASE WHEN n.earlier IS NULL THEN :freed_by ELSE d.claimed_by END,
       held_behind = COALESCE(n.earlier, d.held_behind)
  FROM (SELECT h.sequence_number, (
               SELECT MAX(o.sequence_number)
                 FROM event_hub_dead_letter AS o
                WHERE o.stream_id = h.stream_id AND o.partition_id = h.partition_id
                  AND o.partition_key = h.partition_key AND o.status IN ('waiting', 'retrying', 'held', 'exhausted')
                  AND o.sequence_number < h.sequence_number) AS earlier
          FROM event_hub_dead_letter AS h
         WHERE h.stream_id = :stream_id AND h.partition_id = :partition_id AND h.status = 'held'
           AND h.held_behind IN (SELECT s.value ->> 0 FROM json_each(:sequence_numbers) AS s)) AS n
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id AND d.sequence_number = n.sequence_number;
-- sqlserver:
UPDATE d
   SET status = CASE WHEN n.earlier IS NULL THEN 'waiting' ELSE d.status END,
       due_at = CASE WHEN n.earlier IS NULL THEN @freed_at END,
       claimed_by = CASE WHEN n.earlier IS NULL THEN @freed_by ELSE d.claimed_by END,
       held_behind = COALESCE(n.earlier, d.held_behind)
  FROM OPENJSON(@sequence_numbers) WITH (sequence_number bigint '$[0]') AS s
 INNER JOIN hubledger.event_hub_dead_letter AS d ON d.held_behind = s.sequence_number
 OUTER APPLY (
       SELECT TOP (1) o.sequence_number AS earlier
         FROM hubledger.event_hub_dead_letter AS o
        WHERE o.stream_id = @stream_id AND o.partition_id = @partition_id AND o.key_hash = d.key_hash
          AND o.status IN ('waiting', 'retrying', 'held', 'exhausted') AND o.sequence_number < d.sequence_number
        ORDER BY o.sequence_number DESC) AS n
 WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id AND d.status = 'held'
OPTION (LOOP JOIN, FORCE ORDER);

-- name: order_letters
-- Hold the open letters of these partition keys, a JSON array of [partition_key], each after the one before it; free
-- the first of each key.
-- params: stream_id int, partition_id varchar(8000), partition_keys nvarchar(max), freed_by nvarchar(4000), freed_at datetime2(6)
UPDATE event_hub_dead_letter AS d
   SET status = CASE WHEN n.earlier IS NULL THEN 'waiting' ELSE 'held' END,
       due_at = CASE WHEN n.earlier IS NULL THEN :freed_at END, claimed_by = :freed_by, claimed_until = NULL,
       began_at = NULL, held_behind = n.earlier, settled_at = NULL, settled_why = NULL
  FROM (SELECT o.sequence_number,
               LAG(o.sequence_number) OVER (PARTITION BY o.partition_key ORDER BY o.sequence_number) AS earlier
          FROM event_hub_dead_letter AS o
         WHERE o.stream_id = :stream_id AND o.partition_id = :partition_id
           AND o.partition_key IN (SELECT k.value ->> 0 FROM json_each(:partition_keys) AS k)
           AND o.status IN ('waiting', 'retrying', 'held', 'exhausted')) AS n
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id AND d.sequence_number = n.sequence_number
   AND CASE WHEN n.earlier IS NULL THEN d.status = 'held'
            ELSE d.status <> 'held' OR COALESCE(d.held_behind, -1) <> n.earlier END;
-- sqlserver:
UPDATE d
   SET status = CASE WHEN n.earlier IS NULL THEN 'waiting' ELSE 'held' END,
       due_at = CASE WHEN n.earlier IS NULL THEN @freed_at END, claimed_by = @freed_by, claimed_until = NULL,
       began_at = NULL, held_behind = n.earlier, settled_at = NULL, settled_why = NULL
  FROM hubledger.event_hub_dead_letter AS d
 INNER JOIN (
       SELECT o.sequence_number, LAG(o.sequence_number) OVER (
              PARTITION BY o.key_hash ORDER BY o.sequence_number) AS earlier
         FROM hubledger.event_hub_dead_letter AS o
        WHERE o.stream_id = @stream_id AND o.partition_id = @partition_id
          AND o.key_hash IN (
              SELECT CONVERT(binary(32), HASHBYTES('SHA2_256', k.partition_key))
                FROM OPENJSON(@partition_keys) WITH (partition_key nvarchar(max) '$[0]') AS k)
          AND o.status IN ('waiting', 'retrying', 'held', 'exhausted')) AS n
    ON n.sequence_number = d.sequence_number
 WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id
   AND ((n.earlier IS NULL AND d.status = 'held')
        OR (n.earlier IS NOT NULL AND (d.status <> 'held' OR COALESCE(d.held_behind, -1) <> n.earlier)));

-- name: free_without_order
-- Free the first held letter of each key of a stream that has no earlier letter waiting or being retried; a part of them.
-- On the server, UPDLOCK keeps all that it reads, so only the letters that are freed are read with it.
-- params: stream_id int, freed_by nvarchar(4000), freed_at datetime2(6), most int
UPDATE event_hub_dead_letter
   SET status = 'waiting', due_at = :freed_at, claimed_by = :freed_by
 WHERE rowid IN (
       SELECT d.rowid
         FROM event_hub_dead_letter AS d
        WHERE d.stream_id = :stream_id AND d.status = 'held'
          AND NOT EXISTS (
              SELECT 1
                FROM event_hub_dead_letter AS o
               WHERE o.stream_id = d.stream_id AND o.partition_id = d.partition_id
                 AND o.partition_key = d.partition_key
                 AND o.status IN ('waiting', 'retrying', 'held', 'exhausted') AND o.status <> 'exhausted'
                 AND o.sequence_number < d.sequence_number)
        ORDER BY d.failed_at, d.partition_id, d.sequence_number LIMIT :most);
-- sqlserver:
UPDATE d
   SET status = 'waiting', due_at = @freed_at, claimed_by = @freed_by
  FROM (SELECT TOP (@most) h.partition_id, h.sequence_number
          FROM hubledger.event_hub_dead_letter AS h WITH (READPAST, READCOMMITTEDLOCK)
         WHERE h.stream_id = @stream_id AND h.status = 'held'
           AND NOT EXISTS (
               SELECT 1
                 FROM hubledger.event_hub_dead_letter AS o
                WHERE o.stream_id = h.stream_id AND o.partition_id = h.partition_id
                  AND o.key_hash = h.key_hash
                  AND o.status IN ('waiting', 'retrying', 'held', 'exhausted') AND o.status <> 'exhausted'
                  AND o.sequence_number < h.sequence_number)) AS n
 INNER JOIN hubledger.event_hub_dead_letter AS d WITH (ROWLOCK, READPAST, UPDLOCK, READCOMMITTEDLOCK)
    ON d.stream_id = @stream_id AND d.partition_id = n.partition_id AND d.sequence_number = n.sequence_number
 WHERE d.status = 'held'
OPTION (LOOP JOIN, FORCE ORDER);

-- name: take_freed_letters
-- Claim the letters that a retry has freed, if nobody else has claimed them.
-- params: stream_id int, partition_id varchar(8000), freed_by nvarchar(4000), freed_at datetime2(6), claimed_by nvarchar(4000), claimed_until datetime2(6)
UPDATE event_hub_dead_letter
   SET status = 'retrying', claimed_by = :claimed_by, claimed_until = :claimed_until, due_at = :claimed_until,
       began_at = NULL
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND status IN ('waiting', 'retrying')
   AND status = 'waiting' AND due_at = :freed_at AND claimed_by = :freed_by;
-- sqlserver:
UPDATE d
   SET status = 'retrying', claimed_by = @claimed_by, claimed_until = @claimed_until, due_at = @claimed_until,
       began_at = NULL
  FROM hubledger.event_hub_dead_letter AS d WITH (ROWLOCK, READPAST, UPDLOCK, READCOMMITTEDLOCK)
 WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id AND d.status IN ('waiting', 'retrying')
   AND d.status = 'waiting' AND d.due_at = @freed_at AND d.claimed_by = @freed_by;

-- name: read_taken
-- Read the letters that a retry has freed and claimed, with their events: they were held after these letters.
-- params: stream_id int, partition_id varchar(8000), sequence_numbers nvarchar(max), claimed_by nvarchar(4000), claimed_until datetime2(6)
SELECT d.sequence_number, d.offset_token, d.enqueued_at, d.partition_key, d.properties, d.body, d.body_kept, d.attempts,
       d.lost_claims
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id AND d.status IN ('waiting', 'retrying')
   AND d.status = 'retrying' AND d.due_at = :claimed_until AND d.claimed_by = :claimed_by
   AND d.held_behind IN (
       SELECT n.sequence_number FROM rows(:sequence_numbers) AS n (sequence_number bigint));
