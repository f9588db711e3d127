-- name: read_anchor
-- Read the time at which a stream was opened, the anchor of a partition (NULL until it is decided), the time of the
-- newest erasure, and the number of erasures.
-- params: stream_id int, partition_id varchar(8000)
SELECT a.sequence_number, e.anchored_at, (SELECT MAX(s.erased_at) FROM erased_subject AS s) AS erased_at,
       e.erasures
  FROM event_stream AS e
  LEFT JOIN partition_anchor AS a ON a.stream_id = e.stream_id AND a.partition_id = :partition_id
 WHERE e.stream_id = :stream_id;

-- name: anchor_partition
-- Insert the anchor of a partition; does nothing when another process decided it first, or the stream is closed.
-- params: stream_id int, partition_id varchar(8000), sequence_number bigint, anchored_at datetime2(6)
-- races: decided by another process at the same moment
INSERT INTO partition_anchor (stream_id, partition_id, sequence_number, anchored_at)
SELECT :stream_id, :partition_id, :sequence_number, :anchored_at
 WHERE NOT EXISTS (
       SELECT 1 FROM partition_anchor AS a  -- sqlserver only
        WHERE a.stream_id = :stream_id AND a.partition_id = :partition_id)  -- sqlserver only
   AND NOT EXISTS (  -- sqlserver only
       SELECT 1 FROM event_stream AS e WITH (REPEATABLEREAD)
        WHERE e.stream_id = :stream_id AND e.closed_at IS NOT NULL)
ON CONFLICT (stream_id, partition_id) DO NOTHING;  -- sqlite only
