-- The pipeline: a job that a person pauses, the size of its runs, and why attempts failed.

ALTER TABLE aggregation_cut ADD COLUMN paused_at TEXT;

ALTER TABLE aggregation_cut ADD COLUMN paused_by TEXT;

ALTER TABLE aggregation_cut ADD COLUMN paused_why TEXT;

-- One JSON object per line: who paused or resumed the job, or cancelled or discarded work of it, when and why.
ALTER TABLE aggregation_cut ADD COLUMN history TEXT NOT NULL CONSTRAINT df_aggregation_cut_history DEFAULT '';

-- The most rows that the run was planned for, and those that the ledger counts for its commits. NULL: it is older.
ALTER TABLE aggregation_run ADD COLUMN rows_limit INTEGER;

ALTER TABLE aggregation_run ADD COLUMN rows_planned INTEGER;

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

CREATE INDEX ix_aggregation_failure_at ON aggregation_failure (failed_at);
