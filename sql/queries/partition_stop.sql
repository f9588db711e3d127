-- name: read_stops
-- Read the stops of a partition.
-- params: stream_id int, partition_id varchar(8000)
SELECT s.reason, s.detail, s.attempts, s.stopped_at, s.carried_from, s.carried_to
  FROM partition_stop AS s
 WHERE s.stream_id = :stream_id AND s.partition_id = :partition_id
 ORDER BY s.reason;

-- name: read_stream_stops
-- Read the stops of all partitions of a stream.
-- params: stream_id int
SELECT s.partition_id, s.reason, s.detail, s.attempts, s.stopped_at, s.carried_from, s.carried_to
  FROM partition_stop AS s
 WHERE s.stream_id = :stream_id
 ORDER BY LEN(s.partition_id), s.partition_id, s.reason;

-- name: note_stop
-- Store a stop, or count one more attempt. Touches no row when an erasure is newer than the plan that the detail is about.
-- params: stream_id int, partition_id varchar(8000), reason varchar(8000), detail nvarchar(4000), stopped_at datetime2(6), carried_from bigint, carried_to bigint, known_erasures int
INSERT INTO partition_stop
       (stream_id, partition_id, reason, detail, attempts, stopped_at, carried_from, carried_to)
SELECT :stream_id, :partition_id, :reason, :detail, 1, :stopped_at, :carried_from, :carried_to
  FROM event_stream AS e
 WHERE e.stream_id = :stream_id AND e.erasures <= :known_erasures
ON CONFLICT (stream_id, partition_id, reason) DO UPDATE
   SET detail = excluded.detail, attempts = attempts + 1, carried_from = excluded.carried_from,
       carried_to = excluded.carried_to;
-- sqlserver:
BEGIN TRY
    UPDATE hubledger.partition_stop
       SET detail = @detail, attempts = attempts + 1, carried_from = @carried_from, carried_to = @carried_to
     WHERE stream_id = @stream_id AND partition_id = @partition_id AND reason = @reason
       AND EXISTS (SELECT 1 FROM hubledger.event_stream AS e WITH (REPEATABLEREAD)
                    WHERE e.stream_id = @stream_id AND e.erasures <= @known_erasures);
    IF @@ROWCOUNT = 0
        INSERT INTO hubledger.partition_stop
               (stream_id, partition_id, reason, detail, attempts, stopped_at, carried_from, carried_to)
        SELECT @stream_id, @partition_id, @reason, @detail, 1, @stopped_at, @carried_from, @carried_to
          FROM hubledger.event_stream AS e WITH (REPEATABLEREAD)
         WHERE e.stream_id = @stream_id AND e.erasures <= @known_erasures;
END TRY
BEGIN CATCH
    IF ERROR_NUMBER() NOT IN (2601, 2627) THROW;  -- stopped by another process at the same moment: that row counts this
    UPDATE hubledger.partition_stop
       SET detail = @detail, attempts = attempts + 1, carried_from = @carried_from, carried_to = @carried_to
     WHERE stream_id = @stream_id AND partition_id = @partition_id AND reason = @reason
       AND EXISTS (SELECT 1 FROM hubledger.event_stream AS e WITH (REPEATABLEREAD)
                    WHERE e.stream_id = @stream_id AND e.erasures <= @known_erasures);
END CATCH;

-- name: clear_stops
-- Delete stops: the partition continues.
-- params: stream_id int, partition_id varchar(8000), reasons nvarchar(max)
DELETE FROM partition_stop
 WHERE stream_id = :stream_id AND partition_id = :partition_id
   AND reason IN (SELECT n.reason FROM rows(:reasons) AS n (reason varchar(20)));
