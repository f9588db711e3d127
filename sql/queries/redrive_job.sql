-- part: job
-- The columns of a job, and of its stream.
j.redrive_id, j.stream_id, j.move, j.status, j.chosen, j.total, j.pieces, j.per_second, j.next_piece_at,
       j.requested_by, j.reason, j.requested_at, j.started_at, j.ended_at, j.updated_at, j.fault, j.history,
       e.event_hub, e.consumer_group;

-- name: add_redrive_job
-- Insert a new job, planned; touches no row when an open job has the same letters chosen, or too many jobs are open.
-- params: redrive_id varchar(8000), stream_id int, move varchar(8000), chosen_key varchar(8000), chosen nvarchar(max), total bigint, per_second int, requested_by nvarchar(4000), reason nvarchar(4000), requested_at datetime2(7), most_open int
INSERT INTO redrive_job
       (redrive_id, stream_id, move, status, chosen_key, chosen, total, pieces, per_second, next_piece_at, requested_by,
        reason, requested_at, updated_at, history)
SELECT :redrive_id, :stream_id, :move, 'planned', :chosen_key, :chosen, :total, 0, :per_second, :requested_at,
       :requested_by, :reason, :requested_at, :requested_at, ''
 WHERE :most_open > (
       SELECT COUNT(*) FROM redrive_job AS o
        WHERE o.stream_id = :stream_id AND o.status IN ('planned', 'running', 'paused'))
   AND NOT EXISTS (
       SELECT 1 FROM redrive_job AS o
        WHERE o.stream_id = :stream_id AND o.chosen_key = :chosen_key
          AND o.status IN ('planned', 'running', 'paused'));

-- name: find_chosen_redrive
-- Find the open job that has the same letters chosen.
-- params: stream_id int, chosen_key varchar(8000)
SELECT j.redrive_id
  FROM redrive_job AS j
 WHERE j.stream_id = :stream_id AND j.chosen_key = :chosen_key AND j.status IN ('planned', 'running', 'paused');

-- name: count_open_redrives
-- Count the jobs of a stream that are not over.
-- params: stream_id int
SELECT COUNT(*) AS jobs
  FROM redrive_job AS j
 WHERE j.stream_id = :stream_id AND j.status IN ('planned', 'running', 'paused');

-- name: find_redrive_job
-- Find one job of any stream, with the names of its stream.
-- params: redrive_id varchar(8000)
SELECT {job}
  FROM redrive_job AS j
 INNER JOIN event_stream AS e ON e.stream_id = j.stream_id
 WHERE j.redrive_id = :redrive_id;

-- name: read_redrive_jobs
-- Read jobs of a stream, the newest first, after one of them.
-- params: stream_id int, requested_at datetime2(7), redrive_id varchar(8000), most int
SELECT {job}
  FROM redrive_job AS j
 INNER JOIN event_stream AS e ON e.stream_id = j.stream_id
 WHERE j.stream_id = :stream_id
   AND (j.requested_at < :requested_at OR j.requested_at = :requested_at AND j.redrive_id < :redrive_id)
 ORDER BY j.requested_at DESC, j.redrive_id DESC
 LIMIT :most;

-- name: read_open_redrives
-- Read the jobs of a stream that need a driver.
-- params: stream_id int
SELECT j.redrive_id
  FROM redrive_job AS j
 WHERE j.stream_id = :stream_id AND j.status IN ('planned', 'running')
 ORDER BY j.requested_at;

-- name: move_redrive_job
-- Compare and set: touches no row when the status is not in a list, as ",planned,running,".
-- params: redrive_id varchar(8000), status varchar(8000), sources varchar(8000), moved_at datetime2(7), fault nvarchar(4000), entry nvarchar(max)
UPDATE redrive_job
   SET status = :status, updated_at = :moved_at, fault = NULLIF(:fault, ''), history = history || :entry,
       started_at = CASE WHEN :status = 'running' THEN COALESCE(started_at, :moved_at) ELSE started_at END,
       ended_at = CASE WHEN :status IN ('cancelled', 'failed') THEN :moved_at END
 WHERE redrive_id = :redrive_id AND CHARINDEX(',' || status || ',', :sources) > 0
RETURNING redrive_id;  -- sqlite only
; IF @@ROWCOUNT = 1 SELECT :redrive_id AS redrive_id;  -- sqlserver only

-- name: note_redrive_fault
-- Store the fault that holds a job up now; an empty text for none.
-- params: redrive_id varchar(8000), fault nvarchar(4000), moved_at datetime2(7)
UPDATE redrive_job
   SET fault = NULLIF(:fault, ''), updated_at = :moved_at
 WHERE redrive_id = :redrive_id AND status IN ('planned', 'running', 'paused') AND COALESCE(fault, '') <> :fault;

-- name: advance_redrive_job
-- Compare and set: touches no row when the job does not run, when another driver moved a piece first, or before the
-- time of the next piece. A time after the latest is of a clock that was ahead, so it does not hold the job up.
-- params: redrive_id varchar(8000), pieces bigint, next_piece_at datetime2(7), latest datetime2(7), moved_at datetime2(7)
UPDATE redrive_job
   SET pieces = pieces + 1, next_piece_at = :next_piece_at, updated_at = :moved_at
 WHERE redrive_id = :redrive_id AND status = 'running' AND pieces = :pieces
   AND (next_piece_at <= :moved_at OR next_piece_at > :latest);

-- name: hold_redrive_job
-- Lock the job's row before its progress moves; touches no row when the job does not run, or another driver was first.
-- params: redrive_id varchar(8000), pieces bigint, moved_at datetime2(7)
UPDATE redrive_job
   SET updated_at = :moved_at
 WHERE redrive_id = :redrive_id AND status = 'running' AND pieces = :pieces;

-- name: end_redrive_job
-- End the job when every partition of it is closed; until then only its time changes. Touches no row when it does not
-- run, or when another driver was first.
-- params: redrive_id varchar(8000), pieces bigint, moved_at datetime2(7)
UPDATE redrive_job
   SET status = CASE WHEN n.is_open = 1 THEN status ELSE 'done' END,
       ended_at = CASE WHEN n.is_open = 0 THEN :moved_at END,
       fault = CASE WHEN n.is_open = 1 THEN fault END, updated_at = :moved_at
  FROM (SELECT EXISTS (SELECT 1 FROM redrive_progress AS p
                        WHERE p.redrive_id = :redrive_id AND p.closed_at IS NULL) AS is_open) AS n
 WHERE redrive_id = :redrive_id AND status = 'running' AND pieces = :pieces;
-- sqlserver:
UPDATE j
   SET status = CASE WHEN n.is_open = 1 THEN j.status ELSE 'done' END,
       ended_at = CASE WHEN n.is_open = 0 THEN @moved_at END,
       fault = CASE WHEN n.is_open = 1 THEN j.fault END, updated_at = @moved_at
  FROM hubledger.redrive_job AS j
 CROSS JOIN (
       SELECT CASE WHEN EXISTS (SELECT 1 FROM hubledger.redrive_progress AS p
                                 WHERE p.redrive_id = @redrive_id AND p.closed_at IS NULL) THEN 1 ELSE 0 END AS is_open) AS n
 WHERE j.redrive_id = @redrive_id AND j.status = 'running' AND j.pieces = @pieces;

-- name: cancel_redrives_of_stream
-- Cancel the open jobs of a closed stream: nobody retries its letters any more.
-- params: stream_id int, moved_at datetime2(7), fault nvarchar(4000)
UPDATE redrive_job
   SET status = 'cancelled', updated_at = :moved_at, ended_at = :moved_at, fault = :fault
 WHERE stream_id = :stream_id AND status IN ('planned', 'running', 'paused');
