-- part: link
-- The columns of a link, in the order of the fields of PurgeLink.
k.link_number, k.purge_id, k.purged_by, CONVERT(varchar(33), k.purged_at, 126) AS purged_at, k.commit_number,
       k.first_sequence_number,
       k.last_sequence_number, k.batches, k.retries, k.replays, k.written, k.filtered, k.dead_lettered, k.held,
       k.absent,
       k.rows_written, k.letters, k.replay_letters, k.attempts, k.rows_hash, k.link_hash;

-- name: read_last_link
-- Read the last link of a partition's chain.
-- params: stream_id int, partition_id varchar(8000)
SELECT {link}
  FROM purge_link AS k
 WHERE k.stream_id = :stream_id AND k.partition_id = :partition_id
 ORDER BY k.link_number DESC
 LIMIT 1;

-- name: read_links
-- Read the links of a partition's chain after a number, in order.
-- params: stream_id int, partition_id varchar(8000), after_link int, most int
SELECT {link}
  FROM purge_link AS k
 WHERE k.stream_id = :stream_id AND k.partition_id = :partition_id AND k.link_number > :after_link
 ORDER BY k.link_number
 LIMIT :most;

-- name: find_link
-- Find the link with which the ledger row of a number was purged.
-- params: stream_id int, partition_id varchar(8000), sequence_number bigint
SELECT {link}
  FROM purge_link AS k
 WHERE k.stream_id = :stream_id AND k.partition_id = :partition_id AND k.last_sequence_number >= :sequence_number
 ORDER BY k.last_sequence_number, k.link_number
 LIMIT 1;

-- name: add_link
-- Insert the next link of a chain; touches no row while an audit of the stream is open. A key violation means that
-- a different purge was first.
-- params: stream_id int, partition_id varchar(8000), link_number int, purge_id varchar(8000), purged_by nvarchar(4000), purged_at datetime2(7), commit_number bigint, first_sequence_number bigint, last_sequence_number bigint, batches bigint, retries bigint, replays bigint, written bigint, filtered bigint, dead_lettered bigint, held bigint, absent bigint, rows_written bigint, letters bigint, replay_letters bigint, attempts bigint, rows_hash varchar(8000), link_hash varchar(8000)
INSERT INTO purge_link
       (stream_id, partition_id, link_number, purge_id, purged_by, purged_at, commit_number, first_sequence_number,
        last_sequence_number, batches, retries, replays, written, filtered, dead_lettered, held, absent, rows_written,
        letters, replay_letters, attempts, rows_hash, link_hash)
SELECT :stream_id, :partition_id, :link_number, :purge_id, :purged_by, :purged_at, :commit_number,
       :first_sequence_number, :last_sequence_number, :batches, :retries, :replays, :written, :filtered,
       :dead_lettered, :held, :absent, :rows_written, :letters, :replay_letters, :attempts, :rows_hash, :link_hash
 WHERE NOT EXISTS (
       SELECT 1 FROM task AS t
        WHERE t.stream_id = :stream_id AND t.kind = 'audit' AND t.status IN ('planned', 'running', 'paused'));

-- name: sum_absent_gaps
-- Sum the absent gaps of a partition that begin up to a number.
-- params: stream_id int, partition_id varchar(8000), last_sequence_number bigint
SELECT COALESCE(SUM(g.last_sequence_number - g.first_sequence_number + 1), 0) AS absent
  FROM sequence_gap AS g
 WHERE g.stream_id = :stream_id AND g.partition_id = :partition_id AND g.status = 'absent'
   AND g.first_sequence_number <= :last_sequence_number;
