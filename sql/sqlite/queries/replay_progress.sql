-- name: add_replay_progress
-- Insert the ranges of a new job, from a JSON array of [partition_id, first, last, note].
-- params: job_id, stream_id, ranges, requested_at
INSERT INTO replay_progress
       (job_id, stream_id, partition_id, first_sequence_number, last_sequence_number, next_sequence_number, note,
        events, written, filtered, dead_lettered, gone, letters_added, letters_resolved, rows_written,
        rows_retracted, events_changed, rows_added, rows_removed, rows_changed, states_rewritten, states_left,
        gone_ranges, updated_at)
SELECT :job_id, :stream_id, r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 1, r.value ->> 3,
       0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '[]', :requested_at
  FROM json_each(:ranges) AS r;

-- name: find_overlap
-- Find the first open job, dry runs apart, that holds part of these ranges.
-- params: stream_id, ranges
SELECT MIN(j.job_id) AS job_id
  FROM replay_progress AS p
 INNER JOIN replay_job AS j ON j.job_id = p.job_id
 INNER JOIN json_each(:ranges) AS r ON r.value ->> 0 = p.partition_id
 WHERE p.stream_id = :stream_id AND p.first_sequence_number <= r.value ->> 2 AND p.last_sequence_number >= r.value ->> 1
   AND j.is_dry_run = 0 AND j.status IN ('planned', 'running', 'paused');

-- name: read_replay_progress
-- Read the progress of jobs, by partition.
-- params: job_ids
SELECT p.job_id, p.partition_id, p.first_sequence_number, p.last_sequence_number, p.next_sequence_number, p.note,
       p.events, p.written, p.filtered, p.dead_lettered, p.held, p.gone, p.letters_added, p.letters_resolved, p.rows_written,
       p.rows_retracted, p.events_changed, p.rows_added, p.rows_removed, p.rows_changed, p.states_rewritten,
       p.states_left, p.gone_ranges, p.closed_at
  FROM replay_progress AS p
 WHERE p.job_id IN (SELECT i.value ->> 0 FROM json_each(:job_ids) AS i)
 ORDER BY p.job_id, LENGTH(p.partition_id), p.partition_id;

-- name: advance_replay
-- Compare and set: touches no row when another driver moved the progress first.
-- params: job_id, partition_id, expected_next, next_sequence_number, events, written, filtered, dead_lettered, held, gone, letters_added, letters_resolved, rows_written, rows_retracted, events_changed, rows_added, rows_removed, rows_changed, states_rewritten, gone_ranges, committed_at
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
-- params: job_id, partition_id, states_left, committed_at
UPDATE replay_progress
   SET closed_at = :committed_at, updated_at = :committed_at, states_left = :states_left
 WHERE job_id = :job_id AND partition_id = :partition_id AND closed_at IS NULL
   AND next_sequence_number > last_sequence_number;
