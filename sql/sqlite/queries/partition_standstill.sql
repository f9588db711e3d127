-- name: note_partition_standstill
-- Store that the trigger of a partition stands, or count it again if it is stored.
-- params: stream_id, partition_id, detail, stopped_at
INSERT INTO partition_standstill (stream_id, partition_id, detail, attempts, stopped_at)
VALUES (:stream_id, :partition_id, :detail, 1, :stopped_at)
ON CONFLICT (stream_id, partition_id) DO UPDATE
   SET detail = excluded.detail, attempts = attempts + 1;

-- name: clear_partition_standstill
-- Delete the standstill of a partition whose trigger moves again.
-- params: stream_id, partition_id
DELETE FROM partition_standstill
 WHERE stream_id = :stream_id AND partition_id = :partition_id;
