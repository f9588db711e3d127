-- name: add_replay_progress
-- Insert the ranges of a new job, from a JSON array of [partition_id, first, last, note].
-- params: job_id varchar(8000), stream_id int, ranges nvarchar(max), requested_at datetime2(7)
INSERT INTO replay_progress
       (job_id, stream_id, partition_id, first_sequence_number, last_sequence_number, next_sequence_number, note,
        events, written, filtered, dead_lettered, gone, letters_added, letters_resolved, rows_written,
        rows_retracted, events_changed, rows_added, rows_removed, rows_changed, states_rewritten, states_left,
        gone_ranges, updated_at)
SELECT :job_id, :stream_id, r.partition_id, r.first_sequence_number, r.last_sequence_number, r.first_sequence_number,
       r.note,
       0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '[]', :requested_at
  FROM rows(:ranges) AS r (
       partition_id varchar(40), first_sequence_number bigint, last_sequence_number bigint, note nvarchar(max));

-- name: find_overlap
-- Find the first open job, dry runs apart, that holds part of these ranges.
-- params: stream_id int, ranges nvarchar(max)
SELECT MIN(j.job_id) AS job_id
  FROM replay_progress AS p
 INNER JOIN replay_job AS j ON j.job_id = p.job_id
 INNER JOIN rows(:ranges) AS r (partition_id varchar(40), first_sequence_number bigint, last_sequence_number bigint)
    ON r.partition_id = p.partition_id COLLATE Latin1_General_100_BIN2
 WHERE p.stream_id = :stream_id AND p.first_sequence_number <= r.last_sequence_number
   AND p.last_sequence_number >= r.first_sequence_number
   AND j.is_dry_run = 0 AND j.status IN ('planned', 'running', 'paused');

-- name: read_replay_progress
-- Read the progress of jobs, by partition.
-- params: job_ids nvarchar(max)
SELECT p.job_id, p.partition_id, p.first_sequence_number, p.last_sequence_number, p.next_sequence_number,
       p.note, p.events, p.written, p.filtered, p.dead_lettered, p.held, p.gone, p.letters_added, p.letters_resolved,
       p.rows_written, p.rows_retracted, p.events_changed, p.rows_added, p.rows_removed, p.rows_changed,
       p.states_rewritten, p.states_left, p.gone_ranges, p.closed_at
  FROM replay_progress AS p
 WHERE p.job_id IN (SELECT i.job_id COLLATE Latin1_General_100_BIN2 FROM rows(:job_ids) AS i (job_id varchar(36)))
 ORDER BY p.job_id, LEN(p.partition_id), p.partition_id;

-- name: advance_replay
-- Compare and set: touches no row when another driver moved the progress first.
-- params: job_id varchar(8000), partition_id varchar(8000), expected_next bigint, next_sequence_number bigint, events bigint, written bigint, filtered bigint, dead_lettered bigint, held bigint, gone bigint, letters_added bigint, letters_resolved bigint, rows_written int, rows_retracted bigint, events_changed bigint, rows_added bigint, rows_removed bigint, rows_changed bigint, states_rewritten bigint, gone_ranges nvarchar(max), committed_at datetime2(7)
UPDATE replay_progress
   SET next_sequence_number = :next_sequence_number, events = events + :events, written = written + :written,
       filtered = filtered + :filtered, dead_lettered = dead_lettered + :dead_lettered,
       held = held + :held, gone = gone + :gone, letters_added = letters_added + :letters_added,
       letters_resolved = letters_resolved + :letters_resolved,
       rows_written = rows_written + :rows_written,
       rows_retracted = rows_retracted + :rows_retracted,
       events_changed = events_changed + :events_changed,
       rows_added = rows_added + :rows_added, rows_removed = rows_removed + :rows_removed,
       rows_changed = rows_changed + :rows_changed,
       states_rewritten = states_rewritten + :states_rewritten,
       gone_ranges = :gone_ranges, updated_at = :committed_at
 WHERE job_id = :job_id AND partition_id = :partition_id AND next_sequence_number = :expected_next
   AND closed_at IS NULL;

-- name: close_replay_progress
-- Close a partition. `states_left` counts the states of its range that their events did not write again.
-- params: job_id varchar(8000), partition_id varchar(8000), states_left bigint, committed_at datetime2(7)
UPDATE replay_progress
   SET closed_at = :committed_at, updated_at = :committed_at, states_left = :states_left
 WHERE job_id = :job_id AND partition_id = :partition_id AND closed_at IS NULL
   AND next_sequence_number > last_sequence_number;
