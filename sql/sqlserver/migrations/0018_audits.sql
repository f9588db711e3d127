-- Audits: the sums that they verified, so that they need not read these ranges again, and the audits that run as jobs.

-- The ranges of kind batch up to a commit number, summed and without a fault.
CREATE TABLE hubledger.verified_sum (
    stream_id             int NOT NULL,
    partition_id          varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    commit_number         bigint NOT NULL,
    first_sequence_number bigint NOT NULL,
    last_sequence_number  bigint NOT NULL,
    commits               bigint NOT NULL,
    written               bigint NOT NULL,
    filtered              bigint NOT NULL,
    dead_lettered         bigint NOT NULL,
    held                  bigint NOT NULL,
    absent                bigint NOT NULL,
    CONSTRAINT pk_verified_sum PRIMARY KEY (stream_id, partition_id)
);

-- Audits that run as jobs. One job of a stream is open at a time, in all processes together.
CREATE TABLE hubledger.audit_job (
    audit_id      varchar(36) COLLATE Latin1_General_100_BIN2 NOT NULL,
    stream_id     int NOT NULL,
    status        varchar(10) NOT NULL,
    asked         nvarchar(max) NOT NULL,  -- the request as JSON
    requested_by  nvarchar(200) NOT NULL,
    requested_at  datetime2(7) NOT NULL,
    updated_at    datetime2(7) NOT NULL,
    ended_at      datetime2(7),
    claimed_until datetime2(7) NOT NULL,
    step          int NOT NULL,  -- counts the changes of the job
    partitions    nvarchar(max) NOT NULL,  -- a JSON array, or null before the first step
    findings      nvarchar(max) NOT NULL,  -- a JSON object: a text of each audited partition
    fault         nvarchar(2000),
    CONSTRAINT pk_audit_job PRIMARY KEY (audit_id),
    CONSTRAINT fk_audit_job_stream FOREIGN KEY (stream_id) REFERENCES hubledger.event_stream (stream_id),
    CONSTRAINT ck_audit_job_status CHECK (status IN ('open', 'done', 'failed'))
);

CREATE UNIQUE INDEX uq_audit_job_open ON hubledger.audit_job (stream_id) WHERE status = 'open';
