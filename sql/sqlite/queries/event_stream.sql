-- name: find_stream
-- Find the stream of a hub and consumer group, in its newest incarnation.
-- params: event_hub, consumer_group
SELECT stream_id
  FROM event_stream
 WHERE event_hub = :event_hub AND consumer_group = :consumer_group
 ORDER BY incarnation DESC
 LIMIT 1;

-- name: open_stream
-- Insert the first incarnation of a stream; does nothing when another process opened it first.
-- params: event_hub, consumer_group, anchored_at
INSERT INTO event_stream (event_hub, consumer_group, incarnation, anchored_at)
VALUES (:event_hub, :consumer_group, 1, :anchored_at)
ON CONFLICT (event_hub, consumer_group, incarnation) DO NOTHING;
