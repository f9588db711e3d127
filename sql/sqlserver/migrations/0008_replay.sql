-- Replays: what was asked for, how far each partition is, what a dry run shows, the states that a job carries along, and
-- the rows that were taken away.

CREATE TABLE hubledger.replay_job (
    job_id            varchar(36) COLLATE Latin1_General_100_BIN2 NOT NULL,
    stream_id         int NOT NULL,
    is_dry_run        bit NOT NULL,
    status            varchar(10) NOT NULL,
    asked             nvarchar(max) NOT NULL,  -- the range as JSON, in the words of whoever asked
    left_out          nvarchar(max) NOT NULL,  -- a JSON array of [partition_id, why]
    transform_version nvarchar(100) NOT NULL,  -- when it was asked for; each commit names its own
    requested_by      nvarchar(200) NOT NULL,
    reason            nvarchar(1000) NOT NULL,
    requested_at      datetime2(7) NOT NULL,
    started_at        datetime2(7),
    ended_at          datetime2(7),
    updated_at        datetime2(7) NOT NULL,
    fault             nvarchar(2000),          -- what stands in its way, or ended it
    history           nvarchar(max) NOT NULL,  -- a JSON object a line: who moved it, when and why
    CONSTRAINT pk_replay_job PRIMARY KEY (job_id),
    CONSTRAINT fk_replay_job_stream FOREIGN KEY (stream_id) REFERENCES hubledger.event_stream (stream_id),
    CONSTRAINT ck_replay_job_status CHECK (status IN ('planned', 'running', 'paused', 'done', 'cancelled', 'failed'))
);

CREATE TABLE hubledger.replay_progress (
    job_id                varchar(36) COLLATE Latin1_General_100_BIN2 NOT NULL,
    partition_id          varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    stream_id             int NOT NULL,
    first_sequence_number bigint NOT NULL,
    last_sequence_number  bigint NOT NULL,
    next_sequence_number  bigint NOT NULL,  -- where the next piece begins
    note                  nvarchar(1000),
    events                bigint NOT NULL,
    written               bigint NOT NULL,
    filtered              bigint NOT NULL,
    dead_lettered         bigint NOT NULL,
    gone                  bigint NOT NULL,
    letters_added         bigint NOT NULL,
    letters_resolved      bigint NOT NULL,
    rows_written          bigint NOT NULL,
    rows_retracted        bigint NOT NULL,
    events_changed        bigint NOT NULL,
    rows_added            bigint NOT NULL,
    rows_removed          bigint NOT NULL,
    rows_changed          bigint NOT NULL,
    states_rewritten      bigint NOT NULL,
    states_left           bigint NOT NULL,
    gone_ranges           nvarchar(max) NOT NULL,  -- a JSON array of [first, last]
    closed_at             datetime2(7),
    updated_at            datetime2(7) NOT NULL,
    CONSTRAINT pk_replay_progress PRIMARY KEY (job_id, partition_id),
    CONSTRAINT fk_replay_progress_job FOREIGN KEY (job_id) REFERENCES hubledger.replay_job (job_id)
);

CREATE TABLE hubledger.replay_diff (
    job_id          varchar(36) COLLATE Latin1_General_100_BIN2 NOT NULL,
    partition_id    varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number bigint NOT NULL,
    diff            nvarchar(max) NOT NULL,  -- a JSON object
    CONSTRAINT pk_replay_diff PRIMARY KEY (job_id, partition_id, sequence_number)
);

CREATE TABLE hubledger.replay_state (
    job_id          varchar(36) COLLATE Latin1_General_100_BIN2 NOT NULL,
    partition_id    varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    state_key       varchar(64) COLLATE Latin1_General_100_BIN2 NOT NULL,  -- a digest of the table and the key
    sequence_number bigint NOT NULL,
    row             nvarchar(max) NOT NULL,  -- its columns as a JSON object
    CONSTRAINT pk_replay_state PRIMARY KEY (job_id, partition_id, state_key)
);

CREATE TABLE hubledger.retracted_row (
    stream_id         int NOT NULL,
    partition_id      varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    commit_number     bigint NOT NULL,  -- of the replay
    table_name        varchar(128) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number   bigint NOT NULL,
    ordinal           int NOT NULL,
    row_commit_number bigint NOT NULL,  -- of the commit that wrote the row
    row               nvarchar(max) NOT NULL,     -- its columns as a JSON object
    CONSTRAINT pk_retracted_row PRIMARY KEY (stream_id, partition_id, commit_number, table_name, sequence_number, ordinal)
);
