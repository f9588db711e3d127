-- The pipeline: a job that a person pauses, the size of its runs, and why attempts failed.

ALTER TABLE hubledger.aggregation_cut ADD paused_at datetime2(7);

ALTER TABLE hubledger.aggregation_cut ADD paused_by nvarchar(100);

ALTER TABLE hubledger.aggregation_cut ADD paused_why nvarchar(400);

-- One JSON object per line: who paused or resumed the job, or cancelled or discarded work of it, when and why.
ALTER TABLE hubledger.aggregation_cut ADD history nvarchar(max) NOT NULL CONSTRAINT df_aggregation_cut_history DEFAULT N'';

-- The most rows that the run was planned for, and those that the ledger counts for its commits. NULL: it is older.
ALTER TABLE hubledger.aggregation_run ADD rows_limit bigint;

ALTER TABLE hubledger.aggregation_run ADD rows_planned bigint;

-- One row for each submit that ended without a result, with the words of the engine.
CREATE TABLE hubledger.aggregation_failure (
    run_id        varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    submit_number int NOT NULL,
    attempt       int NOT NULL,
    failed_at     datetime2(7) NOT NULL,
    engine_job_id nvarchar(400),
    why           nvarchar(2000) NOT NULL,
    reason        nvarchar(2000),
    log_tail      nvarchar(4000),
    link          nvarchar(1000),
    CONSTRAINT pk_aggregation_failure PRIMARY KEY (run_id, submit_number),
    CONSTRAINT fk_aggregation_failure_run FOREIGN KEY (run_id) REFERENCES hubledger.aggregation_run (run_id)
);

CREATE INDEX ix_aggregation_failure_at ON hubledger.aggregation_failure (failed_at);
