-- name: remove_minutes
-- Delete the minutes of all streams before a time.
-- params: before_at datetime2(6)
DELETE FROM stream_minute
 WHERE minute_at < :before_at;

-- name: add_minute
-- Insert the minute of a stream; touches no row when a watch has stored it before.
-- params: minute_at datetime2(6), stream_id int, read_at datetime2(6), lag bigint, accounted bigint
INSERT INTO stream_minute (minute_at, stream_id, read_at, lag, accounted)
SELECT :minute_at, :stream_id, :read_at, :lag, :accounted
 WHERE NOT EXISTS (
       SELECT 1 FROM stream_minute AS m
        WHERE m.minute_at = :minute_at AND m.stream_id = :stream_id);

-- name: read_minutes
-- Read the minutes of a stream since a time, in order.
-- params: stream_id int, since_at datetime2(6)
SELECT CONVERT(varchar(33), m.read_at, 126) AS read_at, m.lag, m.accounted
  FROM stream_minute AS m
 WHERE m.minute_at >= :since_at AND m.stream_id = :stream_id
 ORDER BY m.minute_at;
