-- The tables of Hubledger: the log, the letters, the jobs that people request, and the runs of aggregation.

-- Streams: a consumer group of a hub, once for each life of the hub.
CREATE TABLE event_stream (
    stream_id      INTEGER NOT NULL,
    event_hub      TEXT NOT NULL,  -- "namespace/hub"
    consumer_group TEXT NOT NULL,
    incarnation    INTEGER NOT NULL,
    anchored_at    TEXT NOT NULL,
    hub_created_at TEXT,  -- NULL until the hub was read for the first time
    closed_at      TEXT,  -- from then on nothing is committed to this stream
    opened_by      TEXT,  -- the person who opened an incarnation after the first, and why
    opened_why     TEXT,
    CONSTRAINT pk_event_stream PRIMARY KEY (stream_id),
    CONSTRAINT uq_event_stream UNIQUE (event_hub, consumer_group, incarnation)
) STRICT;

-- The newest commit of each partition: the fence of every transaction.
CREATE TABLE event_hub_checkpoint (
    stream_id             INTEGER NOT NULL,
    partition_id          TEXT NOT NULL,
    sequence_number       INTEGER NOT NULL,
    offset_token          TEXT NOT NULL,
    enqueued_at           TEXT NOT NULL,
    commit_number         INTEGER NOT NULL,
    commit_id             TEXT NOT NULL,
    updated_at            TEXT NOT NULL,
    first_sequence_number INTEGER NOT NULL,  -- the first one that the totals count
    commits               INTEGER NOT NULL,  -- the totals of all batches, like the next five
    written               INTEGER NOT NULL,
    filtered              INTEGER NOT NULL,
    dead_lettered         INTEGER NOT NULL,
    held                  INTEGER NOT NULL,
    absent                INTEGER NOT NULL,
    letters               INTEGER NOT NULL,  -- that batches and replays made
    purged_commit         INTEGER NOT NULL CONSTRAINT df_event_hub_checkpoint_purged_commit DEFAULT 0,  -- the ledger rows up to this commit are purged
    purged_to             INTEGER NOT NULL CONSTRAINT df_event_hub_checkpoint_purged_to DEFAULT -1,  -- the last sequence number of these
    purged_at             TEXT,
    purged_letters        INTEGER NOT NULL CONSTRAINT df_event_hub_checkpoint_purged_letters DEFAULT 0,  -- that batches made
    purged_replay_letters INTEGER NOT NULL CONSTRAINT df_event_hub_checkpoint_purged_replay_letters DEFAULT 0,  -- that replays made
    unknown_fields        TEXT NOT NULL CONSTRAINT df_event_hub_checkpoint_unknown_fields DEFAULT '{}',  -- a JSON object: events by the name of a field that the room does not know
    CONSTRAINT pk_event_hub_checkpoint PRIMARY KEY (stream_id, partition_id),
    CONSTRAINT fk_event_hub_checkpoint_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id)
) STRICT, WITHOUT ROWID;

-- Where each partition begins.
CREATE TABLE partition_anchor (
    stream_id       INTEGER NOT NULL,
    partition_id    TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,  -- the first one that counts
    anchored_at     TEXT NOT NULL,
    CONSTRAINT pk_partition_anchor PRIMARY KEY (stream_id, partition_id),
    CONSTRAINT fk_partition_anchor_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id)
) STRICT, WITHOUT ROWID;

-- What became of every event: one row for each commit.
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
    rows_appended         INTEGER NOT NULL,  -- of tables without a key: these stay until a replay takes them away
    transform_version     TEXT NOT NULL,
    invocation_id         TEXT NOT NULL,
    committed_at          TEXT NOT NULL,
    total_commits         INTEGER NOT NULL,  -- of all batches up to this commit, like the next five
    total_written         INTEGER NOT NULL,
    total_filtered        INTEGER NOT NULL,
    total_dead_lettered   INTEGER NOT NULL,
    total_held            INTEGER NOT NULL,
    total_absent          INTEGER NOT NULL,
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

-- Retries and replays are few beside batches: by the numbers that they cover.
CREATE INDEX ix_batch_ledger_change
    ON batch_ledger (stream_id, partition_id, first_sequence_number, last_sequence_number, kind) WHERE kind <> 'batch';

-- Sequence numbers that were missing when a later event came.
CREATE TABLE sequence_gap (
    stream_id             INTEGER NOT NULL,
    partition_id          TEXT NOT NULL,
    first_sequence_number INTEGER NOT NULL,
    last_sequence_number  INTEGER NOT NULL,
    found_at              TEXT NOT NULL,
    status                TEXT NOT NULL,
    attempts              INTEGER NOT NULL,
    CONSTRAINT pk_sequence_gap PRIMARY KEY (stream_id, partition_id, first_sequence_number),
    CONSTRAINT fk_sequence_gap_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id),
    CONSTRAINT ck_sequence_gap_range CHECK (last_sequence_number >= first_sequence_number),
    CONSTRAINT ck_sequence_gap_status CHECK (status IN ('open', 'healed', 'absent'))
) STRICT, WITHOUT ROWID;

-- Attempts at a part of a partition that are not known to have ended: the process may have died, as it did `deaths` times
-- before. With a verdict: the one event that killed its child process, in the words of its letter, until that is written.
CREATE TABLE batch_attempt (
    stream_id             INTEGER NOT NULL,
    partition_id          TEXT NOT NULL,
    first_sequence_number INTEGER NOT NULL,
    last_sequence_number  INTEGER NOT NULL,
    attempt_id            TEXT NOT NULL,
    begun_at              TEXT NOT NULL,
    deaths                INTEGER NOT NULL,
    transform_version     TEXT NOT NULL,
    verdict               TEXT,
    CONSTRAINT pk_batch_attempt PRIMARY KEY (stream_id, partition_id, last_sequence_number),
    CONSTRAINT fk_batch_attempt_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id),
    CONSTRAINT ck_batch_attempt_range CHECK (last_sequence_number >= first_sequence_number)
) STRICT, WITHOUT ROWID;

-- Partitions that stand: why, since when, and how often the stop was met since then.
CREATE TABLE partition_stop (
    stream_id    INTEGER NOT NULL,
    partition_id TEXT NOT NULL,
    reason       TEXT NOT NULL,
    detail       TEXT NOT NULL,
    attempts     INTEGER NOT NULL,
    stopped_at   TEXT NOT NULL,
    carried_from INTEGER,  -- the first sequence number that went by the app's own reader, while the trigger stands
    carried_to   INTEGER,  -- the last one of them
    CONSTRAINT pk_partition_stop PRIMARY KEY (stream_id, partition_id, reason),
    CONSTRAINT fk_partition_stop_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id),
    CONSTRAINT ck_partition_stop_reason CHECK (reason IN ('incarnation', 'outage', 'held', 'store', 'trigger'))
) STRICT, WITHOUT ROWID;

-- Who reads a partition, for consumers outside the Functions host; owner_id is empty when it was released.
CREATE TABLE event_hub_ownership (
    stream_id        INTEGER NOT NULL,
    partition_id     TEXT NOT NULL,
    owner_id         TEXT NOT NULL,
    etag             TEXT NOT NULL,
    last_modified_at TEXT NOT NULL,
    CONSTRAINT pk_event_hub_ownership PRIMARY KEY (stream_id, partition_id),
    CONSTRAINT fk_event_hub_ownership_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id)
) STRICT, WITHOUT ROWID;

-- Letters: events whose rows could not be written, each with its fault.
CREATE TABLE event_hub_dead_letter (
    stream_id            INTEGER NOT NULL,
    partition_id         TEXT NOT NULL,
    sequence_number      INTEGER NOT NULL,
    offset_token         TEXT NOT NULL,
    enqueued_at          TEXT NOT NULL,
    partition_key        TEXT,
    properties           TEXT NOT NULL,  -- a JSON object
    body                 BLOB NOT NULL,
    body_kept            INTEGER NOT NULL CONSTRAINT df_event_hub_dead_letter_body_kept DEFAULT 1,  -- 0: the body is empty here, and only the hub may have it
    error_class          TEXT NOT NULL,
    error_type           TEXT NOT NULL,
    error                TEXT NOT NULL,
    error_at             TEXT,  -- the file and line of the room that raised it
    fingerprint          TEXT NOT NULL,  -- the cause, and after a dot the values of the message
    cause                TEXT NOT NULL,
    transform_version    TEXT NOT NULL,
    status               TEXT NOT NULL,
    attempts             INTEGER NOT NULL,
    due_at               TEXT,
    claimed_by           TEXT,
    claimed_until        TEXT,
    lost_claims          INTEGER NOT NULL CONSTRAINT df_event_hub_dead_letter_lost_claims DEFAULT 0,
    began_at             TEXT,  -- when the try of a letter alone began
    held_behind          INTEGER,
    failed_at            TEXT NOT NULL,
    settled_at           TEXT,
    settled_why          TEXT,
    replay_commit_number INTEGER,  -- of the replay that made a letter of an event that its batch counts as written or filtered
    CONSTRAINT pk_event_hub_dead_letter PRIMARY KEY (stream_id, partition_id, sequence_number),
    CONSTRAINT ck_event_hub_dead_letter_class
        CHECK (error_class IN ('poison', 'reference', 'refused', 'unknown', 'crash')),
    CONSTRAINT ck_event_hub_dead_letter_status
        CHECK (status IN ('waiting', 'retrying', 'held', 'resolved', 'exhausted', 'discarded'))
) STRICT;

-- What a keeper asks for: what is due, and what its lease gives back. A lease ends at due_at too.
CREATE INDEX ix_event_hub_dead_letter_due
    ON event_hub_dead_letter (stream_id, due_at) WHERE status IN ('waiting', 'retrying');

CREATE INDEX ix_event_hub_dead_letter_failed
    ON event_hub_dead_letter (stream_id, failed_at, partition_id, sequence_number);

CREATE INDEX ix_event_hub_dead_letter_status
    ON event_hub_dead_letter (stream_id, status, failed_at, partition_id, sequence_number);

CREATE INDEX ix_event_hub_dead_letter_cause
    ON event_hub_dead_letter (stream_id, cause, failed_at, partition_id, sequence_number, status, fingerprint);

-- Letters that replays made.
CREATE INDEX ix_event_hub_dead_letter_replayed
    ON event_hub_dead_letter (stream_id, partition_id, sequence_number) WHERE replay_commit_number IS NOT NULL;

-- Open letters of a partition key in order: what later events have to wait for, and how long the hub holds their events.
CREATE INDEX ix_event_hub_dead_letter_open
    ON event_hub_dead_letter (stream_id, partition_id, partition_key, sequence_number, enqueued_at, body_kept, status,
                              error_class)
 WHERE status IN ('waiting', 'retrying', 'held', 'exhausted');

-- The held letter that comes next.
CREATE INDEX ix_event_hub_dead_letter_held
    ON event_hub_dead_letter (stream_id, partition_id, held_behind) WHERE status = 'held';

-- The settled letters of a partition by number, for purges.
CREATE INDEX ix_event_hub_dead_letter_settled
    ON event_hub_dead_letter (stream_id, partition_id, sequence_number, settled_at)
 WHERE status IN ('resolved', 'discarded');

-- Attempts: what each try or move of a letter did.
CREATE TABLE dead_letter_attempt (
    stream_id         INTEGER NOT NULL,
    partition_id      TEXT NOT NULL,
    sequence_number   INTEGER NOT NULL,
    attempt           INTEGER NOT NULL,
    touched_by        TEXT NOT NULL,  -- the claim or the move
    kind              TEXT NOT NULL,
    status            TEXT NOT NULL,  -- of the letter, after the attempt
    error_class       TEXT,
    error_type        TEXT,
    error             TEXT,
    cause             TEXT,
    transform_version TEXT NOT NULL,
    commit_number     INTEGER,  -- of a retry
    done_by           TEXT NOT NULL,
    why               TEXT,
    done_at           TEXT NOT NULL,
    CONSTRAINT pk_dead_letter_attempt PRIMARY KEY (stream_id, partition_id, sequence_number, attempt),
    CONSTRAINT ck_dead_letter_attempt_kind CHECK (kind IN ('retry', 'exhaust', 'requeue', 'discard', 'free', 'replay')),
    CONSTRAINT ck_dead_letter_attempt_status CHECK (status IN ('waiting', 'resolved', 'exhausted', 'discarded'))
) STRICT, WITHOUT ROWID;

-- The letters that a redrive retried.
CREATE INDEX ix_dead_letter_attempt_requeued
    ON dead_letter_attempt (touched_by) WHERE kind = 'requeue';

-- Tasks: what a person requested and what takes more than one transaction.
CREATE TABLE task (
    task_id       TEXT NOT NULL,
    stream_id     INTEGER NOT NULL,
    kind          TEXT NOT NULL,  -- which part of the app does it: replay, redrive, purge, audit, erasure
    status        TEXT NOT NULL,
    is_dry_run    INTEGER NOT NULL,
    task_key      TEXT NOT NULL,  -- of what it is about: one open task of a kind has it
    asked         TEXT NOT NULL,  -- a JSON object: the request, as its kind reads it
    request_digest TEXT NOT NULL,  -- of the request as it came: the same one again is answered with this task
    total         INTEGER NOT NULL,  -- numbers, letters or parts at the request
    pieces        INTEGER NOT NULL,
    per_second    INTEGER,
    next_piece_at TEXT NOT NULL,
    requested_by  TEXT NOT NULL,
    reason        TEXT NOT NULL,
    requested_at  TEXT NOT NULL,
    started_at    TEXT,
    ended_at      TEXT,
    updated_at    TEXT NOT NULL,
    fault         TEXT,  -- the fault that holds it up, or ended it
    history       TEXT NOT NULL,  -- a JSON object a line: who moved it, when and why
    transform_version TEXT,  -- whose drivers alone do its pieces; NULL for a kind that calls no transform
    CONSTRAINT pk_task PRIMARY KEY (task_id),
    CONSTRAINT fk_task_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id),
    CONSTRAINT ck_task_status CHECK (status IN ('planned', 'running', 'paused', 'done', 'cancelled', 'failed'))
) STRICT, WITHOUT ROWID;

CREATE INDEX ix_task_requested
    ON task (stream_id, requested_at, task_id);

CREATE UNIQUE INDEX uq_task_open
    ON task (stream_id, kind, task_key) WHERE status IN ('planned', 'running', 'paused');

-- The parts of a task, one for each partition or table: how far each one is, and what it found.
CREATE TABLE task_part (
    task_id               TEXT NOT NULL,
    part                  TEXT NOT NULL,  -- a partition's id, or what its kind calls it
    ordinal               INTEGER NOT NULL,  -- the place among the parts
    first_sequence_number INTEGER,
    last_sequence_number  INTEGER,
    position              INTEGER NOT NULL,  -- where the next piece begins, as its kind counts
    step                  INTEGER NOT NULL,  -- counts the pieces, so that two drivers never do one twice
    asked                 TEXT NOT NULL,  -- JSON: the request of this part, as its kind reads it
    report                TEXT NOT NULL,  -- a JSON object: what the part has found or done so far
    closed_at             TEXT,
    CONSTRAINT pk_task_part PRIMARY KEY (task_id, part),
    CONSTRAINT fk_task_part_task FOREIGN KEY (task_id) REFERENCES task (task_id)
) STRICT, WITHOUT ROWID;

-- The difference that a dry run found, by event.
CREATE TABLE replay_diff (
    task_id         TEXT NOT NULL,
    partition_id    TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    diff            TEXT NOT NULL,  -- a JSON object
    CONSTRAINT pk_replay_diff PRIMARY KEY (task_id, partition_id, sequence_number)
) STRICT, WITHOUT ROWID;

-- The states that a replay carries along.
CREATE TABLE replay_state (
    task_id         TEXT NOT NULL,
    partition_id    TEXT NOT NULL,
    state_key       TEXT NOT NULL,  -- a digest of the table and the key
    sequence_number INTEGER NOT NULL,
    row             TEXT NOT NULL,  -- its columns as a JSON object
    CONSTRAINT pk_replay_state PRIMARY KEY (task_id, partition_id, state_key)
) STRICT, WITHOUT ROWID;

-- The rows that replays took away.
CREATE TABLE retracted_row (
    stream_id         INTEGER NOT NULL,
    partition_id      TEXT NOT NULL,
    commit_number     INTEGER NOT NULL,  -- of the replay; the largest number: an erasure took the row away
    table_name        TEXT NOT NULL,
    sequence_number   INTEGER NOT NULL,
    ordinal           INTEGER NOT NULL,
    row_commit_number INTEGER NOT NULL,  -- of the commit that wrote the row
    row               TEXT NOT NULL,  -- its columns as a JSON object, which is empty after an erasure
    CONSTRAINT pk_retracted_row PRIMARY KEY (stream_id, partition_id, commit_number, table_name, sequence_number, ordinal)
) STRICT, WITHOUT ROWID;

-- An audit finds the rows that replays took away by their number.
CREATE INDEX ix_retracted_row_number
    ON retracted_row (stream_id, partition_id, sequence_number);

-- Events that the hub no longer keeps, staged for a replay out of Capture's files: each waits until it was replayed.
CREATE TABLE staged_event (
    stream_id       INTEGER NOT NULL,
    partition_id    TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    offset_token    TEXT NOT NULL,
    enqueued_at     TEXT NOT NULL,
    partition_key   TEXT,
    properties      TEXT NOT NULL,  -- a JSON object
    body            BLOB NOT NULL,
    staged_at       TEXT,  -- NULL until a purge has seen the event
    CONSTRAINT pk_staged_event PRIMARY KEY (stream_id, partition_id, sequence_number)
) STRICT;

CREATE INDEX ix_staged_event_staged
    ON staged_event (stream_id, staged_at);

-- Subjects that were erased, as keyed hashes: their events up to a number stay forgotten.
CREATE TABLE erased_subject (
    stream_id             INTEGER NOT NULL,
    partition_id          TEXT NOT NULL,
    subject_hash          TEXT NOT NULL,
    key_hash              TEXT NOT NULL,  -- of the key of the hash, to see that it has changed
    until_sequence_number INTEGER NOT NULL,
    erased_by             TEXT NOT NULL,  -- the task
    erased_at             TEXT NOT NULL,
    CONSTRAINT pk_erased_subject PRIMARY KEY (stream_id, partition_id, subject_hash)
) STRICT, WITHOUT ROWID;

-- Where the job of each aggregate stands, and its orders.
CREATE TABLE aggregation_cut (
    job           TEXT NOT NULL,
    levels        TEXT NOT NULL CONSTRAINT df_aggregation_cut_levels DEFAULT '',  -- the names of the tables, the finest first
    cut           TEXT NOT NULL,  -- a JSON object: the commit number of each partition that is in the aggregate
    run_number    INTEGER NOT NULL,  -- of the last run that was planned
    paused_at     TEXT,
    paused_by     TEXT,
    paused_why    TEXT,
    history       TEXT NOT NULL CONSTRAINT df_aggregation_cut_history DEFAULT '',  -- a JSON object a line: who paused or resumed the job, or cancelled or discarded work of it, when and why
    ordered_kind  TEXT,  -- the order of a repair or a backfill, until its run is planned, like the next five
    ordered_since TEXT,
    ordered_until TEXT,
    ordered_at    TEXT,
    ordered_by    TEXT,
    ordered_why   TEXT,
    CONSTRAINT pk_aggregation_cut PRIMARY KEY (job)
) STRICT, WITHOUT ROWID;

-- The runs of the jobs.
CREATE TABLE aggregation_run (
    run_id           TEXT NOT NULL,
    job              TEXT NOT NULL,
    run_number       INTEGER NOT NULL,
    kind             TEXT NOT NULL CONSTRAINT df_aggregation_run_kind DEFAULT 'increment',  -- a repair replaces the windows of its days at the job's cut; a backfill begins an aggregate at a later cut
    since_day        TEXT,  -- the first and the last day of its windows, in UTC; NULL: without an end
    until_day        TEXT,
    cut_from         TEXT NOT NULL,
    cut_to           TEXT NOT NULL,
    rows_from        TEXT NOT NULL CONSTRAINT df_aggregation_run_rows_from DEFAULT 'sql',  -- the place from which its job reads rows
    rows_limit       INTEGER,  -- the most rows of the run, or of the increment after a repair or a backfill
    rows_planned     INTEGER,  -- the rows that the ledger counts for its commits; NULL for a repair and a backfill
    engine           TEXT NOT NULL,
    attempt          INTEGER NOT NULL,
    submits          INTEGER NOT NULL,
    committed_slices INTEGER NOT NULL CONSTRAINT df_aggregation_run_committed_slices DEFAULT 0,  -- those before this number
    status           TEXT NOT NULL,
    planned_at       TEXT NOT NULL,
    intent_at        TEXT NOT NULL,
    engine_job_id    TEXT,
    submitted_at     TEXT,
    closed_at        TEXT,
    failure          TEXT,
    readings         INTEGER,
    windows          INTEGER,
    lake_path        TEXT,
    is_snapshot      INTEGER NOT NULL,
    quality          TEXT,  -- a JSON object, as its job measured it
    CONSTRAINT pk_aggregation_run PRIMARY KEY (run_id),
    CONSTRAINT uq_aggregation_run_number UNIQUE (job, run_number),
    CONSTRAINT ck_aggregation_run_status CHECK (status IN ('submitting', 'submitted', 'committed', 'failed')),
    CONSTRAINT ck_aggregation_run_kind CHECK (kind IN ('increment', 'repair', 'backfill'))
) STRICT, WITHOUT ROWID;

-- One run at a time.
CREATE UNIQUE INDEX uq_aggregation_run_open
    ON aggregation_run (job) WHERE status IN ('submitting', 'submitted');

CREATE INDEX ix_aggregation_run_closed
    ON aggregation_run (closed_at);

-- One row for each submit that ended without a result, with the words of the engine.
CREATE TABLE aggregation_failure (
    run_id        TEXT NOT NULL,
    submit_number INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    failed_at     TEXT NOT NULL,
    engine_job_id TEXT,
    why           TEXT NOT NULL,
    reason        TEXT,
    log_tail      TEXT,
    link          TEXT,
    CONSTRAINT pk_aggregation_failure PRIMARY KEY (run_id, submit_number),
    CONSTRAINT fk_aggregation_failure_run FOREIGN KEY (run_id) REFERENCES aggregation_run (run_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX ix_aggregation_failure_at
    ON aggregation_failure (failed_at);

-- One row for each result that is staged whole: the last that a job writes.
CREATE TABLE staged_result (
    staging_id  TEXT NOT NULL,
    run_id      TEXT NOT NULL,
    attempt     INTEGER NOT NULL,
    windows     INTEGER NOT NULL,  -- of the finest level
    levels      TEXT NOT NULL,  -- a JSON object: the number of windows of each level
    rows_read   INTEGER NOT NULL,
    quality     TEXT,  -- a JSON object, as its job measured it
    overflow    TEXT,  -- the fault of a value beyond 64 bits: the job staged no windows
    lake_path   TEXT,
    is_snapshot INTEGER NOT NULL,
    staged_at   TEXT NOT NULL,
    CONSTRAINT pk_staged_result PRIMARY KEY (staging_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX ix_staged_result_run
    ON staged_result (run_id);

-- The job's facts about the windows of a level that it staged of a slice; a commit compares them with the rows.
CREATE TABLE staged_slice (
    staging_id    TEXT NOT NULL,
    level         TEXT NOT NULL,  -- the name of its table
    slice         INTEGER NOT NULL,
    run_id        TEXT NOT NULL,
    windows       INTEGER NOT NULL,
    whole_windows INTEGER NOT NULL,
    rows_hash     INTEGER NOT NULL,
    is_verified   INTEGER NOT NULL CONSTRAINT df_staged_slice_is_verified DEFAULT 0,
    CONSTRAINT pk_staged_slice PRIMARY KEY (staging_id, level, slice)
) STRICT, WITHOUT ROWID;

-- The lag of each stream and its accounted numbers by minute, of one day. The watch writes a row and removes old ones.
CREATE TABLE stream_minute (
    minute_at TEXT NOT NULL,
    stream_id INTEGER NOT NULL,
    read_at   TEXT NOT NULL,
    lag       INTEGER NOT NULL,  -- events after the checkpoints
    accounted INTEGER NOT NULL,  -- numbers with an outcome, since the anchor
    CONSTRAINT pk_stream_minute PRIMARY KEY (minute_at, stream_id),
    CONSTRAINT fk_stream_minute_stream FOREIGN KEY (stream_id) REFERENCES event_stream (stream_id)
) WITHOUT ROWID;
