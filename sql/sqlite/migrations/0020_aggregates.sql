-- Aggregates follow from their declarations: `python -m core.store.aggregate_ddl` prints their tables. A run is committed
-- in slices of its keys, each in a transaction of its own, after its staged rows were compared with the job's facts.
-- aggregation_staging and home_activity_staging are only used by older code.

-- One row for each result that is staged whole: the last that a job writes.
CREATE TABLE staged_result (
    staging_id  TEXT NOT NULL,
    run_id      TEXT NOT NULL,
    attempt     INTEGER NOT NULL,
    windows     INTEGER NOT NULL,  -- of the finest level
    levels      TEXT NOT NULL,  -- a JSON object: the number of windows of each level
    rows_read   INTEGER NOT NULL,
    lake_path   TEXT,
    is_snapshot INTEGER NOT NULL,
    staged_at   TEXT NOT NULL,
    CONSTRAINT pk_staged_result PRIMARY KEY (staging_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX ix_staged_result_run ON staged_result (run_id);

-- The job's facts about the windows of a level that it staged of a slice; a commit compares them with the rows.
CREATE TABLE staged_slice (
    staging_id    TEXT NOT NULL,
    level         TEXT NOT NULL,  -- the name of its table
    slice         INTEGER NOT NULL,
    run_id        TEXT NOT NULL,
    windows       INTEGER NOT NULL,
    whole_windows INTEGER NOT NULL,
    sums          TEXT NOT NULL,
    rows_hash     INTEGER NOT NULL,
    is_verified   INTEGER NOT NULL CONSTRAINT df_staged_slice_is_verified DEFAULT 0,
    CONSTRAINT pk_staged_slice PRIMARY KEY (staging_id, level, slice)
) STRICT, WITHOUT ROWID;

CREATE TABLE home_activity_staged (
    staging_id TEXT NOT NULL,
    slice INTEGER NOT NULL,
    home_id TEXT NOT NULL,
    window_start TEXT NOT NULL,
    kind TEXT NOT NULL,
    run_id TEXT NOT NULL,
    is_whole INTEGER NOT NULL,  -- replaces the window, and does not add to it
    readings INTEGER NOT NULL,
    active INTEGER NOT NULL,
    ppm_hundredths INTEGER,
    least_ppm_hundredths INTEGER,
    most_ppm_hundredths INTEGER,
    first_observed_at TEXT,
    last_observed_at TEXT,
    CONSTRAINT pk_home_activity_staged PRIMARY KEY (staging_id, slice, home_id, window_start, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE flight_punctuality (
    carrier TEXT NOT NULL,
    window_start TEXT NOT NULL,
    changes INTEGER NOT NULL,
    delayed INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    diverted INTEGER NOT NULL,
    departed INTEGER NOT NULL,
    arrived INTEGER NOT NULL,
    first_changed_at TEXT NOT NULL,
    last_changed_at TEXT NOT NULL,
    run_number INTEGER NOT NULL,  -- of the run that touched it last
    slice INTEGER,  -- of its key; NULL: no run has touched it since there are slices
    CONSTRAINT pk_flight_punctuality PRIMARY KEY (carrier, window_start)
) STRICT, WITHOUT ROWID;

CREATE TABLE flight_punctuality_staged (
    staging_id TEXT NOT NULL,
    slice INTEGER NOT NULL,
    carrier TEXT NOT NULL,
    window_start TEXT NOT NULL,
    run_id TEXT NOT NULL,
    is_whole INTEGER NOT NULL,  -- replaces the window, and does not add to it
    changes INTEGER NOT NULL,
    delayed INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    diverted INTEGER NOT NULL,
    departed INTEGER NOT NULL,
    arrived INTEGER NOT NULL,
    first_changed_at TEXT,
    last_changed_at TEXT,
    CONSTRAINT pk_flight_punctuality_staged PRIMARY KEY (staging_id, slice, carrier, window_start)
) STRICT, WITHOUT ROWID;

ALTER TABLE aggregation_run
    ADD COLUMN committed_slices INTEGER NOT NULL CONSTRAINT df_aggregation_run_committed_slices DEFAULT 0;  -- those before this number

ALTER TABLE home_activity ADD COLUMN slice INTEGER;  -- of its key; NULL: no run has touched it since there are slices

ALTER TABLE aggregation_cut ADD COLUMN levels TEXT NOT NULL CONSTRAINT df_aggregation_cut_levels DEFAULT '';  -- the names of the tables, the finest first
