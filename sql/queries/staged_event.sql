-- name: read_kept_events
-- Read the first events of a range that are stored here: with a letter's body, or else staged.
-- params: stream_id int, partition_id varchar(8000), first_sequence_number bigint, last_sequence_number bigint, most int
SELECT d.sequence_number, d.offset_token, d.enqueued_at, d.partition_key, d.properties, d.body
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id AND d.body_kept = 1
   AND d.sequence_number BETWEEN :first_sequence_number AND :last_sequence_number
 UNION ALL
SELECT s.sequence_number, s.offset_token, s.enqueued_at, s.partition_key, s.properties, s.body
  FROM staged_event AS s
 WHERE s.stream_id = :stream_id AND s.partition_id = :partition_id
   AND s.sequence_number BETWEEN :first_sequence_number AND :last_sequence_number
   AND NOT EXISTS (
       SELECT 1 FROM event_hub_dead_letter AS l
        WHERE l.stream_id = s.stream_id AND l.partition_id = s.partition_id
          AND l.sequence_number = s.sequence_number AND l.body_kept = 1)
 ORDER BY sequence_number
 LIMIT :most;
-- sqlserver:
SELECT TOP (@most) k.sequence_number, k.offset_token, k.enqueued_at, k.partition_key, k.properties, k.body
  FROM (SELECT d.sequence_number, d.offset_token, d.enqueued_at, d.partition_key, d.properties, d.body
          FROM hubledger.event_hub_dead_letter AS d
         WHERE d.stream_id = @stream_id AND d.partition_id = @partition_id AND d.body_kept = 1
           AND d.sequence_number BETWEEN @first_sequence_number AND @last_sequence_number
         UNION ALL
        SELECT s.sequence_number, s.offset_token, s.enqueued_at, s.partition_key, s.properties, s.body
          FROM hubledger.staged_event AS s
         WHERE s.stream_id = @stream_id AND s.partition_id = @partition_id
           AND s.sequence_number BETWEEN @first_sequence_number AND @last_sequence_number
           AND NOT EXISTS (
               SELECT 1 FROM hubledger.event_hub_dead_letter AS l
                WHERE l.stream_id = s.stream_id AND l.partition_id = s.partition_id
                  AND l.sequence_number = s.sequence_number AND l.body_kept = 1)) AS k
 ORDER BY k.sequence_number;

-- name: forget_staged
-- Delete staged events that were replayed for good.
-- params: stream_id int, partition_id varchar(8000), sequence_numbers nvarchar(max)
DELETE FROM staged_event
 WHERE stream_id = :stream_id AND partition_id = :partition_id
   AND sequence_number IN (
       SELECT n.sequence_number FROM rows(:sequence_numbers) AS n (sequence_number bigint));
