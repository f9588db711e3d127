-- name: read_ownerships
-- Read the owner of each partition of a stream, including released partitions.
-- params: stream_id int
SELECT partition_id, owner_id, etag, last_modified_at
  FROM event_hub_ownership
 WHERE stream_id = :stream_id;

-- name: take_ownership
-- Insert a partition's first owner; touches no row when another owner was first.
-- params: stream_id int, partition_id varchar(8000), owner_id nvarchar(4000), etag varchar(8000), last_modified_at datetime2(6)
-- races: claimed by another process at the same moment
INSERT INTO event_hub_ownership (stream_id, partition_id, owner_id, etag, last_modified_at)
SELECT :stream_id, :partition_id, :owner_id, :etag, :last_modified_at
 WHERE NOT EXISTS (
       SELECT 1 FROM event_hub_ownership AS o
        WHERE o.stream_id = :stream_id AND o.partition_id = :partition_id)
RETURNING etag;  -- sqlite only
; IF @@ROWCOUNT = 1 SELECT :etag AS etag;  -- sqlserver only

-- name: renew_ownership
-- Compare and set: touches no row when the partition was claimed since it was read.
-- params: stream_id int, partition_id varchar(8000), owner_id nvarchar(4000), etag varchar(8000), last_modified_at datetime2(6), expected_etag varchar(8000)
UPDATE event_hub_ownership
   SET owner_id = :owner_id, etag = :etag, last_modified_at = :last_modified_at
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND etag = :expected_etag
RETURNING etag;  -- sqlite only
; IF @@ROWCOUNT = 1 SELECT :etag AS etag;  -- sqlserver only

-- name: read_checkpoints
-- Read the checkpoint of each partition of a stream.
-- params: stream_id int
SELECT partition_id, sequence_number, offset_token
  FROM event_hub_checkpoint
 WHERE stream_id = :stream_id;
