-- name: carry_states
-- Store the states that a piece wrote, for later events to see, from a JSON array of [state_key, sequence_number, row].
-- params: job_id, partition_id, carried
INSERT INTO replay_state (job_id, partition_id, state_key, sequence_number, row)
SELECT :job_id, :partition_id, c.value ->> 0, c.value ->> 1, c.value ->> 2
  FROM json_each(:carried) AS c
 WHERE TRUE
ON CONFLICT (job_id, partition_id, state_key) DO UPDATE
   SET sequence_number = excluded.sequence_number, row = excluded.row;

-- name: read_carried
-- Read the states under these keys that a job carries; the keys are a JSON array of [state_key].
-- params: job_id, partition_id, keys
SELECT s.state_key, s.sequence_number, s.row
  FROM replay_state AS s
 WHERE s.job_id = :job_id AND s.partition_id = :partition_id
   AND s.state_key IN (SELECT k.value ->> 0 FROM json_each(:keys) AS k);

-- name: forget_states
-- Delete the carried states of a job that has ended.
-- params: job_id
DELETE FROM replay_state
 WHERE job_id = :job_id
   AND EXISTS (
       SELECT 1 FROM replay_job AS j
        WHERE j.job_id = :job_id AND j.status IN ('done', 'cancelled', 'failed'));

-- name: forget_states_of_stream
-- Delete the carried states of all jobs of a closed stream.
-- params: stream_id
DELETE FROM replay_state
 WHERE job_id IN (
       SELECT j.job_id FROM replay_job AS j WHERE j.stream_id = :stream_id);
