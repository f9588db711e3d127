-- The home-security company: registered homes (a reference), their sensors' readings, and alerts.

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
