-- name: note_partition_fault
-- Store the repeated fault of a partition, or count it again if the partition has one.
-- params: stream_id, partition_id, detail, stopped_at
INSERT INTO partition_fault (stream_id, partition_id, detail, attempts, stopped_at)
VALUES (:stream_id, :partition_id, :detail, 1, :stopped_at)
ON CONFLICT (stream_id, partition_id) DO UPDATE
   SET detail = excluded.detail, attempts = attempts + 1;

-- name: clear_partition_fault
-- Delete the repeated fault of a partition after a commit.
-- params: stream_id, partition_id
DELETE FROM partition_fault
 WHERE stream_id = :stream_id AND partition_id = :partition_id;
