-- The ledger: streams, their checkpoints, what became of every event, and the letters.

CREATE TABLE event_stream (
    stream_id      INTEGER NOT NULL,
    event_hub      TEXT NOT NULL,  -- "namespace/hub"
    consumer_group TEXT NOT NULL,
    incarnation    INTEGER NOT NULL,
    anchored_at    TEXT NOT NULL,
    CONSTRAINT pk_event_stream PRIMARY KEY (stream_id),
    CONSTRAINT uq_event_stream UNIQUE (event_hub, consumer_group, incarnation)
) STRICT;

CREATE TABLE event_hub_checkpoint (
    stream_id       INTEGER NOT NULL,
    partition_id    TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    offset_token    TEXT NOT NULL,
    enqueued_at     TEXT NOT NULL,
    commit_number   INTEGER NOT NULL,
    commit_id       TEXT NOT NULL,
    updated_at      TEXT NOT NULL,
    CONSTRAINT pk_event_hub_checkpoint PRIMARY KEY (stream_id, partition_id),
    CONSTRAINT fk_event_hub_checkpoint_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE batch_ledger (
    stream_id             INTEGER NOT NULL,
    partition_id          TEXT NOT NULL,
    commit_number         INTEGER NOT NULL,
    kind                  TEXT NOT NULL,
    first_sequence_number INTEGER NOT NULL,
    last_sequence_number  INTEGER NOT NULL,
    written               INTEGER NOT NULL,
    filtered              INTEGER NOT NULL,
    dead_lettered         INTEGER NOT NULL,
    held                  INTEGER NOT NULL,
    absent                INTEGER NOT NULL,
    rows_written          INTEGER NOT NULL,
    transform_version     TEXT NOT NULL,
    invocation_id         TEXT NOT NULL,
    committed_at          TEXT NOT NULL,
    CONSTRAINT pk_batch_ledger PRIMARY KEY (stream_id, partition_id, commit_number),
    CONSTRAINT ck_batch_ledger_kind CHECK (kind IN ('batch', 'retry', 'replay')),
    CONSTRAINT ck_batch_ledger_counts CHECK (
        kind <> 'batch'
        OR written + filtered + dead_lettered + held + absent = last_sequence_number - first_sequence_number + 1
    )
) STRICT, WITHOUT ROWID;

-- Ledger rows of kind "batch" tile the log: no two begin at the same number.
CREATE UNIQUE INDEX uq_batch_ledger_first
    ON batch_ledger (stream_id, partition_id, first_sequence_number) WHERE kind = 'batch';

CREATE TABLE event_hub_dead_letter (
    stream_id         INTEGER NOT NULL,
    partition_id      TEXT NOT NULL,
    sequence_number   INTEGER NOT NULL,
    offset_token      TEXT NOT NULL,
    enqueued_at       TEXT NOT NULL,
    partition_key     TEXT,
    properties        TEXT NOT NULL,  -- a JSON object
    body              BLOB NOT NULL,
    error_class       TEXT NOT NULL,
    error_type        TEXT NOT NULL,
    error             TEXT NOT NULL,
    fingerprint       TEXT NOT NULL,
    transform_version TEXT NOT NULL,
    status            TEXT NOT NULL,
    attempts          INTEGER NOT NULL,
    due_at            TEXT,
    claimed_by        TEXT,
    claimed_until     TEXT,
    held_behind       INTEGER,
    failed_at         TEXT NOT NULL,
    settled_at        TEXT,
    settled_why       TEXT,
    CONSTRAINT pk_event_hub_dead_letter PRIMARY KEY (stream_id, partition_id, sequence_number),
    CONSTRAINT ck_event_hub_dead_letter_class
        CHECK (error_class IN ('poison', 'reference', 'refused', 'unknown', 'crash')),
    CONSTRAINT ck_event_hub_dead_letter_status
        CHECK (status IN ('waiting', 'retrying', 'held', 'resolved', 'exhausted', 'discarded'))
) STRICT;
