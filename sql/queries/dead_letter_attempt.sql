-- name: record_attempts
-- Record one attempt for each letter that a claim or a move touched, with the status that the letter has now.
-- params: stream_id int, partition_id varchar(8000), sequence_numbers nvarchar(max), touched_by nvarchar(4000), kind varchar(8000), commit_number bigint, done_by nvarchar(4000), why nvarchar(4000), done_at datetime2(6)
INSERT INTO dead_letter_attempt
       (stream_id, partition_id, sequence_number, attempt, touched_by, kind, status, error_class, error_type, error,
        cause, transform_version, commit_number, done_by, why, done_at)
SELECT d.stream_id, d.partition_id, d.sequence_number,
       1 + COALESCE((SELECT MAX(a.attempt) FROM dead_letter_attempt AS a
                      WHERE a.stream_id = d.stream_id AND a.partition_id = d.partition_id
                        AND a.sequence_number = d.sequence_number), 0),
       :touched_by, :kind, d.status, CASE WHEN d.status <> 'resolved' THEN d.error_class END,
       CASE WHEN d.status <> 'resolved' THEN d.error_type END, CASE WHEN d.status <> 'resolved' THEN d.error END,
       CASE WHEN d.status <> 'resolved' THEN d.cause END, d.transform_version, NULLIF(:commit_number, 0), :done_by, COALESCE(d.settled_why, NULLIF(:why, '')), :done_at
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id
   AND d.sequence_number IN (
       SELECT n.sequence_number FROM rows(:sequence_numbers) AS n (sequence_number bigint))
   AND d.claimed_by = :touched_by AND d.status <> 'held'
   AND NOT EXISTS (
       SELECT 1 FROM dead_letter_attempt AS a
        WHERE a.stream_id = d.stream_id AND a.partition_id = d.partition_id
          AND a.sequence_number = d.sequence_number AND a.touched_by = :touched_by);

-- name: record_freed
-- Record an attempt for each letter that a commit or a move has freed.
-- params: stream_id int, partition_id varchar(8000), freed_by nvarchar(4000), commit_number bigint, done_by nvarchar(4000), freed_at datetime2(6)
INSERT INTO dead_letter_attempt
       (stream_id, partition_id, sequence_number, attempt, touched_by, kind, status, error_class, error_type, error,
        cause, transform_version, commit_number, done_by, why, done_at)
SELECT d.stream_id, d.partition_id, d.sequence_number,
       1 + COALESCE((SELECT MAX(a.attempt) FROM dead_letter_attempt AS a
                      WHERE a.stream_id = d.stream_id AND a.partition_id = d.partition_id
                        AND a.sequence_number = d.sequence_number), 0),
       :freed_by, 'free', d.status, CASE WHEN d.status <> 'resolved' THEN d.error_class END,
       CASE WHEN d.status <> 'resolved' THEN d.error_type END, CASE WHEN d.status <> 'resolved' THEN d.error END,
       CASE WHEN d.status <> 'resolved' THEN d.cause END, d.transform_version, NULLIF(:commit_number, 0), :done_by, NULL, :freed_at
  FROM event_hub_dead_letter AS d
 WHERE d.stream_id = :stream_id AND d.partition_id = :partition_id
   AND d.status IN ('waiting', 'retrying') AND d.status = 'waiting' AND d.due_at = :freed_at
   AND d.claimed_by = :freed_by
   AND NOT EXISTS (
       SELECT 1 FROM dead_letter_attempt AS a
        WHERE a.stream_id = d.stream_id AND a.partition_id = d.partition_id
          AND a.sequence_number = d.sequence_number AND a.touched_by = :freed_by);
