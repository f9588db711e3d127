-- name: read_stops
-- Read the stops of a partition.
-- params: stream_id int, partition_id varchar(8000)
SELECT s.reason, s.detail, s.attempts, s.stopped_at, s.carried_from, s.carried_to, s.failure, s.failed, s.tried
  FROM partition_stop AS s
 WHERE s.stream_id = :stream_id AND s.partition_id = :partition_id
 ORDER BY s.reason;

-- name: read_stream_stops
-- Read the stops of all partitions of a stream, each with the letters that batches of its partition have made since.
-- params: stream_id int
SELECT s.partition_id, COALESCE(c.dead_lettered - s.letters_before, 0) AS letters,
       s.reason, s.detail, s.attempts, s.stopped_at, s.carried_from, s.carried_to, s.failure, s.failed, s.tried
  FROM partition_stop AS s
  LEFT JOIN event_hub_checkpoint AS c ON c.stream_id = s.stream_id AND c.partition_id = s.partition_id
 WHERE s.stream_id = :stream_id
 ORDER BY LEN(s.partition_id), s.partition_id, s.reason;

-- name: note_stop
-- Store a stop, or count one more attempt. Touches no row when an erasure is newer than the plan that the detail is about.
-- params: stream_id int, partition_id varchar(8000), reason varchar(8000), detail nvarchar(4000), stopped_at datetime2(6), carried_from bigint, carried_to bigint, failure nvarchar(4000), failed int, tried int, known_erasures int
INSERT INTO partition_stop
       (stream_id, partition_id, reason, detail, attempts, stopped_at, carried_from, carried_to,
        failure, failed, tried, letters_before)
SELECT :stream_id, :partition_id, :reason, :detail, 1, :stopped_at, :carried_from, :carried_to,
       :failure, :failed, :tried,
       (SELECT COALESCE(SUM(c.dead_lettered), 0) FROM event_hub_checkpoint AS c
         WHERE c.stream_id = :stream_id AND c.partition_id = :partition_id)
  FROM event_stream AS e
 WHERE e.stream_id = :stream_id AND e.erasures <= :known_erasures
ON CONFLICT (stream_id, partition_id, reason) DO UPDATE
   SET detail = excluded.detail, attempts = attempts + 1, carried_from = excluded.carried_from,
       carried_to = excluded.carried_to, failure = excluded.failure, failed = excluded.failed, tried = excluded.tried;
-- sqlserver:
BEGIN TRY
    UPDATE hubledger.partition_stop
       SET detail = @detail, attempts = attempts + 1, carried_from = @carried_from, carried_to = @carried_to,
           failure = @failure, failed = @failed, tried = @tried
     WHERE stream_id = @stream_id AND partition_id = @partition_id AND reason = @reason
       AND EXISTS (SELECT 1 FROM hubledger.event_stream AS e WITH (REPEATABLEREAD)
                    WHERE e.stream_id = @stream_id AND e.erasures <= @known_erasures);
    IF @@ROWCOUNT = 0
        INSERT INTO hubledger.partition_stop
               (stream_id, partition_id, reason, detail, attempts, stopped_at, carried_from, carried_to,
                failure, failed, tried, letters_before)
        SELECT @stream_id, @partition_id, @reason, @detail, 1, @stopped_at, @carried_from, @carried_to,
               @failure, @failed, @tried,
               (SELECT COALESCE(SUM(c.dead_lettered), 0) FROM hubledger.event_hub_checkpoint AS c
                 WHERE c.stream_id = @stream_id AND c.partition_id = @partition_id)
          FROM hubledger.event_stream AS e WITH (REPEATABLEREAD)
         WHERE e.stream_id = @stream_id AND e.erasures <= @known_erasures;
END TRY
BEGIN CATCH
    IF ERROR_NUMBER() NOT IN (2601, 2627) THROW;  -- stopped by another process at the same moment: that row counts this
    UPDATE hubledger.partition_stop
       SET detail = @detail, attempts = attempts + 1, carried_from = @carried_from, carried_to = @carried_to,
           failure = @failure, failed = @failed, tried = @tried
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
