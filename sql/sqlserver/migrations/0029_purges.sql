-- Purges: the jobs, and the chain of links that says what was purged from a partition.

CREATE TABLE hubledger.purge_job (
    purge_id      varchar(36) COLLATE Latin1_General_100_BIN2 NOT NULL,
    stream_id     int NOT NULL,
    status        varchar(10) NOT NULL,
    is_dry_run    bit NOT NULL,
    asked         nvarchar(max) NOT NULL,  -- a JSON object: the days of each table
    requested_by  nvarchar(200) NOT NULL,
    reason        nvarchar(1000) NOT NULL,
    requested_at  datetime2(7) NOT NULL,
    updated_at    datetime2(7) NOT NULL,
    ended_at      datetime2(7),
    claimed_until datetime2(7) NOT NULL,
    step          int NOT NULL,  -- counts the changes of the job
    tasks         nvarchar(max) NOT NULL,  -- a JSON array of [table, partition_id] that are left, or null before the first step
    found         nvarchar(max) NOT NULL,  -- a JSON object: the figures of each table
    fault         nvarchar(2000),
    CONSTRAINT pk_purge_job PRIMARY KEY (purge_id),
    CONSTRAINT fk_purge_job_stream FOREIGN KEY (stream_id) REFERENCES hubledger.event_stream (stream_id),
    CONSTRAINT ck_purge_job_status CHECK (status IN ('open', 'done', 'cancelled', 'failed'))
);

CREATE UNIQUE INDEX uq_purge_job_open ON hubledger.purge_job (stream_id) WHERE status = 'open';

CREATE INDEX ix_purge_job_requested ON hubledger.purge_job (stream_id, requested_at, purge_id);

-- Each link has the sums of everything that was purged from the partition so far, and two hashes: the running one of the
-- purged rows, and that of the link and the links before it.
CREATE TABLE hubledger.purge_link (
    stream_id             int NOT NULL,
    partition_id          varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    link_number           int NOT NULL,
    purge_id              varchar(36) COLLATE Latin1_General_100_BIN2 NOT NULL,
    purged_by             nvarchar(200) NOT NULL,
    purged_at             datetime2(7) NOT NULL,
    commit_number         bigint NOT NULL,  -- the ledger rows up to this commit are purged
    first_sequence_number bigint NOT NULL,
    last_sequence_number  bigint NOT NULL,
    batches               bigint NOT NULL,
    retries               bigint NOT NULL,
    replays               bigint NOT NULL,
    written               bigint NOT NULL,  -- by batches, like the next four
    filtered              bigint NOT NULL,
    dead_lettered         bigint NOT NULL,
    held                  bigint NOT NULL,
    absent                bigint NOT NULL,
    rows_written          bigint NOT NULL,
    letters               bigint NOT NULL,  -- purged letters that batches made
    replay_letters        bigint NOT NULL,  -- purged letters that replays made
    attempts              bigint NOT NULL,
    rows_hash             varchar(64) COLLATE Latin1_General_100_BIN2 NOT NULL,
    link_hash             varchar(64) COLLATE Latin1_General_100_BIN2 NOT NULL,
    CONSTRAINT pk_purge_link PRIMARY KEY (stream_id, partition_id, link_number),
    CONSTRAINT fk_purge_link_stream FOREIGN KEY (stream_id) REFERENCES hubledger.event_stream (stream_id)
);

CREATE INDEX ix_purge_link_number ON hubledger.purge_link (stream_id, partition_id, last_sequence_number, link_number);

-- The existing tables follow in the order in which transactions lock them, because each stays locked until the end: the events of replays
-- first, whose index takes the longest, and then tables of a few rows.
ALTER TABLE hubledger.staged_event ADD staged_at datetime2(7);  -- NULL until a purge has seen the event

-- A batch of its own: SQL Server compiles it before the column is there.
EXEC(N'CREATE INDEX ix_staged_event_staged ON hubledger.staged_event (stream_id, staged_at) WITH (ONLINE = ON)');

-- The part of a replay's counts whose commits were purged.
ALTER TABLE hubledger.replay_progress ADD purged_written bigint NOT NULL
    CONSTRAINT df_replay_progress_purged_written DEFAULT 0;
ALTER TABLE hubledger.replay_progress ADD purged_rows_written bigint NOT NULL
    CONSTRAINT df_replay_progress_purged_rows_written DEFAULT 0;
ALTER TABLE hubledger.replay_progress ADD purged_rows_retracted bigint NOT NULL
    CONSTRAINT df_replay_progress_purged_rows_retracted DEFAULT 0;

CREATE INDEX ix_replay_job_ended ON hubledger.replay_job (stream_id, ended_at) WHERE is_dry_run = 1 WITH (ONLINE = ON);

CREATE INDEX ix_redrive_job_ended ON hubledger.redrive_job (stream_id, ended_at) WITH (ONLINE = ON);

CREATE INDEX ix_audit_job_ended ON hubledger.audit_job (stream_id, ended_at) WITH (ONLINE = ON);
