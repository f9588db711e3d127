-- The ledger: streams, their checkpoints, what became of every event, and the letters.
-- Texts compare by code point: ids that differ in case are different ids.

CREATE TABLE hubledger.event_stream (
    stream_id      int IDENTITY(1, 1) NOT NULL,
    event_hub      nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,  -- "namespace/hub"
    consumer_group nvarchar(50) COLLATE Latin1_General_100_BIN2 NOT NULL,
    incarnation    int NOT NULL,
    anchored_at    datetime2(7) NOT NULL,
    CONSTRAINT pk_event_stream PRIMARY KEY (stream_id),
    CONSTRAINT uq_event_stream UNIQUE (event_hub, consumer_group, incarnation)
);

CREATE TABLE hubledger.event_hub_checkpoint (
    stream_id       int NOT NULL,
    partition_id    varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number bigint NOT NULL,
    offset_token    nvarchar(200) NOT NULL,
    enqueued_at     datetime2(7) NOT NULL,
    commit_number   bigint NOT NULL,
    commit_id       uniqueidentifier NOT NULL,
    updated_at      datetime2(7) NOT NULL,
    CONSTRAINT pk_event_hub_checkpoint PRIMARY KEY (stream_id, partition_id),
    CONSTRAINT fk_event_hub_checkpoint_stream FOREIGN KEY (stream_id) REFERENCES hubledger.event_stream (stream_id)
);

CREATE TABLE hubledger.batch_ledger (
    stream_id             int NOT NULL,
    partition_id          varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    commit_number         bigint NOT NULL,
    kind                  varchar(10) NOT NULL,
    first_sequence_number bigint NOT NULL,
    last_sequence_number  bigint NOT NULL,
    written               int NOT NULL,
    filtered              int NOT NULL,
    dead_lettered         int NOT NULL,
    held                  int NOT NULL,
    absent                bigint NOT NULL,
    rows_written          int NOT NULL,
    transform_version     nvarchar(100) NOT NULL,
    invocation_id         nvarchar(100) NOT NULL,
    committed_at          datetime2(7) NOT NULL,
    CONSTRAINT pk_batch_ledger PRIMARY KEY (stream_id, partition_id, commit_number),
    CONSTRAINT ck_batch_ledger_kind CHECK (kind IN ('batch', 'retry', 'replay')),
    CONSTRAINT ck_batch_ledger_counts CHECK (
        kind <> 'batch'
        OR written + filtered + dead_lettered + held + absent = last_sequence_number - first_sequence_number + 1
    )
);

-- Ledger rows of kind "batch" tile the log: no two begin at the same number.
CREATE UNIQUE INDEX uq_batch_ledger_first
    ON hubledger.batch_ledger (stream_id, partition_id, first_sequence_number) WHERE kind = 'batch';

CREATE TABLE hubledger.event_hub_dead_letter (
    stream_id         int NOT NULL,
    partition_id      varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number   bigint NOT NULL,
    offset_token      nvarchar(200) NOT NULL,
    enqueued_at       datetime2(7) NOT NULL,
    partition_key     nvarchar(max),
    properties        nvarchar(max) NOT NULL,  -- a JSON object
    body              varbinary(max) NOT NULL,
    error_class       varchar(10) NOT NULL,
    error_type        nvarchar(400) NOT NULL,
    error             nvarchar(4000) NOT NULL,
    fingerprint       varchar(40) NOT NULL,
    transform_version nvarchar(100) NOT NULL,
    status            varchar(10) NOT NULL,
    attempts          int NOT NULL,
    due_at            datetime2(7),
    claimed_by        nvarchar(100),
    claimed_until     datetime2(7),
    held_behind       bigint,
    failed_at         datetime2(7) NOT NULL,
    settled_at        datetime2(7),
    settled_why       nvarchar(400),
    CONSTRAINT pk_event_hub_dead_letter PRIMARY KEY (stream_id, partition_id, sequence_number),
    CONSTRAINT ck_event_hub_dead_letter_class
        CHECK (error_class IN ('poison', 'reference', 'refused', 'unknown', 'crash')),
    CONSTRAINT ck_event_hub_dead_letter_status
        CHECK (status IN ('waiting', 'retrying', 'held', 'resolved', 'exhausted', 'discarded'))
);
