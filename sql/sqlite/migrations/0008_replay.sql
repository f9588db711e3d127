-- Replays: what was asked for, how far each partition is, what a dry run shows, the states that a job carries along, and
-- the rows that were taken away.

CREATE TABLE replay_job (
    job_id            TEXT NOT NULL,
    stream_id         INTEGER NOT NULL,
    is_dry_run        INTEGER NOT NULL,
    status            TEXT NOT NULL,
    asked             TEXT NOT NULL,  -- the range as JSON, in the words of whoever asked
    left_out          TEXT NOT NULL,  -- a JSON array of [partition_id, why]
    transform_version TEXT NOT NULL,  -- when it was asked for; each commit names its own
    requested_by      TEXT NOT NULL,
    reason            TEXT NOT NULL,
    requested_at      TEXT NOT NULL,
    started_at        TEXT,
    ended_at          TEXT,
    updated_at        TEXT NOT NULL,
    fault             TEXT,           -- what stands in its way, or ended it
    history           TEXT NOT NULL,  -- a JSON object a line: who moved it, when and why
    CONSTRAINT pk_replay_job PRIMARY KEY (job_id),
    CONSTRAINT fk_replay_job_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id),
    CONSTRAINT ck_replay_job_status CHECK (status IN ('planned', 'running', 'paused', 'done', 'cancelled', 'failed'))
) STRICT, WITHOUT ROWID;

CREATE TABLE replay_progress (
    job_id                TEXT NOT NULL,
    partition_id          TEXT NOT NULL,
    stream_id             INTEGER NOT NULL,
    first_sequence_number INTEGER NOT NULL,
    last_sequence_number  INTEGER NOT NULL,
    next_sequence_number  INTEGER NOT NULL,  -- where the next piece begins
    note                  TEXT,
    events                INTEGER NOT NULL,
    written               INTEGER NOT NULL,
    filtered              INTEGER NOT NULL,
    dead_lettered         INTEGER NOT NULL,
    gone                  INTEGER NOT NULL,
    letters_added         INTEGER NOT NULL,
    letters_resolved      INTEGER NOT NULL,
    rows_written          INTEGER NOT NULL,
    rows_retracted        INTEGER NOT NULL,
    events_changed        INTEGER NOT NULL,
    rows_added            INTEGER NOT NULL,
    rows_removed          INTEGER NOT NULL,
    rows_changed          INTEGER NOT NULL,
    states_rewritten      INTEGER NOT NULL,
    states_left           INTEGER NOT NULL,
    gone_ranges           TEXT NOT NULL,  -- a JSON array of [first, last]
    closed_at             TEXT,
    updated_at            TEXT NOT NULL,
    CONSTRAINT pk_replay_progress PRIMARY KEY (job_id, partition_id),
    CONSTRAINT fk_replay_progress_job FOREIGN KEY (job_id) REFERENCES replay_job (job_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE replay_diff (
    job_id          TEXT NOT NULL,
    partition_id    TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    diff            TEXT NOT NULL,  -- a JSON object
    CONSTRAINT pk_replay_diff PRIMARY KEY (job_id, partition_id, sequence_number)
) STRICT, WITHOUT ROWID;

CREATE TABLE replay_state (
    job_id          TEXT NOT NULL,
    partition_id    TEXT NOT NULL,
    state_key       TEXT NOT NULL,     -- a digest of the table and the key
    sequence_number INTEGER NOT NULL,
    row             TEXT NOT NULL,     -- its columns as a JSON object
    CONSTRAINT pk_replay_state PRIMARY KEY (job_id, partition_id, state_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE retracted_row (
    stream_id         INTEGER NOT NULL,
    partition_id      TEXT NOT NULL,
    commit_number     INTEGER NOT NULL,  -- of the replay
    table_name        TEXT NOT NULL,
    sequence_number   INTEGER NOT NULL,
    ordinal           INTEGER NOT NULL,
    row_commit_number INTEGER NOT NULL,  -- of the commit that wrote the row
    row               TEXT NOT NULL,     -- its columns as a JSON object
    CONSTRAINT pk_retracted_row PRIMARY KEY (stream_id, partition_id, commit_number, table_name, sequence_number, ordinal)
) STRICT, WITHOUT ROWID;
