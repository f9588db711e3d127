-- Redrives: jobs that retry or discard letters of any number, the progress of each by partition, and the letters moved.

CREATE TABLE hubledger.redrive_job (
    redrive_id    varchar(36) COLLATE Latin1_General_100_BIN2 NOT NULL,
    stream_id     int NOT NULL,
    move          varchar(10) NOT NULL,
    status        varchar(10) NOT NULL,
    chosen_key    varchar(64) COLLATE Latin1_General_100_BIN2 NOT NULL,  -- a digest of the filter or the selection: one open job of each
    chosen        nvarchar(max) NOT NULL,  -- the filter as a JSON object; null for a selection
    total         bigint NOT NULL,
    pieces        bigint NOT NULL,  -- counts the pieces, so that two drivers never move a piece twice
    per_second    int,
    next_piece_at datetime2(7) NOT NULL,
    requested_by  nvarchar(200) NOT NULL,
    reason        nvarchar(1000) NOT NULL,
    requested_at  datetime2(7) NOT NULL,
    started_at    datetime2(7),
    ended_at      datetime2(7),
    updated_at    datetime2(7) NOT NULL,
    fault         nvarchar(2000),          -- the fault that holds it up, or ended it
    history       nvarchar(max) NOT NULL,  -- a JSON object a line: who moved it, when and why
    CONSTRAINT pk_redrive_job PRIMARY KEY (redrive_id),
    CONSTRAINT fk_redrive_job_stream FOREIGN KEY (stream_id) REFERENCES hubledger.event_stream (stream_id),
    CONSTRAINT ck_redrive_job_move CHECK (move IN ('requeue', 'discard')),
    CONSTRAINT ck_redrive_job_status CHECK (status IN ('planned', 'running', 'paused', 'done', 'cancelled', 'failed'))
);

CREATE UNIQUE INDEX uq_redrive_job_open
    ON hubledger.redrive_job (stream_id, chosen_key) WHERE status IN ('planned', 'running', 'paused');

CREATE TABLE hubledger.redrive_progress (
    redrive_id            varchar(36) COLLATE Latin1_General_100_BIN2 NOT NULL,
    partition_id          varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    first_sequence_number bigint NOT NULL,
    last_sequence_number  bigint NOT NULL,
    walked_to             bigint NOT NULL,  -- a retry walks up, a discard walks down
    letters               bigint NOT NULL,  -- at the request
    moved                 bigint NOT NULL,
    unmoved               bigint NOT NULL,
    numbers               nvarchar(max),    -- of a selection: a JSON array; NULL for a filter
    closed_at             datetime2(7),
    CONSTRAINT pk_redrive_progress PRIMARY KEY (redrive_id, partition_id),
    CONSTRAINT fk_redrive_progress_job FOREIGN KEY (redrive_id) REFERENCES hubledger.redrive_job (redrive_id)
);

CREATE TABLE hubledger.redrive_piece (
    redrive_id   varchar(36) COLLATE Latin1_General_100_BIN2 NOT NULL,
    piece        bigint NOT NULL,
    partition_id varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    numbers      nvarchar(max) NOT NULL,  -- a JSON array of the sequence numbers of the letters that it moved
    moved_at     datetime2(7) NOT NULL,
    CONSTRAINT pk_redrive_piece PRIMARY KEY (redrive_id, piece),
    CONSTRAINT fk_redrive_piece_job FOREIGN KEY (redrive_id) REFERENCES hubledger.redrive_job (redrive_id)
);
