-- part: job
-- The columns of a job.
j.purge_id, j.requested_by, j.reason, CONVERT(varchar(33), j.requested_at, 126) AS requested_at, j.is_dry_run,
       j.asked, j.status, j.step, j.tasks,
       j.found, j.fault, CONVERT(varchar(33), j.updated_at, 126) AS updated_at,
       CONVERT(varchar(33), j.ended_at, 126) AS ended_at;

-- name: open_purge
-- Insert an open job; touches no row while another job of the stream is open.
-- params: stream_id int, purge_id varchar(8000), is_dry_run bit, asked nvarchar(max), requested_by nvarchar(4000), reason nvarchar(4000), requested_at datetime2(7)
-- races: opened by another process at the same moment
INSERT INTO purge_job
       (purge_id, stream_id, status, is_dry_run, asked, requested_by, reason, requested_at, updated_at, claimed_until,
        step, tasks, found)
SELECT :purge_id, :stream_id, 'open', :is_dry_run, :asked, :requested_by, :reason, :requested_at, :requested_at,
       :requested_at, 0, N'null', N'{}'
  FROM event_stream AS e WITH (REPEATABLEREAD)  -- sqlserver only
 WHERE e.stream_id = :stream_id AND  -- sqlserver only
 WHERE  -- sqlite only
       NOT EXISTS (SELECT 1 FROM purge_job AS j WHERE j.stream_id = :stream_id AND j.status = 'open');

-- name: find_open_purge
-- Find the open job of a stream.
-- params: stream_id int
SELECT j.purge_id
  FROM purge_job AS j
 WHERE j.stream_id = :stream_id AND j.status = 'open';

-- name: find_purge
-- Find a job.
-- params: purge_id varchar(8000)
SELECT {job}
  FROM purge_job AS j
 WHERE j.purge_id = :purge_id;

-- name: read_purges
-- Read jobs of a stream, the newest first, after one of them.
-- params: stream_id int, requested_at datetime2(7), purge_id varchar(8000), most int
SELECT {job}
  FROM purge_job AS j
 WHERE j.stream_id = :stream_id
   AND (j.requested_at < :requested_at OR j.requested_at = :requested_at AND j.purge_id < :purge_id)
 ORDER BY j.requested_at DESC, j.purge_id DESC
 LIMIT :most;

-- name: find_last_purge
-- Find the time of the last request of a stream that was no dry run.
-- params: stream_id int
SELECT CONVERT(varchar(33), j.requested_at, 126) AS requested_at
  FROM purge_job AS j
 WHERE j.stream_id = :stream_id AND j.is_dry_run = 0
 ORDER BY j.requested_at DESC
 LIMIT 1;

-- name: claim_purge
-- Claim the open job of a stream; touches no row while another process has claimed it.
-- params: stream_id int, now_at datetime2(7), claimed_until datetime2(7)
UPDATE purge_job
   SET claimed_until = :claimed_until, updated_at = :now_at, step = step + 1
 WHERE stream_id = :stream_id AND status = 'open' AND claimed_until <= :now_at
RETURNING purge_id;

-- name: record_purge
-- Compare and set: touches no row when another process has claimed the job, or it was cancelled.
-- params: purge_id varchar(8000), status varchar(8000), tasks nvarchar(max), found nvarchar(max), fault nvarchar(4000), updated_at datetime2(7), claimed_until datetime2(7), expected int
UPDATE purge_job
   SET status = :status, tasks = :tasks, found = :found,
       fault = NULLIF(:fault, ''), updated_at = :updated_at,
       claimed_until = :claimed_until, step = step + 1,
       ended_at = CASE WHEN :status <> 'open' THEN :updated_at END
 WHERE purge_id = :purge_id AND status = 'open' AND step = :expected
RETURNING step;

-- name: cancel_purge
-- Cancel an open job; touches no row when it is over.
-- params: purge_id varchar(8000), fault nvarchar(4000), now_at datetime2(7)
UPDATE purge_job
   SET status = 'cancelled',
       fault = NULLIF(:fault, ''), updated_at = :now_at, ended_at = :now_at, step = step + 1
 WHERE purge_id = :purge_id AND status = 'open'
RETURNING step;

-- name: delete_purges
-- Delete the first old jobs of a stream.
-- params: stream_id int, before_at datetime2(7), most int
DELETE FROM purge_job
 WHERE stream_id = :stream_id AND requested_at < :before_at AND status <> 'open'
 ORDER BY requested_at LIMIT :most BY purge_id;

-- name: count_old_purges
-- Count the old jobs of a stream, at most so many.
-- params: stream_id int, before_at datetime2(7), most int
SELECT COUNT(*) AS row_count, 0 AS row_bytes, CONVERT(varchar(33), MIN(f.requested_at), 126) AS oldest,
       CONVERT(varchar(33), MAX(f.requested_at), 126) AS newest
  FROM (SELECT j.requested_at
          FROM purge_job AS j
         WHERE j.stream_id = :stream_id AND j.requested_at < :before_at AND j.status <> 'open'
         LIMIT :most) AS f;
