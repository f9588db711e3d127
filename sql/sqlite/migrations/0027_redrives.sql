-- Redrives: jobs that retry or discard letters of any number, the progress of each by partition, and the letters moved.

CREATE TABLE redrive_job (
    redrive_id    TEXT NOT NULL,
    stream_id     INTEGER NOT NULL,
    move          TEXT NOT NULL,
    status        TEXT NOT NULL,
    chosen_key    TEXT NOT NULL,  -- a digest of the filter or the selection: one open job of each
    chosen        TEXT NOT NULL,  -- the filter as a JSON object; null for a selection
    total         INTEGER NOT NULL,
    pieces        INTEGER NOT NULL,  -- counts the pieces, so that two drivers never move a piece twice
    per_second    INTEGER,
    next_piece_at TEXT NOT NULL,
    requested_by  TEXT NOT NULL,
    reason        TEXT NOT NULL,
    requested_at  TEXT NOT NULL,
    started_at    TEXT,
    ended_at      TEXT,
    updated_at    TEXT NOT NULL,
    fault         TEXT,           -- the fault that holds it up, or ended it
    history       TEXT NOT NULL,  -- a JSON object a line: who moved it, when and why
    CONSTRAINT pk_redrive_job PRIMARY KEY (redrive_id),
    CONSTRAINT fk_redrive_job_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id),
    CONSTRAINT ck_redrive_job_move CHECK (move IN ('requeue', 'discard')),
    CONSTRAINT ck_redrive_job_status CHECK (status IN ('planned', 'running', 'paused', 'done', 'cancelled', 'failed'))
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX uq_redrive_job_open
    ON redrive_job (stream_id, chosen_key) WHERE status IN ('planned', 'running', 'paused');

CREATE TABLE redrive_progress (
    redrive_id            TEXT NOT NULL,
    partition_id          TEXT NOT NULL,
    first_sequence_number INTEGER NOT NULL,
    last_sequence_number  INTEGER NOT NULL,
    walked_to             INTEGER NOT NULL,  -- a retry walks up, a discard walks down
    letters               INTEGER NOT NULL,  -- at the request
    moved                 INTEGER NOT NULL,
    unmoved               INTEGER NOT NULL,
    numbers               TEXT,              -- of a selection: a JSON array; NULL for a filter
    closed_at             TEXT,
    CONSTRAINT pk_redrive_progress PRIMARY KEY (redrive_id, partition_id),
    CONSTRAINT fk_redrive_progress_job FOREIGN KEY (redrive_id) REFERENCES redrive_job (redrive_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE redrive_piece (
    redrive_id   TEXT NOT NULL,
    piece        INTEGER NOT NULL,
    partition_id TEXT NOT NULL,
    numbers      TEXT NOT NULL,  -- a JSON array of the sequence numbers of the letters that it moved
    moved_at     TEXT NOT NULL,
    CONSTRAINT pk_redrive_piece PRIMARY KEY (redrive_id, piece),
    CONSTRAINT fk_redrive_piece_job FOREIGN KEY (redrive_id) REFERENCES redrive_job (redrive_id)
) STRICT, WITHOUT ROWID;
