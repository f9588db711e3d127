-- Aggregates follow from their declarations: `python -m core.store.aggregate_ddl` prints their tables. A run is committed
-- in slices of its keys, each in a transaction of its own, after its staged rows were compared with the job's facts.
-- aggregation_staging and home_activity_staging are only used by older code.

-- One row for each result that is staged whole: the last that a job writes.
CREATE TABLE hubledger.staged_result (
    staging_id  varchar(80) COLLATE Latin1_General_100_BIN2 NOT NULL,
    run_id      varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    attempt     int NOT NULL,
    windows     bigint NOT NULL,  -- of the finest level
    levels      nvarchar(2000) COLLATE Latin1_General_100_BIN2 NOT NULL,  -- a JSON object: the number of windows of each level
    rows_read   bigint NOT NULL,
    lake_path   nvarchar(400),
    is_snapshot bit NOT NULL,
    staged_at   datetime2(7) NOT NULL,
    CONSTRAINT pk_staged_result PRIMARY KEY (staging_id)
);

CREATE INDEX ix_staged_result_run ON hubledger.staged_result (run_id);

-- The job's facts about the windows of a level that it staged of a slice; a commit compares them with the rows.
CREATE TABLE hubledger.staged_slice (
    staging_id    varchar(80) COLLATE Latin1_General_100_BIN2 NOT NULL,
    level         varchar(120) COLLATE Latin1_General_100_BIN2 NOT NULL,  -- the name of its table
    slice         int NOT NULL,
    run_id        varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    windows       bigint NOT NULL,
    whole_windows bigint NOT NULL,
    sums          nvarchar(2000) COLLATE Latin1_General_100_BIN2 NOT NULL,
    rows_hash     bigint NOT NULL,
    is_verified   bit NOT NULL CONSTRAINT df_staged_slice_is_verified DEFAULT 0,
    CONSTRAINT pk_staged_slice PRIMARY KEY (staging_id, level, slice)
);

CREATE TABLE hubledger.home_activity_staged (
    staging_id varchar(80) COLLATE Latin1_General_100_BIN2 NOT NULL,
    slice int NOT NULL,
    home_id nvarchar(32) COLLATE Latin1_General_100_BIN2 NOT NULL,
    window_start datetime2(7) NOT NULL,
    kind varchar(20) COLLATE Latin1_General_100_BIN2 NOT NULL,
    run_id varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    is_whole bit NOT NULL,  -- replaces the window, and does not add to it
    readings bigint NOT NULL,
    active bigint NOT NULL,
    ppm_hundredths bigint,
    least_ppm_hundredths bigint,
    most_ppm_hundredths bigint,
    first_observed_at datetime2(7),
    last_observed_at datetime2(7),
    CONSTRAINT pk_home_activity_staged PRIMARY KEY (staging_id, slice, home_id, window_start, kind) WITH (IGNORE_DUP_KEY = ON)
);

CREATE TABLE hubledger.flight_punctuality (
    carrier nvarchar(3) COLLATE Latin1_General_100_BIN2 NOT NULL,
    window_start datetime2(7) NOT NULL,
    changes bigint NOT NULL,
    delayed bigint NOT NULL,
    cancelled bigint NOT NULL,
    diverted bigint NOT NULL,
    departed bigint NOT NULL,
    arrived bigint NOT NULL,
    first_changed_at datetime2(7) NOT NULL,
    last_changed_at datetime2(7) NOT NULL,
    run_number bigint NOT NULL,  -- of the run that touched it last
    slice int,  -- of its key; NULL: no run has touched it since there are slices
    CONSTRAINT pk_flight_punctuality PRIMARY KEY (carrier, window_start)
);

CREATE TABLE hubledger.flight_punctuality_staged (
    staging_id varchar(80) COLLATE Latin1_General_100_BIN2 NOT NULL,
    slice int NOT NULL,
    carrier nvarchar(3) COLLATE Latin1_General_100_BIN2 NOT NULL,
    window_start datetime2(7) NOT NULL,
    run_id varchar(40) COLLATE Latin1_General_100_BIN2 NOT NULL,
    is_whole bit NOT NULL,  -- replaces the window, and does not add to it
    changes bigint NOT NULL,
    delayed bigint NOT NULL,
    cancelled bigint NOT NULL,
    diverted bigint NOT NULL,
    departed bigint NOT NULL,
    arrived bigint NOT NULL,
    first_changed_at datetime2(7),
    last_changed_at datetime2(7),
    CONSTRAINT pk_flight_punctuality_staged PRIMARY KEY (staging_id, slice, carrier, window_start) WITH (IGNORE_DUP_KEY = ON)
);

-- The last steps, because a changed table is locked until the migration ends.

ALTER TABLE hubledger.aggregation_run
    ADD committed_slices int NOT NULL CONSTRAINT df_aggregation_run_committed_slices DEFAULT 0;  -- those before this number

ALTER TABLE hubledger.home_activity ADD slice int;  -- of its key; NULL: no run has touched it since there are slices

ALTER TABLE hubledger.aggregation_cut ADD levels varchar(4000) COLLATE Latin1_General_100_BIN2 NOT NULL CONSTRAINT df_aggregation_cut_levels DEFAULT '';  -- the names of the tables, the finest first
