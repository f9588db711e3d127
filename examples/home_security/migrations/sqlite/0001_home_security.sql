-- Registered homes (a reference), their sensors' readings, their alerts, and their activity by quarter, hour and day.

CREATE TABLE home (
    home_id         TEXT NOT NULL,
    time_zone       TEXT NOT NULL,
    armed           INTEGER NOT NULL,
    stream_id       INTEGER NOT NULL,
    partition_id    TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    commit_number   INTEGER NOT NULL,
    CONSTRAINT pk_home PRIMARY KEY (home_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX ix_home_place
    ON home (stream_id, partition_id, sequence_number, commit_number);

CREATE TABLE sensor_reading (
    stream_id       INTEGER NOT NULL,
    partition_id    TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    ordinal         INTEGER NOT NULL,
    commit_number   INTEGER NOT NULL,
    home_id         TEXT NOT NULL,
    sensor_id       TEXT NOT NULL,
    kind            TEXT NOT NULL,
    state           TEXT,
    ppm             INTEGER,
    observed_at     TEXT NOT NULL,
    CONSTRAINT pk_sensor_reading PRIMARY KEY (stream_id, partition_id, sequence_number, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE home_alert (
    stream_id       INTEGER NOT NULL,
    partition_id    TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    ordinal         INTEGER NOT NULL,
    commit_number   INTEGER NOT NULL,
    home_id         TEXT NOT NULL,
    sensor_id       TEXT NOT NULL,
    kind            TEXT NOT NULL,
    ppm             INTEGER,
    observed_at     TEXT NOT NULL,
    CONSTRAINT pk_home_alert PRIMARY KEY (stream_id, partition_id, sequence_number, ordinal)
) STRICT, WITHOUT ROWID;

CREATE INDEX ix_home_alert_home
    ON home_alert (home_id, observed_at);

CREATE TABLE home_activity (
    home_id TEXT NOT NULL,
    window_start TEXT NOT NULL,
    kind TEXT NOT NULL,
    readings INTEGER NOT NULL,
    active INTEGER NOT NULL,
    ppm_hundredths INTEGER,
    least_ppm_hundredths INTEGER,
    most_ppm_hundredths INTEGER,
    first_observed_at TEXT NOT NULL,
    last_observed_at TEXT NOT NULL,
    run_number INTEGER NOT NULL,  -- of the run that touched it last
    slice INTEGER NOT NULL,  -- of its key
    CONSTRAINT pk_home_activity PRIMARY KEY (home_id, window_start, kind)
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

CREATE TABLE home_activity_hour (
    home_id TEXT NOT NULL,
    window_start TEXT NOT NULL,
    kind TEXT NOT NULL,
    readings INTEGER NOT NULL,
    active INTEGER NOT NULL,
    ppm_hundredths INTEGER,
    least_ppm_hundredths INTEGER,
    most_ppm_hundredths INTEGER,
    first_observed_at TEXT NOT NULL,
    last_observed_at TEXT NOT NULL,
    run_number INTEGER NOT NULL,  -- of the run that touched it last
    slice INTEGER NOT NULL,  -- of its key
    CONSTRAINT pk_home_activity_hour PRIMARY KEY (home_id, window_start, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE home_activity_hour_staged (
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
    CONSTRAINT pk_home_activity_hour_staged PRIMARY KEY (staging_id, slice, home_id, window_start, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE home_activity_day (
    home_id TEXT NOT NULL,
    window_start TEXT NOT NULL,
    kind TEXT NOT NULL,
    readings INTEGER NOT NULL,
    active INTEGER NOT NULL,
    ppm_hundredths INTEGER,
    least_ppm_hundredths INTEGER,
    most_ppm_hundredths INTEGER,
    first_observed_at TEXT NOT NULL,
    last_observed_at TEXT NOT NULL,
    run_number INTEGER NOT NULL,  -- of the run that touched it last
    slice INTEGER NOT NULL,  -- of its key
    CONSTRAINT pk_home_activity_day PRIMARY KEY (home_id, window_start, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE home_activity_day_staged (
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
    CONSTRAINT pk_home_activity_day_staged PRIMARY KEY (staging_id, slice, home_id, window_start, kind)
) STRICT, WITHOUT ROWID;

CREATE INDEX ix_home_activity_source
    ON sensor_reading (stream_id, partition_id, observed_at, home_id, kind);
