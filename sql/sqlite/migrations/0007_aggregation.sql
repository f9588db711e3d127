-- Aggregation: where each job stands, its runs, what they stage, and the activity of homes that they add up.

CREATE TABLE aggregation_cut (
    job        TEXT NOT NULL,
    cut        TEXT NOT NULL,  -- a JSON object: the commit number of each partition that is in the aggregate
    run_number INTEGER NOT NULL,  -- of the last run that was planned
    CONSTRAINT pk_aggregation_cut PRIMARY KEY (job)
) STRICT, WITHOUT ROWID;

CREATE TABLE aggregation_run (
    run_id        TEXT NOT NULL,
    job           TEXT NOT NULL,
    run_number    INTEGER NOT NULL,
    cut_from      TEXT NOT NULL,
    cut_to        TEXT NOT NULL,
    engine        TEXT NOT NULL,
    attempt       INTEGER NOT NULL,
    submits       INTEGER NOT NULL,
    status        TEXT NOT NULL,
    planned_at    TEXT NOT NULL,
    intent_at     TEXT NOT NULL,
    engine_job_id TEXT,
    submitted_at  TEXT,
    closed_at     TEXT,
    failure       TEXT,
    readings      INTEGER,
    windows       INTEGER,
    lake_path     TEXT,
    is_snapshot   INTEGER NOT NULL,
    CONSTRAINT pk_aggregation_run PRIMARY KEY (run_id),
    CONSTRAINT uq_aggregation_run_number UNIQUE (job, run_number),
    CONSTRAINT ck_aggregation_run_status CHECK (status IN ('submitting', 'submitted', 'committed', 'failed'))
) STRICT, WITHOUT ROWID;

-- One run at a time.
CREATE UNIQUE INDEX uq_aggregation_run_open ON aggregation_run (job) WHERE status IN ('submitting', 'submitted');

-- One row for each result that is staged whole: the last that a job writes.
CREATE TABLE aggregation_staging (
    staging_id  TEXT NOT NULL,
    run_id      TEXT NOT NULL,
    attempt     INTEGER NOT NULL,
    lake_path   TEXT,
    is_snapshot INTEGER NOT NULL,
    staged_at   TEXT NOT NULL,
    CONSTRAINT pk_aggregation_staging PRIMARY KEY (staging_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE home_activity (
    home_id              TEXT NOT NULL,
    window_start         TEXT NOT NULL,
    kind                 TEXT NOT NULL,
    readings             INTEGER NOT NULL,
    active               INTEGER NOT NULL,
    ppm_hundredths       INTEGER,
    least_ppm_hundredths INTEGER,
    most_ppm_hundredths  INTEGER,
    first_observed_at    TEXT NOT NULL,
    last_observed_at     TEXT NOT NULL,
    run_number           INTEGER NOT NULL,  -- of the run that touched it last
    CONSTRAINT pk_home_activity PRIMARY KEY (home_id, window_start, kind)
) STRICT, WITHOUT ROWID;

-- Without a key: a task that runs twice stages its rows twice, and they are read once.
CREATE TABLE home_activity_staging (
    staging_id           TEXT NOT NULL,
    run_id               TEXT NOT NULL,
    home_id              TEXT NOT NULL,
    window_start         TEXT NOT NULL,
    kind                 TEXT NOT NULL,
    is_whole             INTEGER NOT NULL,  -- replaces the window, and does not add to it
    readings             INTEGER NOT NULL,
    active               INTEGER NOT NULL,
    ppm_hundredths       INTEGER,
    least_ppm_hundredths INTEGER,
    most_ppm_hundredths  INTEGER,
    first_observed_at    TEXT,
    last_observed_at     TEXT
) STRICT;

CREATE INDEX ix_home_activity_staging ON home_activity_staging (staging_id);
