-- name: note_partition_fault
-- Store the repeated fault of a partition, or count it again if the partition has one.
-- params: stream_id int, partition_id varchar(8000), detail nvarchar(4000), stopped_at datetime2(7)
INSERT INTO partition_fault (stream_id, partition_id, detail, attempts, stopped_at)
VALUES (:stream_id, :partition_id, :detail, 1, :stopped_at)
ON CONFLICT (stream_id, partition_id) DO UPDATE
   SET detail = excluded.detail, attempts = attempts + 1;
-- sqlserver:
BEGIN TRY
    UPDATE hubledger.partition_fault
       SET detail = @detail, attempts = attempts + 1
     WHERE stream_id = @stream_id AND partition_id = @partition_id;
    IF @@ROWCOUNT = 0
        INSERT INTO hubledger.partition_fault (stream_id, partition_id, detail, attempts, stopped_at)
        VALUES (@stream_id, @partition_id, @detail, 1, @stopped_at);
END TRY
BEGIN CATCH
    IF ERROR_NUMBER() NOT IN (2601, 2627) THROW;  -- stored by another at the same moment: that row counts this
    UPDATE hubledger.partition_fault
       SET detail = @detail, attempts = attempts + 1
     WHERE stream_id = @stream_id AND partition_id = @partition_id;
END CATCH;

-- name: clear_partition_fault
-- Delete the repeated fault of a partition after a commit.
-- params: stream_id int, partition_id varchar(8000)
DELETE FROM partition_fault
 WHERE stream_id = :stream_id AND partition_id = :partition_id;
