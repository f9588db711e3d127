-- Aggregation: where each job stands, its runs, what they stage, and the activity of homes that they add up.

CREATE TABLE hubledger.aggregation_cut (
    job        varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    cut        nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,  -- a JSON object: the commit number of each partition that is in the aggregate
    run_number bigint NOT NULL,  -- of the last run that was planned
    CONSTRAINT pk_aggregation_cut PRIMARY KEY (job)
);

CREATE TABLE hubledger.aggregation_run (
    run_id        varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    job           varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    run_number    bigint NOT NULL,
    cut_from      nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
    cut_to        nvarchar(max) COLLATE Latin1_General_100_BIN2 NOT NULL,
    engine        varchar(20) NOT NULL,
    attempt       int NOT NULL,
    submits       int NOT NULL,
    status        varchar(12) NOT NULL,
    planned_at    datetime2(7) NOT NULL,
    intent_at     datetime2(7) NOT NULL,
    engine_job_id nvarchar(400),
    submitted_at  datetime2(7),
    closed_at     datetime2(7),
    failure       nvarchar(2000),
    readings      bigint,
    windows       bigint,
    lake_path     nvarchar(400),
    is_snapshot   bit NOT NULL,
    CONSTRAINT pk_aggregation_run PRIMARY KEY (run_id),
    CONSTRAINT uq_aggregation_run_number UNIQUE (job, run_number),
    CONSTRAINT ck_aggregation_run_status CHECK (status IN ('submitting', 'submitted', 'committed', 'failed'))
);

-- One run at a time.
CREATE UNIQUE INDEX uq_aggregation_run_open
    ON hubledger.aggregation_run (job) WHERE status IN ('submitting', 'submitted');

-- One row for each result that is staged whole: the last that a job writes.
CREATE TABLE hubledger.aggregation_staging (
    staging_id  varchar(80) COLLATE Latin1_General_100_BIN2 NOT NULL,
    run_id      varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    attempt     int NOT NULL,
    lake_path   nvarchar(400),
    is_snapshot bit NOT NULL,
    staged_at   datetime2(7) NOT NULL,
    CONSTRAINT pk_aggregation_staging PRIMARY KEY (staging_id)
);

CREATE TABLE hubledger.home_activity (
    home_id              nvarchar(32) COLLATE Latin1_General_100_BIN2 NOT NULL,
    window_start         datetime2(7) NOT NULL,
    kind                 varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL,
    readings             bigint NOT NULL,
    active               bigint NOT NULL,
    ppm_hundredths       bigint,
    least_ppm_hundredths bigint,
    most_ppm_hundredths  bigint,
    first_observed_at    datetime2(7) NOT NULL,
    last_observed_at     datetime2(7) NOT NULL,
    run_number           bigint NOT NULL,  -- of the run that touched it last
    CONSTRAINT pk_home_activity PRIMARY KEY (home_id, window_start, kind)
);

-- Without a key: a task that runs twice stages its rows twice, and they are read once.
CREATE TABLE hubledger.home_activity_staging (
    staging_id           varchar(80) COLLATE Latin1_General_100_BIN2 NOT NULL,
    run_id               varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    home_id              nvarchar(32) COLLATE Latin1_General_100_BIN2 NOT NULL,
    window_start         datetime2(7) NOT NULL,
    kind                 varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL,
    is_whole             bit NOT NULL,  -- replaces the window, and does not add to it
    readings             bigint NOT NULL,
    active               bigint NOT NULL,
    ppm_hundredths       bigint,
    least_ppm_hundredths bigint,
    most_ppm_hundredths  bigint,
    first_observed_at    datetime2(7),
    last_observed_at     datetime2(7)
);

CREATE INDEX ix_home_activity_staging ON hubledger.home_activity_staging (staging_id);
