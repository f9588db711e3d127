-- name: read_last_batches
-- Read when the newest batch of each partition of a stream was committed; retries and replays do not count.
-- params: stream_id int
SELECT c.partition_id, (
       SELECT CONVERT(varchar(33), l.committed_at, 126)
         FROM batch_ledger AS l
        WHERE l.stream_id = c.stream_id AND l.partition_id = c.partition_id AND l.kind = 'batch'
        ORDER BY l.first_sequence_number DESC
        LIMIT 1) AS committed_at
  FROM event_hub_checkpoint AS c
 WHERE c.stream_id = :stream_id
 ORDER BY c.partition_id;

-- name: count_absent
-- Count the numbers of a stream that batches since a time found absent. The gap may be older than that.
-- params: stream_id int, since_at datetime2(6)
SELECT COALESCE(SUM(g.last_sequence_number - g.first_sequence_number + 1), 0) AS absent
  FROM sequence_gap AS g
 WHERE g.stream_id = :stream_id AND g.status = 'absent'
   AND (SELECT l.committed_at
          FROM batch_ledger AS l
         WHERE l.stream_id = g.stream_id AND l.partition_id = g.partition_id AND l.kind = 'batch'
           AND l.first_sequence_number <= g.first_sequence_number
         ORDER BY l.first_sequence_number DESC
         LIMIT 1) >= :since_at;
