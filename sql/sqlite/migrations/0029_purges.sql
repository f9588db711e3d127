-- Purges: the jobs, and the chain of links that says what was purged from a partition.

CREATE TABLE purge_job (
    purge_id      TEXT NOT NULL,
    stream_id     INTEGER NOT NULL,
    status        TEXT NOT NULL,
    is_dry_run    INTEGER NOT NULL,
    asked         TEXT NOT NULL,  -- a JSON object: the days of each table
    requested_by  TEXT NOT NULL,
    reason        TEXT NOT NULL,
    requested_at  TEXT NOT NULL,
    updated_at    TEXT NOT NULL,
    ended_at      TEXT,
    claimed_until TEXT NOT NULL,
    step          INTEGER NOT NULL,  -- counts the changes of the job
    tasks         TEXT NOT NULL,  -- a JSON array of [table, partition_id] that are left, or null before the first step
    found         TEXT NOT NULL,  -- a JSON object: the figures of each table
    fault         TEXT,
    CONSTRAINT pk_purge_job PRIMARY KEY (purge_id),
    CONSTRAINT fk_purge_job_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id),
    CONSTRAINT ck_purge_job_status CHECK (status IN ('open', 'done', 'cancelled', 'failed'))
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX uq_purge_job_open ON purge_job (stream_id) WHERE status = 'open';

CREATE INDEX ix_purge_job_requested ON purge_job (stream_id, requested_at, purge_id);

-- Each link has the sums of everything that was purged from the partition so far, and two hashes: the running one of the
-- purged rows, and that of the link and the links before it.
CREATE TABLE purge_link (
    stream_id             INTEGER NOT NULL,
    partition_id          TEXT NOT NULL,
    link_number           INTEGER NOT NULL,
    purge_id              TEXT NOT NULL,
    purged_by             TEXT NOT NULL,
    purged_at             TEXT NOT NULL,
    commit_number         INTEGER NOT NULL,  -- the ledger rows up to this commit are purged
    first_sequence_number INTEGER NOT NULL,
    last_sequence_number  INTEGER NOT NULL,
    batches               INTEGER NOT NULL,
    retries               INTEGER NOT NULL,
    replays               INTEGER NOT NULL,
    written               INTEGER NOT NULL,  -- by batches, like the next four
    filtered              INTEGER NOT NULL,
    dead_lettered         INTEGER NOT NULL,
    held                  INTEGER NOT NULL,
    absent                INTEGER NOT NULL,
    rows_written          INTEGER NOT NULL,
    letters               INTEGER NOT NULL,  -- purged letters that batches made
    replay_letters        INTEGER NOT NULL,  -- purged letters that replays made
    attempts              INTEGER NOT NULL,
    rows_hash             TEXT NOT NULL,
    link_hash             TEXT NOT NULL,
    CONSTRAINT pk_purge_link PRIMARY KEY (stream_id, partition_id, link_number),
    CONSTRAINT fk_purge_link_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX ix_purge_link_number ON purge_link (stream_id, partition_id, last_sequence_number, link_number);

ALTER TABLE staged_event ADD COLUMN staged_at TEXT;  -- NULL until a purge has seen the event

CREATE INDEX ix_staged_event_staged ON staged_event (stream_id, staged_at);

-- The part of a replay's counts whose commits were purged.
ALTER TABLE replay_progress ADD COLUMN purged_written INTEGER NOT NULL
    CONSTRAINT df_replay_progress_purged_written DEFAULT 0;
ALTER TABLE replay_progress ADD COLUMN purged_rows_written INTEGER NOT NULL
    CONSTRAINT df_replay_progress_purged_rows_written DEFAULT 0;
ALTER TABLE replay_progress ADD COLUMN purged_rows_retracted INTEGER NOT NULL
    CONSTRAINT df_replay_progress_purged_rows_retracted DEFAULT 0;

CREATE INDEX ix_replay_job_ended ON replay_job (stream_id, ended_at) WHERE is_dry_run = 1;

CREATE INDEX ix_redrive_job_ended ON redrive_job (stream_id, ended_at);

CREATE INDEX ix_audit_job_ended ON audit_job (stream_id, ended_at);
