-- name: read_open_keys
-- Read the partition keys of a partition that have an open letter.
-- params: stream_id, partition_id, most
SELECT DISTINCT d.partition_key
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id AND d.partition_key IS NOT NULL
   AND d.status IN ('waiting', 'retrying', 'held', 'exhausted')
 LIMIT :most;

-- name: find_open_letters
-- Find the last open letter before a number of each of these partition keys, a JSON array of [partition_key].
-- params: stream_id, partition_id, partition_keys, before
SELECT d.partition_key, d.sequence_number, d.error_class
  FROM json_each(:partition_keys) AS k
 CROSS JOIN event_hub_dead_letter AS d
    ON d.stream_id = :stream_id AND d.partition_id = :partition_id
   AND d.sequence_number = (
       SELECT MAX(o.sequence_number)
         FROM event_hub_dead_letter AS o
        WHERE o.stream_id = :stream_id AND o.partition_id = :partition_id AND o.partition_key = k.value ->> 0
          AND o.status IN ('waiting', 'retrying', 'held', 'exhausted') AND o.sequence_number < :before);

-- name: count_held
-- Count the held letters of a partition.
-- params: stream_id, partition_id
SELECT COUNT(*) AS held
  FROM event_hub_dead_letter AS d INDEXED BY ix_event_hub_dead_letter_held
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id AND d.status = 'held';

-- name: find_discarded
-- Find the letters of a range that a person discarded.
-- params: stream_id, partition_id, first_sequence_number, last_sequence_number
SELECT d.sequence_number
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id AND d.status = 'discarded'
   AND d.sequence_number BETWEEN :first_sequence_number AND :last_sequence_number;

-- name: find_crashed
-- Find the letters of a range whose events have killed their process with this version of the transform.
-- params: stream_id, partition_id, first_sequence_number, last_sequence_number, transform_version
SELECT d.sequence_number
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id AND d.status <> 'resolved'
   AND d.error_class = 'crash' AND d.transform_version = :transform_version
   AND d.sequence_number BETWEEN :first_sequence_number AND :last_sequence_number;

-- name: free_letters
-- Free the held letters that come right after these: they are due now, unless an earlier letter of their key is open.
-- params: stream_id, partition_id, sequence_numbers, freed_by, freed_at
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

-- name: order_letters
-- Hold the open letters of these partition keys, a JSON array of [partition_key], each after the one before it; free
-- the first of each key.
-- params: stream_id, partition_id, partition_keys, freed_by, freed_at
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

-- name: free_without_order
-- Free the first held letter of each key of a stream that has no earlier letter waiting or being retried; a part of them.
-- params: stream_id, freed_by, freed_at, most
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

-- name: take_freed_letters
-- Claim the letters that a retry has freed, if nobody else has claimed them.
-- params: stream_id, partition_id, freed_by, freed_at, claimed_by, claimed_until
UPDATE event_hub_dead_letter
   SET status = 'retrying', claimed_by = :claimed_by, claimed_until = :claimed_until, due_at = :claimed_until,
       began_at = NULL
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND status IN ('waiting', 'retrying')
   AND status = 'waiting' AND due_at = :freed_at AND claimed_by = :freed_by;

-- name: read_taken
-- Read the letters that a retry has freed and claimed, with their events: they were held after these letters.
-- params: stream_id, partition_id, sequence_numbers, claimed_by, claimed_until
SELECT d.sequence_number, d.offset_token, d.enqueued_at, d.partition_key, d.properties, d.body, d.body_kept, d.attempts,
       d.lost_claims
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id AND d.status IN ('waiting', 'retrying')
   AND d.status = 'retrying' AND d.due_at = :claimed_until AND d.claimed_by = :claimed_by
   AND d.held_behind IN (SELECT n.value ->> 0 FROM json_each(:sequence_numbers) AS n);
