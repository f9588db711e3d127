-- name: note_partition_standstill
-- Store that the trigger of a partition stands, or count it again if it is stored.
-- params: stream_id int, partition_id varchar(8000), detail nvarchar(4000), stopped_at datetime2(7)
INSERT INTO partition_standstill (stream_id, partition_id, detail, attempts, stopped_at)
VALUES (:stream_id, :partition_id, :detail, 1, :stopped_at)
ON CONFLICT (stream_id, partition_id) DO UPDATE
   SET detail = excluded.detail, attempts = attempts + 1;
-- sqlserver:
BEGIN TRY
    UPDATE hubledger.partition_standstill
       SET detail = @detail, attempts = attempts + 1
     WHERE stream_id = @stream_id AND partition_id = @partition_id;
    IF @@ROWCOUNT = 0
        INSERT INTO hubledger.partition_standstill (stream_id, partition_id, detail, attempts, stopped_at)
        SELECT @stream_id, @partition_id, @detail, 1, @stopped_at
          FROM hubledger.event_stream AS e WITH (REPEATABLEREAD)
         WHERE e.stream_id = @stream_id;
END TRY
BEGIN CATCH
    IF ERROR_NUMBER() NOT IN (2601, 2627) THROW;  -- stored by another at the same moment: that row counts this
    UPDATE hubledger.partition_standstill
       SET detail = @detail, attempts = attempts + 1
     WHERE stream_id = @stream_id AND partition_id = @partition_id;
END CATCH;

-- name: clear_partition_standstill
-- Delete the standstill of a partition whose trigger moves again.
-- params: stream_id int, partition_id varchar(8000)
DELETE FROM partition_standstill
 WHERE stream_id = :stream_id AND partition_id = :partition_id;
