-- Audits: the sums that they verified, so that they need not read these ranges again, and the audits that run as jobs.

-- The ranges of kind batch up to a commit number, summed and without a fault.
CREATE TABLE verified_sum (
    stream_id             INTEGER NOT NULL,
    partition_id          TEXT NOT NULL,
    commit_number         INTEGER NOT NULL,
    first_sequence_number INTEGER NOT NULL,
    last_sequence_number  INTEGER NOT NULL,
    commits               INTEGER NOT NULL,
    written               INTEGER NOT NULL,
    filtered              INTEGER NOT NULL,
    dead_lettered         INTEGER NOT NULL,
    held                  INTEGER NOT NULL,
    absent                INTEGER NOT NULL,
    CONSTRAINT pk_verified_sum PRIMARY KEY (stream_id, partition_id)
) STRICT, WITHOUT ROWID;

-- Audits that run as jobs. One job of a stream is open at a time, in all processes together.
CREATE TABLE audit_job (
    audit_id      TEXT NOT NULL,
    stream_id     INTEGER NOT NULL,
    status        TEXT NOT NULL,
    asked         TEXT NOT NULL,  -- the request as JSON
    requested_by  TEXT NOT NULL,
    requested_at  TEXT NOT NULL,
    updated_at    TEXT NOT NULL,
    ended_at      TEXT,
    claimed_until TEXT NOT NULL,
    step          INTEGER NOT NULL,  -- counts the changes of the job
    partitions    TEXT NOT NULL,  -- a JSON array, or null before the first step
    findings      TEXT NOT NULL,  -- a JSON object: a text of each audited partition
    fault         TEXT,
    CONSTRAINT pk_audit_job PRIMARY KEY (audit_id),
    CONSTRAINT fk_audit_job_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id),
    CONSTRAINT ck_audit_job_status CHECK (status IN ('open', 'done', 'failed'))
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX uq_audit_job_open ON audit_job (stream_id) WHERE status = 'open';
