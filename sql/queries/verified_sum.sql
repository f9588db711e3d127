-- name: read_verified_sum
-- Read the sum of a partition that an audit verified.
-- params: stream_id int, partition_id varchar(8000)
SELECT s.commit_number, s.first_sequence_number, s.last_sequence_number, s.commits,
       s.written, s.filtered, s.dead_lettered, s.held, s.absent
  FROM verified_sum AS s
 WHERE s.stream_id = :stream_id AND s.partition_id = :partition_id;

-- name: read_remembered_sum
-- Read the sum of a partition that the books remember.
-- params: stream_id int, partition_id varchar(8000)
SELECT s.commit_number, s.first_sequence_number, s.last_sequence_number, s.commits,
       s.written, s.filtered, s.dead_lettered, s.held, s.absent
  FROM ledger_sum AS s
 WHERE s.stream_id = :stream_id AND s.partition_id = :partition_id;

-- name: open_verified_sum
-- Insert the first verified sum of a partition; touches no row when another audit was first.
-- params: stream_id int, partition_id varchar(8000), commit_number bigint, first_sequence_number bigint, last_sequence_number bigint, commits bigint, written bigint, filtered bigint, dead_lettered bigint, held bigint, absent bigint
-- races: verified by another process at the same moment
INSERT INTO verified_sum
       (stream_id, partition_id, commit_number, first_sequence_number, last_sequence_number, commits,
        written, filtered, dead_lettered, held, absent)
SELECT :stream_id, :partition_id, :commit_number, :first_sequence_number, :last_sequence_number, :commits,
       :written, :filtered, :dead_lettered, :held, :absent
 WHERE NOT EXISTS (
       SELECT 1 FROM verified_sum AS s
        WHERE s.stream_id = :stream_id AND s.partition_id = :partition_id);

-- name: move_verified_sum
-- Compare and set: touches no row when another audit moved the sum.
-- params: stream_id int, partition_id varchar(8000), commit_number bigint, first_sequence_number bigint, last_sequence_number bigint, commits bigint, written bigint, filtered bigint, dead_lettered bigint, held bigint, absent bigint, expected bigint
UPDATE verified_sum
   SET commit_number = :commit_number, first_sequence_number = :first_sequence_number,
       last_sequence_number = :last_sequence_number, commits = :commits, written = :written, filtered = :filtered,
       dead_lettered = :dead_lettered, held = :held, absent = :absent
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND commit_number = :expected;
