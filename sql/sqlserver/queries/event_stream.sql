-- name: find_stream
-- Find the stream of a hub and consumer group, in its newest incarnation.
-- params: event_hub nvarchar(4000), consumer_group nvarchar(4000)
SELECT TOP (1) e.stream_id
  FROM hubledger.event_stream AS e
 WHERE e.event_hub = @event_hub AND e.consumer_group = @consumer_group
 ORDER BY e.incarnation DESC;

-- name: open_stream
-- Insert the first incarnation of a stream; does nothing when another process opened it first.
-- params: event_hub nvarchar(4000), consumer_group nvarchar(4000), anchored_at datetime2(7)
BEGIN TRY
    INSERT INTO hubledger.event_stream (event_hub, consumer_group, incarnation, anchored_at)
    SELECT @event_hub, @consumer_group, 1, @anchored_at
     WHERE NOT EXISTS (
           SELECT 1 FROM hubledger.event_stream AS e
            WHERE e.event_hub = @event_hub AND e.consumer_group = @consumer_group AND e.incarnation = 1);
END TRY
BEGIN CATCH
    IF ERROR_NUMBER() NOT IN (2601, 2627) THROW;  -- opened by another at the same moment
END CATCH;
