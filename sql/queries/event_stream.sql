-- name: find_stream
-- Find the stream of a hub and consumer group, in its newest incarnation.
-- params: event_hub nvarchar(4000), consumer_group nvarchar(4000)
SELECT e.stream_id
  FROM event_stream AS e
 WHERE e.event_hub = :event_hub AND e.consumer_group = :consumer_group
 ORDER BY e.incarnation DESC
 LIMIT 1;

-- name: open_stream
-- Insert the first incarnation of a stream; does nothing when another process opened it first.
-- params: event_hub nvarchar(4000), consumer_group nvarchar(4000), anchored_at datetime2(6)
-- races: opened by another process at the same moment
INSERT INTO event_stream (event_hub, consumer_group, incarnation, anchored_at)
SELECT :event_hub, :consumer_group, 1, :anchored_at
 WHERE NOT EXISTS (
       SELECT 1 FROM event_stream AS e
        WHERE e.event_hub = :event_hub AND e.consumer_group = :consumer_group AND e.incarnation = 1);

-- name: read_event_key
-- Read the key by which a stream holds its events, and 1 when that key has to stay: letters or tasks are open, or
-- subjects were erased.
-- params: stream_id int
SELECT e.event_key,
       CASE WHEN EXISTS (
            SELECT 1 FROM event_hub_dead_letter AS d
             WHERE d.stream_id = e.stream_id AND d.status IN ('waiting', 'retrying', 'held', 'exhausted'))
         OR EXISTS (
            SELECT 1 FROM task AS t WHERE t.stream_id = e.stream_id AND t.status IN ('planned', 'running', 'paused'))
         OR (EXISTS (SELECT 1 FROM erased_subject AS s)
             AND EXISTS (SELECT 1 FROM event_hub_checkpoint AS c WHERE c.stream_id = e.stream_id))
       THEN 1 ELSE 0 END AS is_needed
  FROM event_stream AS e
 WHERE e.stream_id = :stream_id;

-- name: change_event_key
-- Change the key by which a stream holds its events, if it is still the one that was read.
-- params: stream_id int, event_key nvarchar(4000), former nvarchar(4000)
UPDATE event_stream
   SET event_key = :event_key
 WHERE stream_id = :stream_id AND event_key = :former;

-- name: read_incarnation
-- Read the newest incarnation of a stream, with its hub, its opening, and the reason.
-- params: event_hub nvarchar(4000), consumer_group nvarchar(4000)
SELECT e.stream_id, e.incarnation, e.anchored_at, e.hub_created_at, e.opened_by, e.opened_why
  FROM event_stream AS e
 WHERE e.event_hub = :event_hub AND e.consumer_group = :consumer_group
 ORDER BY e.incarnation DESC
 LIMIT 1;

-- name: adopt_hub
-- Store the time of creation of a stream's hub, unless it is stored.
-- params: stream_id int, hub_created_at datetime2(6)
UPDATE event_stream
   SET hub_created_at = :hub_created_at
 WHERE stream_id = :stream_id AND hub_created_at IS NULL;

-- name: lock_stream
-- Lock a stream: its jobs are opened one after the other, and between the pieces of purges; on the server, commits do
-- not wait. No row when the stream is closed.
-- params: stream_id int
SELECT stream_id AS locked_stream
  FROM event_stream
 WHERE stream_id = :stream_id AND closed_at IS NULL;
-- sqlserver:
SELECT @locked_stream = e.stream_id
  FROM hubledger.event_stream AS e WITH (UPDLOCK)
 WHERE e.stream_id = @stream_id AND e.closed_at IS NULL;

-- name: know_erasures
-- Let no erasure begin in a stream until the transaction ends. No row after an erasure that the plan does not know.
-- params: stream_id int, known_erasures int
SELECT @known_stream = e.stream_id
  FROM event_stream AS e WITH (REPEATABLEREAD)
 WHERE e.stream_id = :stream_id AND e.erasures <= :known_erasures;

-- name: close_incarnation
-- Compare and set: touches no row when a different operator opened the next incarnation first.
-- params: stream_id int, incarnation int, closed_at datetime2(6)
UPDATE event_stream
   SET closed_at = :closed_at
 WHERE stream_id = :stream_id AND incarnation = :incarnation AND closed_at IS NULL;

-- name: open_incarnation
-- Insert the incarnation after a closed one.
-- params: stream_id int, anchored_at datetime2(6), hub_created_at datetime2(6), opened_by nvarchar(4000), opened_why nvarchar(4000)
INSERT INTO event_stream
       (event_hub, consumer_group, incarnation, anchored_at, hub_created_at, opened_by, opened_why, event_key)
SELECT e.event_hub, e.consumer_group, e.incarnation + 1, :anchored_at, :hub_created_at, :opened_by, :opened_why,
       e.event_key
  FROM event_stream AS e
 WHERE e.stream_id = :stream_id;

-- name: anchor_incarnation
-- Insert the anchors of the incarnation after a closed one.
-- params: stream_id int, anchored_at datetime2(6), anchors rows (partition_id, sequence_number)
INSERT INTO partition_anchor (stream_id, partition_id, sequence_number, anchored_at)
SELECT n.stream_id, :partition_id, :sequence_number, :anchored_at
  FROM event_stream AS e
 INNER JOIN event_stream AS n
    ON n.event_hub = e.event_hub AND n.consumer_group = e.consumer_group AND n.incarnation = e.incarnation + 1
 WHERE e.stream_id = :stream_id;
-- sqlserver:
INSERT INTO hubledger.partition_anchor (stream_id, partition_id, sequence_number, anchored_at)
SELECT n.stream_id, p.partition_id, p.sequence_number, @anchored_at
  FROM hubledger.event_stream AS e
 INNER JOIN hubledger.event_stream AS n
    ON n.event_hub = e.event_hub AND n.consumer_group = e.consumer_group AND n.incarnation = e.incarnation + 1
 CROSS JOIN OPENJSON(@anchors) WITH (partition_id varchar(40) '$[0]', sequence_number bigint '$[1]') AS p
 WHERE e.stream_id = @stream_id;

-- name: clear_incarnation_stops
-- Delete the stops of a closed stream that the next incarnation ends.
-- params: stream_id int
DELETE FROM partition_stop
 WHERE stream_id = :stream_id AND reason = 'incarnation';
