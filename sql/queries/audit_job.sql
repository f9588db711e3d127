-- name: open_audit
-- Insert an open job; touches no row while another job of the stream is open. The stream's row is its lock.
-- params: stream_id int, audit_id varchar(8000), asked nvarchar(max), requested_by nvarchar(4000), requested_at datetime2(7)
INSERT INTO audit_job
       (audit_id, stream_id, status, asked, requested_by, requested_at, updated_at, claimed_until, step, partitions,
        findings)
SELECT :audit_id, :stream_id, 'open', :asked, :requested_by, :requested_at, :requested_at, :requested_at, 0, N'null',
       N'{}'
 WHERE NOT EXISTS (SELECT 1 FROM audit_job AS j WHERE j.stream_id = :stream_id AND j.status = 'open')
   AND NOT EXISTS (SELECT 1 FROM audit_job AS a WHERE a.audit_id = :audit_id);

-- name: find_open_audit
-- Find the open job of a stream.
-- params: stream_id int
SELECT j.audit_id
  FROM audit_job AS j
 WHERE j.stream_id = :stream_id AND j.status = 'open';

-- name: find_audit
-- Find a job.
-- params: audit_id varchar(8000)
SELECT j.audit_id, j.requested_by, CONVERT(varchar(33), j.requested_at, 126) AS requested_at, j.asked, j.status, j.step,
       j.partitions, j.findings, j.fault, CONVERT(varchar(33), j.ended_at, 126) AS ended_at
  FROM audit_job AS j
 WHERE j.audit_id = :audit_id;

-- name: claim_audit
-- Claim the open job of a stream; touches no row while another process has claimed it.
-- params: stream_id int, now_at datetime2(7), claimed_until datetime2(7)
UPDATE audit_job
   SET claimed_until = :claimed_until, updated_at = :now_at, step = step + 1
 WHERE stream_id = :stream_id AND status = 'open' AND claimed_until <= :now_at
RETURNING audit_id;

-- name: record_audit
-- Compare and set: touches no row when another process has claimed the job.
-- params: audit_id varchar(8000), status varchar(8000), partitions nvarchar(max), findings nvarchar(max), fault nvarchar(4000), updated_at datetime2(7), claimed_until datetime2(7), expected int
UPDATE audit_job
   SET status = :status, partitions = :partitions, findings = :findings,
       fault = NULLIF(:fault, ''),
       updated_at = :updated_at, claimed_until = :claimed_until, step = step + 1,
       ended_at = CASE WHEN :status <> 'open' THEN :updated_at END
 WHERE audit_id = :audit_id AND status = 'open' AND step = :expected
RETURNING step;
