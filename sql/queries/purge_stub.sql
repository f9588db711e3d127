-- name: read_stub
-- Read the stub of a partition, its columns in the order of the fields of PurgeStub.
-- params: stream_id int, partition_id varchar(8000)
SELECT k.pieces, k.purge_id, k.purged_by, CONVERT(varchar(33), k.purged_at, 126) AS purged_at, k.commit_number,
       k.first_sequence_number, k.last_sequence_number, k.batches, k.retries, k.replays, k.written, k.filtered,
       k.dead_lettered, k.held, k.absent, k.rows_written, k.letters, k.replay_letters, k.attempts, k.ledger_hash,
       k.letters_hash, k.stub_hash
  FROM purge_stub AS k
 WHERE k.stream_id = :stream_id AND k.partition_id = :partition_id;

-- name: add_stub
-- Insert the stub of a partition's first piece; touches no row if it has one, or while an audit of the stream is open. A
-- key violation means that a different purge was first.
-- params: stream_id int, partition_id varchar(8000), pieces int, purge_id varchar(8000), purged_by nvarchar(4000), purged_at datetime2(7), commit_number bigint, first_sequence_number bigint, last_sequence_number bigint, batches bigint, retries bigint, replays bigint, written bigint, filtered bigint, dead_lettered bigint, held bigint, absent bigint, rows_written bigint, letters bigint, replay_letters bigint, attempts bigint, ledger_hash varchar(8000), letters_hash varchar(8000), stub_hash varchar(8000)
INSERT INTO purge_stub
       (stream_id, partition_id, pieces, purge_id, purged_by, purged_at, commit_number, first_sequence_number,
        last_sequence_number, batches, retries, replays, written, filtered, dead_lettered, held, absent, rows_written,
        letters, replay_letters, attempts, ledger_hash, letters_hash, stub_hash)
SELECT :stream_id, :partition_id, :pieces, :purge_id, :purged_by, :purged_at, :commit_number,
       :first_sequence_number, :last_sequence_number, :batches, :retries, :replays, :written, :filtered,
       :dead_lettered, :held, :absent, :rows_written, :letters, :replay_letters, :attempts, :ledger_hash,
       :letters_hash, :stub_hash
 WHERE NOT EXISTS (
       SELECT 1 FROM purge_stub AS k
        WHERE k.stream_id = :stream_id AND k.partition_id = :partition_id)
   AND NOT EXISTS (
       SELECT 1 FROM task AS t
        WHERE t.stream_id = :stream_id AND t.kind = 'audit' AND t.status IN ('planned', 'running', 'paused'));

-- name: move_stub
-- Move the stub of a partition by one piece; touches no row when a different purge was first, or while an audit of the
-- stream is open.
-- params: stream_id int, partition_id varchar(8000), pieces int, purge_id varchar(8000), purged_by nvarchar(4000), purged_at datetime2(7), commit_number bigint, first_sequence_number bigint, last_sequence_number bigint, batches bigint, retries bigint, replays bigint, written bigint, filtered bigint, dead_lettered bigint, held bigint, absent bigint, rows_written bigint, letters bigint, replay_letters bigint, attempts bigint, ledger_hash varchar(8000), letters_hash varchar(8000), stub_hash varchar(8000)
UPDATE purge_stub
   SET pieces = :pieces, purge_id = :purge_id, purged_by = :purged_by, purged_at = :purged_at,
       commit_number = :commit_number, first_sequence_number = :first_sequence_number,
       last_sequence_number = :last_sequence_number, batches = :batches, retries = :retries, replays = :replays,
       written = :written, filtered = :filtered, dead_lettered = :dead_lettered, held = :held, absent = :absent,
       rows_written = :rows_written, letters = :letters, replay_letters = :replay_letters, attempts = :attempts,
       ledger_hash = :ledger_hash, letters_hash = :letters_hash, stub_hash = :stub_hash
 WHERE stream_id = :stream_id AND partition_id = :partition_id AND pieces = :pieces - 1 AND NOT EXISTS (
       SELECT 1 FROM task AS t
        WHERE t.stream_id = :stream_id AND t.kind = 'audit' AND t.status IN ('planned', 'running', 'paused'));

-- name: sum_absent_gaps
-- Sum the absent gaps of a partition that begin up to a number.
-- params: stream_id int, partition_id varchar(8000), last_sequence_number bigint
SELECT COALESCE(SUM(g.last_sequence_number - g.first_sequence_number + 1), 0) AS absent
  FROM sequence_gap AS g
 WHERE g.stream_id = :stream_id AND g.partition_id = :partition_id AND g.status = 'absent'
   AND g.first_sequence_number <= :last_sequence_number;
