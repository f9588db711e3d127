-- name: note_partition_fault
-- Store the repeated fault of a partition, or count it again if the partition has one.
-- params: stream_id int, partition_id varchar(8000), detail nvarchar(4000), stopped_at datetime2(7)
UPDATE hubledger.partition_fault
   SET detail = @detail, attempts = attempts + 1
 WHERE stream_id = @stream_id AND partition_id = @partition_id;
BEGIN TRY
    INSERT INTO hubledger.partition_fault (stream_id, partition_id, detail, attempts, stopped_at)
    SELECT @stream_id, @partition_id, @detail, 1, @stopped_at
     WHERE NOT EXISTS (
           SELECT 1 FROM hubledger.partition_fault AS f
            WHERE f.stream_id = @stream_id AND f.partition_id = @partition_id);
END TRY
BEGIN CATCH
    IF ERROR_NUMBER() NOT IN (2601, 2627) THROW;  -- stored by another at the same moment
END CATCH;

-- name: clear_partition_fault
-- Delete the repeated fault of a partition after a commit.
-- params: stream_id int, partition_id varchar(8000)
DELETE FROM hubledger.partition_fault
 WHERE stream_id = @stream_id AND partition_id = @partition_id;
