-- The latest status of each flight and day, the history of changes, and the punctuality of carriers by day.

CREATE TABLE flight_status (
    carrier         TEXT NOT NULL,
    flight_number   INTEGER NOT NULL,
    departure_date  TEXT NOT NULL,
    status          TEXT NOT NULL,
    departure_gate  TEXT,
    departs_at      TEXT,
    arrives_at      TEXT,
    changed_at      TEXT NOT NULL,
    stream_id       INTEGER NOT NULL,
    partition_id    TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    commit_number   INTEGER NOT NULL,
    CONSTRAINT pk_flight_status PRIMARY KEY (carrier, flight_number, departure_date)
) STRICT, WITHOUT ROWID;

CREATE INDEX ix_flight_status_place
    ON flight_status (stream_id, partition_id, sequence_number, commit_number);

CREATE TABLE flight_change (
    stream_id       INTEGER NOT NULL,
    partition_id    TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    ordinal         INTEGER NOT NULL,
    commit_number   INTEGER NOT NULL,
    carrier         TEXT NOT NULL,
    flight_number   INTEGER NOT NULL,
    departure_date  TEXT NOT NULL,
    status          TEXT NOT NULL,
    departure_gate  TEXT,
    departs_at      TEXT,
    arrives_at      TEXT,
    changed_at      TEXT NOT NULL,
    CONSTRAINT pk_flight_change PRIMARY KEY (stream_id, partition_id, sequence_number, ordinal)
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
    slice INTEGER NOT NULL,  -- of its key
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

CREATE INDEX ix_flight_punctuality_source
    ON flight_change (stream_id, partition_id, departure_date, carrier);
