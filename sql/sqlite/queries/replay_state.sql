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
-- Delete the first states that jobs carried which are over.
-- params: most
DELETE FROM replay_state
 WHERE (job_id, partition_id, state_key) IN (
       SELECT s.job_id, s.partition_id, s.state_key
         FROM replay_job AS j
        CROSS JOIN replay_state AS s ON s.job_id = j.job_id
        WHERE j.status IN ('done', 'cancelled', 'failed')
        LIMIT :most);
