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

-- name: read_incarnation
-- Read the newest incarnation of a stream, with its hub, its opening, and the reason.
-- params: event_hub, consumer_group
SELECT e.stream_id, e.incarnation, e.anchored_at, e.hub_created_at, e.opened_by, e.opened_why
  FROM event_stream AS e
 WHERE e.event_hub = :event_hub AND e.consumer_group = :consumer_group
 ORDER BY e.incarnation DESC
 LIMIT 1;

-- name: adopt_hub
-- Store the time of creation of a stream's hub, unless it is stored.
-- params: stream_id, hub_created_at
UPDATE event_stream
   SET hub_created_at = :hub_created_at
 WHERE stream_id = :stream_id AND hub_created_at IS NULL;

-- name: lock_stream
-- Find a stream, which the transaction locks: its jobs are opened one after the other, and between the pieces of purges.
-- No row when it is closed.
-- params: stream_id
SELECT stream_id AS locked_stream
  FROM event_stream
 WHERE stream_id = :stream_id AND closed_at IS NULL;

-- name: close_incarnation
-- Compare and set: touches no row when a different operator opened the next incarnation first.
-- params: stream_id, incarnation, closed_at
UPDATE event_stream
   SET closed_at = :closed_at
 WHERE stream_id = :stream_id AND incarnation = :incarnation AND closed_at IS NULL;

-- name: open_incarnation
-- Insert the incarnation after a closed one.
-- params: stream_id, anchored_at, hub_created_at, opened_by, opened_why
INSERT INTO event_stream
       (event_hub, consumer_group, incarnation, anchored_at, hub_created_at, opened_by, opened_why)
SELECT e.event_hub, e.consumer_group, e.incarnation + 1, :anchored_at, :hub_created_at, :opened_by, :opened_why
  FROM event_stream AS e
 WHERE e.stream_id = :stream_id;

-- name: anchor_incarnation
-- Insert the anchors of the incarnation after a closed one.
-- params: stream_id, anchored_at, partition_id, sequence_number
INSERT INTO partition_anchor (stream_id, partition_id, sequence_number, anchored_at)
SELECT n.stream_id, :partition_id, :sequence_number, :anchored_at
  FROM event_stream AS e
 INNER JOIN event_stream AS n
    ON n.event_hub = e.event_hub AND n.consumer_group = e.consumer_group AND n.incarnation = e.incarnation + 1
 WHERE e.stream_id = :stream_id;

-- name: clear_incarnation_stops
-- Delete the stops of a closed stream that the next incarnation ends.
-- params: stream_id
DELETE FROM partition_stop
 WHERE stream_id = :stream_id AND reason = 'incarnation';

-- name: cancel_replays_of_stream
-- Cancel the open replays of a closed stream: its numbers mean different events in the hub now.
-- params: stream_id, moved_at, fault
UPDATE replay_job
   SET status = 'cancelled', updated_at = :moved_at, ended_at = :moved_at, fault = :fault
 WHERE stream_id = :stream_id AND status IN ('planned', 'running', 'paused');

-- name: fail_audit_of_stream
-- Fail the open audit of a closed stream: a process that works on it records nothing more.
-- params: stream_id, moved_at, fault
UPDATE audit_job
   SET status = 'failed', updated_at = :moved_at, ended_at = :moved_at, fault = :fault
 WHERE stream_id = :stream_id AND status = 'open';

-- name: fail_purge_of_stream
-- Fail the open purge of a closed stream: a process that works on it purges nothing more.
-- params: stream_id, moved_at, fault
UPDATE purge_job
   SET status = 'failed', updated_at = :moved_at, ended_at = :moved_at, fault = :fault
 WHERE stream_id = :stream_id AND status = 'open';
