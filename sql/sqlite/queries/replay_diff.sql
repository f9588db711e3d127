-- name: add_replay_diffs
-- Insert the changes of events in a dry run, from a JSON array of [sequence_number, diff].
-- params: job_id, partition_id, diffs
INSERT INTO replay_diff (job_id, partition_id, sequence_number, diff)
SELECT :job_id, :partition_id, d.value ->> 0, d.value ->> 1
  FROM json_each(:diffs) AS d;

-- name: read_replay_diffs
-- Read the changes of a dry run, by partition and number, from after an event.
-- params: job_id, partition_id, sequence_number, most
SELECT d.partition_id, d.sequence_number, d.diff
  FROM replay_diff AS d
 WHERE d.job_id = :job_id
   AND (LENGTH(d.partition_id) > LENGTH(:partition_id)
        OR LENGTH(d.partition_id) = LENGTH(:partition_id)
           AND (d.partition_id > :partition_id
                OR d.partition_id = :partition_id AND d.sequence_number > :sequence_number))
 ORDER BY LENGTH(d.partition_id), d.partition_id, d.sequence_number
 LIMIT :most;
