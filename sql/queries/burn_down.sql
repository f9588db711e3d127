-- name: count_open_letters
-- Of the open letters of a partition, with or without a body, count those before the number at which the hub begins, and
-- find the first time of the others. The index alone answers.
-- params: stream_id int, partition_id varchar(8000), body_kept bit, beginning bigint
SELECT COALESCE(SUM(CASE WHEN d.sequence_number < :beginning THEN 1 ELSE 0 END), 0) AS gone,
       CONVERT(varchar(33), MIN(CASE WHEN d.sequence_number >= :beginning THEN d.enqueued_at END), 126) AS first_at
  FROM event_hub_dead_letter AS d INDEXED BY ix_event_hub_dead_letter_open
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id
   AND d.status IN ('waiting', 'retrying', 'held', 'exhausted') AND d.body_kept = :body_kept;

-- name: read_open_gaps
-- Read the open gaps of a stream in order, without those that the checkpoint has passed: they are healed, and are closed
-- later. The event after the checkpoint is not older than the checkpoint's.
-- params: stream_id int, most int
SELECT g.partition_id, g.first_sequence_number,
       CONVERT(varchar(33), COALESCE(c.enqueued_at, g.found_at), 126) AS after_at
  FROM sequence_gap AS g
  LEFT JOIN event_hub_checkpoint AS c ON c.stream_id = g.stream_id AND c.partition_id = g.partition_id
 WHERE g.stream_id = :stream_id AND g.status = 'open'
   AND (c.sequence_number IS NULL OR c.sequence_number < g.last_sequence_number)
 ORDER BY g.partition_id, g.first_sequence_number
 LIMIT :most;
