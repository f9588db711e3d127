-- The tables of Hubledger: the log, the letters, the jobs that people request, and the runs of aggregation.
-- It is written for SQL Server; core/store/queries.py makes the text for SQLite of it.
-- Texts compare by code point: ids that differ in case are different ids.

-- Streams: a consumer group of a hub, once for each life of the hub.
CREATE TABLE hubledger.event_stream (
    stream_id      int IDENTITY(1, 1) NOT NULL,
    event_hub      nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL,  -- "namespace/hub"
    consumer_group nvarchar(50) COLLATE Latin1_General_100_BIN2 NOT NULL,
    incarnation    int NOT NULL,
    anchored_at    datetime2(6) NOT NULL,
    hub_created_at datetime2(6),  -- NULL until the hub was read for the first time
    closed_at      datetime2(6),  -- from then on nothing is committed to this stream
    opened_by      nvarchar(400),  -- the person who opened an incarnation after the first, and why
    opened_why     nvarchar(400),
    event_key      nvarchar(400) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT df_event_stream_event_key DEFAULT '',  -- the setting EVENT_KEY, or key_of of the room; '' is the partition key
    erasures       int NOT NULL CONSTRAINT df_event_stream_erasures DEFAULT 0,  -- a plan that was made before the last one is not committed
    CONSTRAINT pk_event_stream PRIMARY KEY (stream_id),
    CONSTRAINT uq_event_stream UNIQUE (event_hub, consumer_group, incarnation)
) STRICT;  -- sqlite only
);  -- sqlserver only

-- The newest commit of each partition: the fence of every transaction.
CREATE TABLE hubledger.event_hub_checkpoint (
    stream_id             int NOT NULL,
    partition_id          varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number       bigint NOT NULL,
    offset_token          nvarchar(200) NOT NULL,
    enqueued_at           datetime2(6) NOT NULL,
    commit_number         bigint NOT NULL,
    commit_id             uniqueidentifier NOT NULL,
    updated_at            datetime2(6) NOT NULL,
    first_sequence_number bigint NOT NULL,  -- the first one that the totals count
    commits               bigint NOT NULL,  -- the totals of all batches, like the next five
    written               bigint NOT NULL,
    filtered              bigint NOT NULL,
    dead_lettered         bigint NOT NULL,
    held                  bigint NOT NULL,
    absent                bigint NOT NULL,
    letters               bigint NOT NULL,  -- that batches and replays made
    purged_commit         bigint NOT NULL CONSTRAINT df_event_hub_checkpoint_purged_commit DEFAULT 0,  -- the ledger rows up to this commit are purged
    purged_to             bigint NOT NULL CONSTRAINT df_event_hub_checkpoint_purged_to DEFAULT -1,  -- the last sequence number of these
    purged_at             datetime2(6),
    purged_letters        bigint NOT NULL CONSTRAINT df_event_hub_checkpoint_purged_letters DEFAULT 0,  -- that batches made
    purged_replay_letters bigint NOT NULL CONSTRAINT df_event_hub_checkpoint_purged_replay_letters DEFAULT 0,  -- that replays made
    unknown_fields        nvarchar(4000) NOT NULL CONSTRAINT df_event_hub_checkpoint_unknown_fields DEFAULT N'{}',  -- a JSON object: events by the name of a field that the room does not know
    CONSTRAINT pk_event_hub_checkpoint PRIMARY KEY (stream_id, partition_id),
    CONSTRAINT fk_event_hub_checkpoint_stream FOREIGN KEY (stream_id) REFERENCES hubledger.event_stream (stream_id)
);

-- Where each partition begins.
CREATE TABLE hubledger.partition_anchor (
    stream_id       int NOT NULL,
    partition_id    varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number bigint NOT NULL,  -- the first one that counts
    anchored_at     datetime2(6) NOT NULL,
    CONSTRAINT pk_partition_anchor PRIMARY KEY (stream_id, partition_id),
    CONSTRAINT fk_partition_anchor_stream FOREIGN KEY (stream_id) REFERENCES hubledger.event_stream (stream_id)
);

-- What became of every event: one row for each commit.
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
    rows_appended         int NOT NULL,  -- of tables without a key: these stay until a replay takes them away
    transform_version     nvarchar(100) NOT NULL,
    invocation_id         nvarchar(100) NOT NULL,
    committed_at          datetime2(6) NOT NULL,
    total_commits         bigint NOT NULL,  -- of all batches up to this commit, like the next five
    total_written         bigint NOT NULL,
    total_filtered        bigint NOT NULL,
    total_dead_lettered   bigint NOT NULL,
    total_held            bigint NOT NULL,
    total_absent          bigint NOT NULL,
    CONSTRAINT pk_batch_ledger PRIMARY KEY (stream_id, partition_id, commit_number),
    CONSTRAINT ck_batch_ledger_kind CHECK (kind IN ('batch', 'retry', 'replay')),
    CONSTRAINT ck_batch_ledger_counts CHECK (
        kind <> 'batch'
        OR written + filtered + dead_lettered + held + absent = last_sequence_number - first_sequence_number + 1
    )
) WITH (DATA_COMPRESSION = PAGE);

-- Ledger rows of kind "batch" tile the log: no two begin at the same number.
CREATE UNIQUE INDEX uq_batch_ledger_first
    ON hubledger.batch_ledger (stream_id, partition_id, first_sequence_number) WHERE kind = 'batch';

-- Retries and replays are few beside batches: by the numbers that they cover.
CREATE INDEX ix_batch_ledger_change
    ON hubledger.batch_ledger (stream_id, partition_id, first_sequence_number)
    INCLUDE (last_sequence_number, kind) WHERE kind <> 'batch';

-- Sequence numbers that were missing when a later event came.
CREATE TABLE hubledger.sequence_gap (
    stream_id             int NOT NULL,
    partition_id          varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    first_sequence_number bigint NOT NULL,
    last_sequence_number  bigint NOT NULL,
    found_at              datetime2(6) NOT NULL,
    status                varchar(10) NOT NULL,
    attempts              int NOT NULL,
    CONSTRAINT pk_sequence_gap PRIMARY KEY (stream_id, partition_id, first_sequence_number),
    CONSTRAINT fk_sequence_gap_stream FOREIGN KEY (stream_id) REFERENCES hubledger.event_stream (stream_id),
    CONSTRAINT ck_sequence_gap_range CHECK (last_sequence_number >= first_sequence_number),
    CONSTRAINT ck_sequence_gap_status CHECK (status IN ('open', 'healed', 'absent'))
);

-- Attempts at a part of a partition that are not known to have ended: the process may have died, as it did `deaths` times
-- before. With a verdict: the one event that killed its child process, in the words of its letter, until that is written.
CREATE TABLE hubledger.batch_attempt (
    stream_id             int NOT NULL,
    partition_id          varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    first_sequence_number bigint NOT NULL,
    last_sequence_number  bigint NOT NULL,
    attempt_id            uniqueidentifier NOT NULL,
    begun_at              datetime2(6) NOT NULL,
    deaths                int NOT NULL,
    transform_version     nvarchar(100) NOT NULL,
    verdict               nvarchar(2000),
    CONSTRAINT pk_batch_attempt PRIMARY KEY (stream_id, partition_id, last_sequence_number),
    CONSTRAINT fk_batch_attempt_stream FOREIGN KEY (stream_id) REFERENCES hubledger.event_stream (stream_id),
    CONSTRAINT ck_batch_attempt_range CHECK (last_sequence_number >= first_sequence_number)
);

-- Partitions that stand: why, since when, and how often the stop was met since then.
CREATE TABLE hubledger.partition_stop (
    stream_id    int NOT NULL,
    partition_id varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    reason       varchar(20) NOT NULL,
    detail       nvarchar(2000) NOT NULL,
    attempts     int NOT NULL,
    stopped_at   datetime2(6) NOT NULL,
    carried_from bigint,  -- the first sequence number that went by the app's own reader, while the trigger stands
    carried_to   bigint,  -- the last one of them
    failure      nvarchar(300),  -- of an outage: the type of error that most events of the last attempt met, and its line
    failed       int,  -- the number of these events
    tried        int,  -- the number of events of the attempt
    letters_before bigint,  -- the letters that batches of the partition had made before the stop
    CONSTRAINT pk_partition_stop PRIMARY KEY (stream_id, partition_id, reason),
    CONSTRAINT fk_partition_stop_stream FOREIGN KEY (stream_id) REFERENCES hubledger.event_stream (stream_id),
    CONSTRAINT ck_partition_stop_reason CHECK (reason IN ('incarnation', 'outage', 'held', 'store', 'trigger', 'erasure_key'))
);

-- Who reads a partition, for consumers outside the Functions host; owner_id is empty when it was released.
CREATE TABLE hubledger.event_hub_ownership (
    stream_id        int NOT NULL,
    partition_id     varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    owner_id         nvarchar(200) NOT NULL,
    etag             varchar(40) NOT NULL,
    last_modified_at datetime2(6) NOT NULL,
    CONSTRAINT pk_event_hub_ownership PRIMARY KEY (stream_id, partition_id),
    CONSTRAINT fk_event_hub_ownership_stream FOREIGN KEY (stream_id) REFERENCES hubledger.event_stream (stream_id)
);

-- Letters: events whose rows could not be written, each with its fault.
CREATE TABLE hubledger.event_hub_dead_letter (
    stream_id            int NOT NULL,
    partition_id         varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number      bigint NOT NULL,
    offset_token         nvarchar(200) NOT NULL,
    enqueued_at          datetime2(6) NOT NULL,
    partition_key        nvarchar(max),
    key_hash             AS CONVERT(binary(32), HASHBYTES('SHA2_256', partition_key)),  -- tells two keys apart: T-SQL ignores blanks at the end of a text  -- sqlserver only
    properties           nvarchar(max) NOT NULL,  -- a JSON object
    body                 varbinary(max) NOT NULL,
    body_kept            bit NOT NULL CONSTRAINT df_event_hub_dead_letter_body_kept DEFAULT 1,  -- 0: the body is empty here, and only the hub may have it
    error_class          varchar(10) NOT NULL,
    error_type           nvarchar(400) NOT NULL,
    error                nvarchar(4000) NOT NULL,
    error_at             nvarchar(200),  -- the file and line of the room that raised it
    fingerprint          varchar(40) NOT NULL,  -- the cause, and after a dot the values of the message
    cause                varchar(16) NOT NULL,
    transform_version    nvarchar(100) NOT NULL,
    status               varchar(10) NOT NULL,
    attempts             int NOT NULL,
    due_at               datetime2(6),
    claimed_by           nvarchar(100),
    claimed_until        datetime2(6),
    lost_claims          int NOT NULL CONSTRAINT df_event_hub_dead_letter_lost_claims DEFAULT 0,
    began_at             datetime2(6),  -- when the try of a letter alone began
    held_behind          bigint,
    failed_at            datetime2(6) NOT NULL,
    settled_at           datetime2(6),
    settled_why          nvarchar(400),
    erased_by            varchar(36) COLLATE Latin1_General_100_BIN2,  -- the erasure that blanked it: what it quoted stays gone
    replay_commit_number bigint,  -- of the replay that made a letter of an event that its batch counts as written or filtered
    CONSTRAINT pk_event_hub_dead_letter PRIMARY KEY (stream_id, partition_id, sequence_number),
    CONSTRAINT ck_event_hub_dead_letter_class
        CHECK (error_class IN ('poison', 'reference', 'refused', 'unknown', 'crash')),
    CONSTRAINT ck_event_hub_dead_letter_status
        CHECK (status IN ('waiting', 'retrying', 'held', 'resolved', 'exhausted', 'discarded'))
) STRICT;  -- sqlite only
);  -- sqlserver only

-- What a keeper asks for: what is due, and what its lease gives back. A lease ends at due_at too.
CREATE INDEX ix_event_hub_dead_letter_due
    ON hubledger.event_hub_dead_letter (stream_id, due_at) WHERE status IN ('waiting', 'retrying');

CREATE INDEX ix_event_hub_dead_letter_failed
    ON hubledger.event_hub_dead_letter (stream_id, failed_at, partition_id, sequence_number);

CREATE INDEX ix_event_hub_dead_letter_status
    ON hubledger.event_hub_dead_letter (stream_id, status, failed_at, partition_id, sequence_number);

CREATE INDEX ix_event_hub_dead_letter_cause
    ON hubledger.event_hub_dead_letter (stream_id, cause, failed_at, partition_id, sequence_number, status)
    INCLUDE (fingerprint);

-- Letters that replays made.
CREATE INDEX ix_event_hub_dead_letter_replayed
    ON hubledger.event_hub_dead_letter (stream_id, partition_id, sequence_number) WHERE replay_commit_number IS NOT NULL;

-- Open letters of a partition key in order: what later events have to wait for, and how long the hub holds their events.
CREATE INDEX ix_event_hub_dead_letter_open
    ON hubledger.event_hub_dead_letter (stream_id, partition_id, key_hash, sequence_number)  -- sqlserver only
    INCLUDE (partition_key, error_class, enqueued_at, body_kept, status)  -- sqlserver only
    ON event_hub_dead_letter (stream_id, partition_id, partition_key, sequence_number)  -- sqlite only
    INCLUDE (enqueued_at, body_kept, status, error_class)  -- sqlite only
    WHERE status IN ('waiting', 'retrying', 'held', 'exhausted');

-- The held letter that comes next.
CREATE INDEX ix_event_hub_dead_letter_held
    ON hubledger.event_hub_dead_letter (stream_id, partition_id, held_behind) WHERE status = 'held';

-- The settled letters of a partition by number, for purges.
CREATE INDEX ix_event_hub_dead_letter_settled
    ON hubledger.event_hub_dead_letter (stream_id, partition_id, sequence_number, settled_at)
 WHERE status IN ('resolved', 'discarded');

-- Attempts: what each try or move of a letter did.
CREATE TABLE hubledger.dead_letter_attempt (
    stream_id         int NOT NULL,
    partition_id      varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number   bigint NOT NULL,
    attempt           int NOT NULL,
    touched_by        nvarchar(100) NOT NULL,  -- the claim or the move
    kind              varchar(10) NOT NULL,
    status            varchar(10) NOT NULL,  -- of the letter, after the attempt
    error_class       varchar(10),
    error_type        nvarchar(400),
    error             nvarchar(4000),
    cause             varchar(16),
    transform_version nvarchar(100) NOT NULL,
    commit_number     bigint,  -- of a retry
    done_by           nvarchar(100) NOT NULL,
    why               nvarchar(400),
    done_at           datetime2(6) NOT NULL,
    CONSTRAINT pk_dead_letter_attempt PRIMARY KEY (stream_id, partition_id, sequence_number, attempt),
    CONSTRAINT ck_dead_letter_attempt_kind CHECK (kind IN ('retry', 'exhaust', 'requeue', 'discard', 'free', 'replay')),
    CONSTRAINT ck_dead_letter_attempt_status CHECK (status IN ('waiting', 'resolved', 'exhausted', 'discarded'))
);

-- The letters that a redrive retried.
CREATE INDEX ix_dead_letter_attempt_requeued
    ON hubledger.dead_letter_attempt (touched_by) WHERE kind = 'requeue';

-- Tasks: what a person requested and what takes more than one transaction.
CREATE TABLE hubledger.task (
    task_id       varchar(36) COLLATE Latin1_General_100_BIN2 NOT NULL,
    stream_id     int NOT NULL,
    kind          varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL,  -- which part of the app does it: replay, redrive, purge, audit, erasure
    status        varchar(10) NOT NULL,
    is_dry_run    bit NOT NULL,
    task_key      varchar(64) COLLATE Latin1_General_100_BIN2 NOT NULL,  -- of what it is about: one open task of a kind has it
    asked         nvarchar(max) NOT NULL,  -- a JSON object: the request, as its kind reads it
    request_digest varchar(64) COLLATE Latin1_General_100_BIN2 NOT NULL,  -- of the request as it came: the same one again is answered with this task
    total         bigint NOT NULL,  -- numbers, letters or parts at the request
    pieces        bigint NOT NULL,
    per_second    int,
    next_piece_at datetime2(6) NOT NULL,
    requested_by  nvarchar(200) NOT NULL,
    reason        nvarchar(1000) NOT NULL,
    requested_at  datetime2(6) NOT NULL,
    started_at    datetime2(6),
    ended_at      datetime2(6),
    updated_at    datetime2(6) NOT NULL,
    fault         nvarchar(2000),  -- the fault that holds it up, or ended it
    history       nvarchar(max) NOT NULL,  -- a JSON object a line: who moved it, when and why
    transform_version nvarchar(100),  -- whose drivers alone do its pieces; NULL for a kind that calls no transform
    CONSTRAINT pk_task PRIMARY KEY (task_id),
    CONSTRAINT fk_task_stream FOREIGN KEY (stream_id) REFERENCES hubledger.event_stream (stream_id),
    CONSTRAINT ck_task_status CHECK (status IN ('planned', 'running', 'paused', 'done', 'cancelled', 'failed'))
);

CREATE INDEX ix_task_requested
    ON hubledger.task (stream_id, requested_at, task_id);

CREATE UNIQUE INDEX uq_task_open
    ON hubledger.task (stream_id, kind, task_key) WHERE status IN ('planned', 'running', 'paused');

-- The parts of a task, one for each partition or table: how far each one is, and what it found.
CREATE TABLE hubledger.task_part (
    task_id               varchar(36) COLLATE Latin1_General_100_BIN2 NOT NULL,
    part                  varchar(80) COLLATE Latin1_General_100_BIN2 NOT NULL,  -- a partition's id, or what its kind calls it
    ordinal               int NOT NULL,  -- the place among the parts
    first_sequence_number bigint,
    last_sequence_number  bigint,
    position              bigint NOT NULL,  -- where the next piece begins, as its kind counts
    step                  int NOT NULL,  -- counts the pieces, so that two drivers never do one twice
    asked                 nvarchar(max) NOT NULL,  -- JSON: the request of this part, as its kind reads it
    report                nvarchar(max) NOT NULL,  -- a JSON object: what the part has found or done so far
    closed_at             datetime2(6),
    CONSTRAINT pk_task_part PRIMARY KEY (task_id, part),
    CONSTRAINT fk_task_part_task FOREIGN KEY (task_id) REFERENCES hubledger.task (task_id)
);

-- The difference that a dry run found, by event.
CREATE TABLE hubledger.replay_diff (
    task_id         varchar(36) COLLATE Latin1_General_100_BIN2 NOT NULL,
    partition_id    varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number bigint NOT NULL,
    diff            nvarchar(max) NOT NULL,  -- a JSON object
    CONSTRAINT pk_replay_diff PRIMARY KEY (task_id, partition_id, sequence_number)
);

-- The states that a replay carries along.
CREATE TABLE hubledger.replay_state (
    task_id         varchar(36) COLLATE Latin1_General_100_BIN2 NOT NULL,
    partition_id    varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    state_key       varchar(64) COLLATE Latin1_General_100_BIN2 NOT NULL,  -- a digest of the table and the key
    sequence_number bigint NOT NULL,
    row             nvarchar(max) NOT NULL,  -- its columns as a JSON object
    CONSTRAINT pk_replay_state PRIMARY KEY (task_id, partition_id, state_key)
);

-- The rows that replays took away.
CREATE TABLE hubledger.retracted_row (
    stream_id         int NOT NULL,
    partition_id      varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    commit_number     bigint NOT NULL,  -- of the replay; the largest number: an erasure took the row away
    table_name        varchar(128) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number   bigint NOT NULL,
    ordinal           int NOT NULL,
    row_commit_number bigint NOT NULL,  -- of the commit that wrote the row
    row               nvarchar(max) NOT NULL,  -- its columns as a JSON object, which is empty after an erasure
    CONSTRAINT pk_retracted_row PRIMARY KEY (stream_id, partition_id, commit_number, table_name, sequence_number, ordinal)
);

-- An audit finds the rows that replays took away by their number.
CREATE INDEX ix_retracted_row_number
    ON hubledger.retracted_row (stream_id, partition_id, sequence_number);

-- Events that the hub no longer keeps, staged for a replay out of Capture's files: each waits until it was replayed.
-- An event that is there already is left out without an error: tasks of a job run twice, and jobs at the same time.
CREATE TABLE hubledger.staged_event (
    stream_id       int NOT NULL,
    partition_id    varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    sequence_number bigint NOT NULL,
    offset_token    nvarchar(200) NOT NULL,
    enqueued_at     datetime2(6) NOT NULL,
    partition_key   nvarchar(max),
    properties      nvarchar(max) NOT NULL,  -- a JSON object
    body            varbinary(max) NOT NULL,
    staged_at       datetime2(6),  -- NULL until a purge has seen the event
    CONSTRAINT pk_staged_event PRIMARY KEY (stream_id, partition_id, sequence_number) WITH (IGNORE_DUP_KEY = ON)
) STRICT;  -- sqlite only
);  -- sqlserver only

CREATE INDEX ix_staged_event_staged
    ON hubledger.staged_event (stream_id, staged_at);

-- Subjects that were erased, as keyed hashes: their events up to a time stay forgotten, in every stream.
CREATE TABLE hubledger.erased_subject (
    subject_hash varchar(64) COLLATE Latin1_General_100_BIN2 NOT NULL,
    key_hash     varchar(16) COLLATE Latin1_General_100_BIN2 NOT NULL,  -- names the key of the hash
    erased_at    datetime2(6) NOT NULL,  -- by the clock of the database, or of the hub if that one is ahead
    erased_by    varchar(36) COLLATE Latin1_General_100_BIN2 NOT NULL,  -- the task
    CONSTRAINT pk_erased_subject PRIMARY KEY (subject_hash)
);

-- The newest erasure, which each read of a partition looks up.
CREATE INDEX ix_erased_subject_newest
    ON hubledger.erased_subject (erased_at);

-- Where the job of each aggregate stands, and its orders.
CREATE TABLE hubledger.aggregation_cut (
    job           varchar(128) COLLATE Latin1_General_100_BIN2 NOT NULL,
    levels        varchar(4000) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT df_aggregation_cut_levels DEFAULT '',  -- the names of the tables, the finest first
    cut           nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,  -- a JSON object: the commit number of each partition that is in the aggregate
    run_number    bigint NOT NULL,  -- of the last run that was planned
    paused_at     datetime2(6),
    paused_by     nvarchar(100),
    paused_why    nvarchar(400),
    history       nvarchar(max) NOT NULL CONSTRAINT df_aggregation_cut_history DEFAULT N'',  -- a JSON object a line: who paused or resumed the job, or cancelled or discarded work of it, when and why
    ordered_kind  varchar(12) COLLATE Latin1_General_100_BIN2,  -- the order of a repair or a backfill, until its run is planned, like the next five
    ordered_since date,
    ordered_until date,
    ordered_at    datetime2(6),
    ordered_by    nvarchar(100),
    ordered_why   nvarchar(400),
    stale         nvarchar(max) COLLATE Latin1_General_100_BIN2,  -- a JSON object: the tables in the lake that are not up to date, each with the time since which that is so
    CONSTRAINT pk_aggregation_cut PRIMARY KEY (job)
);

-- The runs of the jobs.
CREATE TABLE hubledger.aggregation_run (
    run_id           varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    job              varchar(128) COLLATE Latin1_General_100_BIN2 NOT NULL,
    run_number       bigint NOT NULL,
    kind             varchar(12) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT df_aggregation_run_kind DEFAULT 'increment',  -- a repair replaces the windows of its days at the job's cut; a backfill begins an aggregate at a later cut
    since_day        date,  -- the first and the last day of its windows, in UTC; NULL: without an end
    until_day        date,
    cut_from         nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
    cut_to           nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
    rows_from        varchar(8) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT df_aggregation_run_rows_from DEFAULT 'sql',  -- the place from which its job reads rows
    rows_limit       bigint,  -- the most rows of the run, or of the increment after a repair or a backfill
    rows_planned     bigint,  -- the rows that the ledger counts for its commits; NULL for a repair and a backfill
    engine           varchar(20) NOT NULL,
    attempt          int NOT NULL,
    submits          int NOT NULL,
    committed_slices int NOT NULL CONSTRAINT df_aggregation_run_committed_slices DEFAULT 0,  -- those before this number
    status           varchar(12) NOT NULL,
    planned_at       datetime2(6) NOT NULL,
    intent_at        datetime2(6) NOT NULL,
    engine_job_id    nvarchar(400),
    submitted_at     datetime2(6),
    closed_at        datetime2(6),
    failure          nvarchar(2000),
    readings         bigint,
    windows          bigint,
    lake_path        nvarchar(1200),
    is_snapshot      bit NOT NULL,
    quality          nvarchar(max),  -- a JSON object, as its job measured it
    CONSTRAINT pk_aggregation_run PRIMARY KEY (run_id),
    CONSTRAINT uq_aggregation_run_number UNIQUE (job, run_number),
    CONSTRAINT ck_aggregation_run_status CHECK (status IN ('submitting', 'submitted', 'committed', 'failed')),
    CONSTRAINT ck_aggregation_run_kind CHECK (kind IN ('increment', 'repair', 'backfill'))
);

-- One run at a time.
CREATE UNIQUE INDEX uq_aggregation_run_open
    ON hubledger.aggregation_run (job) WHERE status IN ('submitting', 'submitted');

CREATE INDEX ix_aggregation_run_closed
    ON hubledger.aggregation_run (closed_at);

-- One row for each submit that ended without a result, with the words of the engine.
CREATE TABLE hubledger.aggregation_failure (
    run_id        varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    submit_number int NOT NULL,
    attempt       int NOT NULL,
    failed_at     datetime2(6) NOT NULL,
    engine_job_id nvarchar(400),
    why           nvarchar(2000) NOT NULL,
    reason        nvarchar(2000),
    log_tail      nvarchar(4000),
    link          nvarchar(1000),
    CONSTRAINT pk_aggregation_failure PRIMARY KEY (run_id, submit_number),
    CONSTRAINT fk_aggregation_failure_run FOREIGN KEY (run_id) REFERENCES hubledger.aggregation_run (run_id)
);

CREATE INDEX ix_aggregation_failure_at
    ON hubledger.aggregation_failure (failed_at);

-- One row for each result that is staged whole: the last that a job writes.
CREATE TABLE hubledger.staged_result (
    staging_id  varchar(80) COLLATE Latin1_General_100_BIN2 NOT NULL,
    run_id      varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    attempt     int NOT NULL,
    windows     bigint NOT NULL,  -- of the finest level
    levels      nvarchar(2000) COLLATE Latin1_General_100_BIN2 NOT NULL,  -- a JSON object: the number of windows of each level
    rows_read   bigint NOT NULL,
    quality     nvarchar(max),  -- a JSON object, as its job measured it
    overflow    nvarchar(400),  -- the fault of a value beyond 64 bits: the job staged no windows
    lake_path   nvarchar(1200),
    is_snapshot bit NOT NULL,
    staged_at   datetime2(6) NOT NULL,
    CONSTRAINT pk_staged_result PRIMARY KEY (staging_id)
);

CREATE INDEX ix_staged_result_run
    ON hubledger.staged_result (run_id);

-- The job's facts about the windows of a level that it staged of a slice; a commit compares them with the rows.
CREATE TABLE hubledger.staged_slice (
    staging_id    varchar(80) COLLATE Latin1_General_100_BIN2 NOT NULL,
    level         varchar(128) COLLATE Latin1_General_100_BIN2 NOT NULL,  -- the name of its table
    slice         int NOT NULL,
    run_id        varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    windows       bigint NOT NULL,
    whole_windows bigint NOT NULL,
    rows_hash     bigint NOT NULL,
    is_verified   bit NOT NULL CONSTRAINT df_staged_slice_is_verified DEFAULT 0,
    CONSTRAINT pk_staged_slice PRIMARY KEY (staging_id, level, slice)
);

-- The lag of each stream and its accounted numbers by minute, of one day. The watch writes a row and removes old ones.
CREATE TABLE hubledger.stream_minute (
    minute_at datetime2(6) NOT NULL,
    stream_id int NOT NULL,
    read_at   datetime2(6) NOT NULL,
    lag       bigint NOT NULL,  -- events after the checkpoints
    accounted bigint NOT NULL,  -- numbers with an outcome, since the anchor
    CONSTRAINT pk_stream_minute PRIMARY KEY (minute_at, stream_id),
    CONSTRAINT fk_stream_minute_stream FOREIGN KEY (stream_id) REFERENCES hubledger.event_stream (stream_id)
);
