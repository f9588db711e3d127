-- part: job
-- The columns of a job, and of its stream.
j.job_id, j.stream_id, j.is_dry_run, j.status, j.asked, j.left_out, j.transform_version, j.requested_by,
       j.reason, j.requested_at, j.started_at, j.ended_at, j.updated_at, j.fault, j.history, e.event_hub,
       e.consumer_group;

-- name: add_replay_job
-- Insert a new job, planned; touches no row when an open job holds part of its ranges, or too many jobs are open. Dry
-- runs hold nothing.
-- params: job_id varchar(8000), stream_id int, is_dry_run bit, asked nvarchar(max), left_out nvarchar(max), transform_version nvarchar(4000), requested_by nvarchar(4000), reason nvarchar(4000), requested_at datetime2(7), most_open int, ranges nvarchar(max)
INSERT INTO replay_job
       (job_id, stream_id, is_dry_run, status, asked, left_out, transform_version, requested_by, reason, requested_at,
        updated_at, history)
SELECT :job_id, :stream_id, :is_dry_run, 'planned', :asked, :left_out, :transform_version, :requested_by,
       :reason, :requested_at, :requested_at, ''
 WHERE :most_open > (
       SELECT COUNT(*) FROM replay_job AS o
        WHERE o.stream_id = :stream_id AND o.status IN ('planned', 'running', 'paused'))
   AND (:is_dry_run = 1
    OR NOT EXISTS (
       SELECT 1
         FROM replay_progress AS p
        INNER JOIN replay_job AS j ON j.job_id = p.job_id
        INNER JOIN rows(:ranges) AS r (
              partition_id varchar(40), first_sequence_number bigint, last_sequence_number bigint)
           ON r.partition_id = p.partition_id COLLATE Latin1_General_100_BIN2
        WHERE p.stream_id = :stream_id AND p.first_sequence_number <= r.last_sequence_number
          AND p.last_sequence_number >= r.first_sequence_number
          AND j.is_dry_run = 0 AND j.status IN ('planned', 'running', 'paused')));

-- name: find_replay_job
-- Find one job of any stream, with the names of its stream.
-- params: job_id varchar(8000)
SELECT {job}
  FROM replay_job AS j
 INNER JOIN event_stream AS e ON e.stream_id = j.stream_id
 WHERE j.job_id = :job_id;

-- name: read_replay_jobs
-- Read jobs of a stream, the newest first, after one of them.
-- params: stream_id int, requested_at datetime2(7), job_id varchar(8000), most int
SELECT {job}
  FROM replay_job AS j
 INNER JOIN event_stream AS e ON e.stream_id = j.stream_id
 WHERE j.stream_id = :stream_id
   AND (j.requested_at < :requested_at OR j.requested_at = :requested_at AND j.job_id < :job_id)
 ORDER BY j.requested_at DESC, j.job_id DESC
 LIMIT :most;

-- name: read_open_replays
-- Read the jobs of a stream that need a driver.
-- params: stream_id int
SELECT j.job_id
  FROM replay_job AS j
 WHERE j.stream_id = :stream_id AND j.status IN ('planned', 'running')
 ORDER BY j.requested_at;

-- name: count_open_replays
-- Count the jobs of a stream that are not over, dry runs included.
-- params: stream_id int
SELECT COUNT(*) AS jobs
  FROM replay_job AS j
 WHERE j.stream_id = :stream_id AND j.status IN ('planned', 'running', 'paused');

-- name: move_replay_job
-- Compare and set: touches no row when the status is not in a list, as ",planned,running,".
-- params: job_id varchar(8000), status varchar(8000), sources varchar(8000), moved_at datetime2(7), fault nvarchar(4000), entry nvarchar(max)
UPDATE replay_job
   SET status = :status, updated_at = :moved_at, fault = NULLIF(:fault, ''), history = history || :entry,
       started_at = CASE WHEN :status = 'running' THEN COALESCE(started_at, :moved_at) ELSE started_at END,
       ended_at = CASE WHEN :status IN ('cancelled', 'failed') THEN :moved_at END
 WHERE job_id = :job_id AND CHARINDEX(',' || status || ',', :sources) > 0
RETURNING job_id;  -- sqlite only
; IF @@ROWCOUNT = 1 SELECT :job_id AS job_id;  -- sqlserver only

-- name: note_replay_fault
-- Store the fault that holds a job up now; an empty text for none.
-- params: job_id varchar(8000), fault nvarchar(4000), moved_at datetime2(7)
UPDATE replay_job
   SET fault = NULLIF(:fault, ''), updated_at = :moved_at
 WHERE job_id = :job_id AND status IN ('planned', 'running', 'paused') AND COALESCE(fault, '') <> :fault;

-- name: hold_replay_job
-- Lock the job's row before its progress moves; touches no row when the job does not run.
-- params: job_id varchar(8000), committed_at datetime2(7)
UPDATE replay_job
   SET updated_at = :committed_at
 WHERE job_id = :job_id AND status = 'running';

-- name: end_replay_job
-- End the job when every partition of it is closed.
-- params: job_id varchar(8000), committed_at datetime2(7)
UPDATE replay_job
   SET status = 'done', ended_at = :committed_at, updated_at = :committed_at, fault = NULL
 WHERE job_id = :job_id AND status = 'running'
   AND NOT EXISTS (
       SELECT 1 FROM replay_progress AS p WHERE p.job_id = :job_id AND p.closed_at IS NULL);
