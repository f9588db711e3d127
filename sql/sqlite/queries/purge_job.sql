-- name: open_purge
-- Insert an open job; touches no row while another job of the stream is open.
-- params: stream_id, purge_id, is_dry_run, asked, requested_by, reason, requested_at
INSERT INTO purge_job
       (purge_id, stream_id, status, is_dry_run, asked, requested_by, reason, requested_at, updated_at, claimed_until,
        step, tasks, found)
SELECT :purge_id, :stream_id, 'open', :is_dry_run, :asked, :requested_by, :reason, :requested_at, :requested_at,
       :requested_at, 0, 'null', '{}'
 WHERE NOT EXISTS (SELECT 1 FROM purge_job AS j WHERE j.stream_id = :stream_id AND j.status = 'open');

-- name: find_open_purge
-- Find the open job of a stream.
-- params: stream_id
SELECT j.purge_id
  FROM purge_job AS j
 WHERE j.stream_id = :stream_id AND j.status = 'open';

-- name: find_purge
-- Find a job.
-- params: purge_id
SELECT j.purge_id, j.requested_by, j.reason, j.requested_at, j.is_dry_run, j.asked, j.status, j.step, j.tasks,
       j.found, j.fault, j.updated_at, j.ended_at
  FROM purge_job AS j
 WHERE j.purge_id = :purge_id;

-- name: read_purges
-- Read jobs of a stream, the newest first, after one of them.
-- params: stream_id, requested_at, purge_id, most
SELECT j.purge_id, j.requested_by, j.reason, j.requested_at, j.is_dry_run, j.asked, j.status, j.step, j.tasks,
       j.found, j.fault, j.updated_at, j.ended_at
  FROM purge_job AS j
 WHERE j.stream_id = :stream_id
   AND (j.requested_at < :requested_at OR j.requested_at = :requested_at AND j.purge_id < :purge_id)
 ORDER BY j.requested_at DESC, j.purge_id DESC
 LIMIT :most;

-- name: find_last_purge
-- Find the time of the last request of a stream that was no dry run.
-- params: stream_id
SELECT j.requested_at
  FROM purge_job AS j
 WHERE j.stream_id = :stream_id AND j.is_dry_run = 0
 ORDER BY j.requested_at DESC
 LIMIT 1;

-- name: claim_purge
-- Claim the open job of a stream; touches no row while another process has claimed it.
-- params: stream_id, now_at, claimed_until
UPDATE purge_job
   SET claimed_until = :claimed_until, updated_at = :now_at, step = step + 1
 WHERE stream_id = :stream_id AND status = 'open' AND claimed_until <= :now_at
RETURNING purge_id;

-- name: record_purge
-- Compare and set: touches no row when another process has claimed the job, or it was cancelled.
-- params: purge_id, status, tasks, found, fault, updated_at, claimed_until, expected
UPDATE purge_job
   SET status = :status, tasks = :tasks, found = :found, fault = NULLIF(:fault, ''), updated_at = :updated_at,
       claimed_until = :claimed_until, step = step + 1,
       ended_at = CASE WHEN :status <> 'open' THEN :updated_at END
 WHERE purge_id = :purge_id AND status = 'open' AND step = :expected
RETURNING step;

-- name: cancel_purge
-- Cancel an open job; touches no row when it is over.
-- params: purge_id, fault, now_at
UPDATE purge_job
   SET status = 'cancelled', fault = NULLIF(:fault, ''), updated_at = :now_at, ended_at = :now_at, step = step + 1
 WHERE purge_id = :purge_id AND status = 'open'
RETURNING step;

-- name: delete_purges
-- Delete the first old jobs of a stream.
-- params: stream_id, before_at, most
DELETE FROM purge_job
 WHERE purge_id IN (
       SELECT j.purge_id FROM purge_job AS j
        WHERE j.stream_id = :stream_id AND j.requested_at < :before_at AND j.status <> 'open'
        ORDER BY j.requested_at LIMIT :most);

-- name: count_old_purges
-- Count the old jobs of a stream, at most so many.
-- params: stream_id, before_at, most
SELECT COUNT(*) AS row_count, 0 AS row_bytes, MIN(f.requested_at) AS oldest, MAX(f.requested_at) AS newest
  FROM (SELECT j.requested_at
          FROM purge_job AS j
         WHERE j.stream_id = :stream_id AND j.requested_at < :before_at AND j.status <> 'open'
         LIMIT :most) AS f;
