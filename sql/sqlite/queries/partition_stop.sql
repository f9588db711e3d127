-- name: read_stops
-- Read the stops of a partition.
-- params: stream_id, partition_id
SELECT s.reason, s.detail, s.attempts, s.stopped_at
  FROM partition_stop AS s
 WHERE s.stream_id = :stream_id AND s.partition_id = :partition_id
 ORDER BY s.reason;

-- name: read_stream_stops
-- Read the stops of all partitions of a stream.
-- params: stream_id
SELECT s.partition_id, s.reason, s.detail, s.attempts, s.stopped_at
  FROM partition_stop AS s
 WHERE s.stream_id = :stream_id
 ORDER BY LENGTH(s.partition_id), s.partition_id, s.reason;

-- name: note_stop
-- Store a stop; count one more attempt when it is stored already.
-- params: stream_id, partition_id, reason, detail, stopped_at
INSERT INTO partition_stop (stream_id, partition_id, reason, detail, attempts, stopped_at)
VALUES (:stream_id, :partition_id, :reason, :detail, 1, :stopped_at)
ON CONFLICT (stream_id, partition_id, reason) DO UPDATE
   SET detail = excluded.detail, attempts = attempts + 1;

-- name: clear_stops
-- Delete stops: the partition continues.
-- params: stream_id, partition_id, reasons
DELETE FROM partition_stop
 WHERE stream_id = :stream_id AND partition_id = :partition_id
   AND reason IN (SELECT n.value ->> 0 FROM json_each(:reasons) AS n);
